"""What a launch needs to know, read from a plan document: one `Launch` for each allocation.

    Launch
    ├── TrainingLaunch    a job, or the identical jobs of one allocation
    └── ServingLaunch     the replicas of one allocation of a fleet

Nothing here is computed anew: sizes come from the model's own config, the rest from the plan. A format module takes
one launch and returns `ExportFile`s, or raises `NotExpressible` with the reason and with what to use instead.

A document may have been edited since: its cells are counts and numbers, or ValueError. Rows on shared nodes are a
launch for each node, with the devices of it that its replicas take, or for each job: the largest have the first
devices, so that every replica or job begins at a multiple of its own size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.estimate.engines import Limits
from planner.plan.parts import rows_of
from planner.scenario.schema import ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.rows import TrainingAllocation


MOST = 1e18  # above every count, size and time of a plan; a value beyond is a slip of an editor


def whole(value: float) -> int:
    """A count, which is a whole number of at least 1.

    Examples
    --------
    >>> whole(8.0)
    8
    """
    if not 1 <= value <= MOST or value != int(value):
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def real(value: float) -> float:
    """A finite number of at least 0.

    Examples
    --------
    >>> real(2)
    2.0
    """
    if not 0 <= value <= MOST:
        raise ValueError(f"{value!r} is not a number of at least 0")
    return float(value)


def date(value: str | None) -> str | None:
    """An ISO date, with a time or without; None stays None."""
    if value is None:
        return None
    datetime.fromisoformat(value)
    return value


def above_zero(value: float) -> float:
    """A finite number above 0."""
    if not real(value):
        raise ValueError("0 where something is needed")
    return float(value)


def if_any(value: float | None) -> float | None:
    """A number above 0; None where there is none, or it never ends."""
    return None if value is None or value == math.inf else (real(value) or None)


Place = tuple[str, int]  # workload, and number of the row among its allocations


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNode:
    """Which devices of which shared node replicas take, or a job."""

    node: int  # number among those of its offer, from 0
    nodes: int  # that are shared there
    devices: tuple[int, ...]  # by number, from 0
    others: tuple[str, ...]  # workloads on the same node


def devices_on_nodes(document: PlanDocument) -> dict[Place, tuple[OnNode, ...]]:
    """Of each row on shared nodes where it stands, node by node; rows on nodes of their own are left out."""
    counts = {one["offer"]: whole(one["count"]) for one in document.get("shared_nodes", [])}
    there: dict[tuple[str, int], list[tuple[int, int, Place]]] = {}  # by node: devices of a replica, replicas, whose
    for workload in document["workloads"]:
        for number, row in enumerate(rows_of(workload)):
            if "shared" not in row:
                continue
            size = whole(row["devices_per_replica"] if "replicas" in row else row["devices_per_shape"])
            for one in row["shared"]:
                tenant = (size, whole(one["replicas"]), (workload["name"], number))
                there.setdefault((row["offer"], one["node"]), []).append(tenant)
    found: dict[Place, tuple[OnNode, ...]] = {}
    for (offer, node), tenants in sorted(there.items()):
        first = 0
        for size, replicas, place in sorted(tenants, key=lambda tenant: -tenant[0]):
            taken = tuple(range(first, first + size * replicas))
            first += size * replicas
            others = tuple(dict.fromkeys(name for _, _, (name, _) in tenants if name != place[0]))
            on = OnNode(node=node, nodes=counts.get(offer, 0), devices=taken, others=others)
            found[place] = (*found.get(place, ()), on)
    return found


def by_node(row: ServingAllocation) -> Iterator[ServingAllocation]:
    """A row on shared nodes as one row for each of them; spare replicas are on the last ones."""
    needed = row["replicas_needed"]
    for one in row["shared"]:
        here, part = one["replicas"], one["replicas"] / row["replicas"]
        mine = min(here, needed)
        needed -= mine
        yield {
            **row,
            "count": 1,
            "devices": here * row["devices_per_replica"],
            "replicas": here,
            "replicas_needed": mine,
            "planned_requests_per_s": row["planned_requests_per_s"] * part,
            "routed_requests_per_s": [rate * part for rate in row["routed_requests_per_s"]],
        }


class NotExpressible(Exception):
    """A format has no words for a launch.

    Parameters
    ----------
    reason
        What the plan asks for that the target cannot do.
    instead
        What to use in its place; "" when there is nothing.
    """

    def __init__(self, reason: str, instead: str = "") -> None:
        self.reason, self.instead = reason, instead
        super().__init__(f"{reason}; {instead}" if instead else reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFile:
    """One text file of an export."""

    name: str  # without folders; made of a safe stem
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The plan that a launch was read from, and the command that reads it."""

    command: str
    plan_sha256: str
    plan_name: str
    status: str  # of the plan: optimal | feasible
    proven: bool  # whether its certificate reaches that
    scenario_file: str
    case: str | None
    planner: str  # version
    catalog: str  # "default, 2026-11-21, sha256 ..."
    prices_as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is trained or served."""

    name: str
    hf_id: str  # repository of the weights, "" when unknown: a config of one's own, or a size alone
    checkpoint: str  # format of the weights in that repository; "" 16 bits, as most are, or unknown
    config_path: str  # config.json in the scenario, "" for a preset
    config: Mapping[str, Any] | None  # the text model's part of config.json; None: only the size is known
    arch: Architecture | None  # the same, as counts and layers
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is rented, of one allocation: `nodes` shapes of one offer."""

    provider: str
    region: str
    zone: str
    shape_name: str
    shape_kind: str  # instance | slice | mig | share | onprem; "" unknown: not in this catalog any more
    price_model: str  # on_demand | spot | owned | reserved ...
    funding: str  # reserved: paid under a contract
    usd_per_node_hour: float
    device: str  # catalog id
    device_kind: str  # gpu | tpu | npu ...
    vendor: str  # lower case, "" unknown
    family: str  # generation
    memory_bytes: int  # of one device or of its slice; 0 unknown
    formats: frozenset[str]  # number formats of its matrix units; empty: unknown
    devices_per_node: int
    nodes: int  # of the allocation, all its jobs or replicas together
    devices: int
    vcpus: int | None  # of one node
    host_memory_bytes: int | None
    network_kind: str
    torus: tuple[int, ...]  # axes of a slice of TPUs; () of what is none
    rack_nodes: int = 1  # that links of the devices themselves join


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When it runs.  [h]"""

    hours: float  # predicted run time; of serving: the horizon
    at_confidence_hours: float  # upper end of the error band
    confidence: float
    start_hours: float  # from the beginning of the plan
    begin: str | None  # date that hours count from
    windows_hours: tuple[tuple[float, float], ...]  # of a job that pauses or waits: when it may run


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLayout:
    """How one job is split; devices = dp·tp·pp·cp, experts split over ep of the dp·cp·tp ranks."""

    dp: int
    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    micro_batch: int
    sharding: str  # none | zero-1 | zero-2 | zero-3
    recompute: str  # none | selective | full
    global_batch_sequences: int
    micro_batches: int

    @property
    def devices(self) -> int:
        """Devices of one job."""
        return self.dp * self.tp * self.pp * self.cp


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLayout:
    """How one replica is split; devices = dp·tp·pp, and cp of the tensor ranks share out the tokens of a cache."""

    tp: int
    pp: int
    dp: int
    ep: int
    cp: int

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What training and serving launches share."""

    origin: Origin
    workload: str  # its name in the scenario
    stem: str  # safe part of a file name, unlike that of every other launch of the plan
    model: Model
    machine: Machine
    timing: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One of the two parts of a job that begins on spot and goes on from a checkpoint on demand."""

    first: bool
    share: float  # of the steps
    switch_hours: float  # from the beginning of the plan
    resplit: bool  # whether the other part splits the model in another way
    other_batch_sequences: int  # of a step of the other part


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLaunch(Launch):
    """One training job, or the `jobs` identical ones of an allocation: nodes and devices are of all of them."""

    job: TrainingJob  # as the scenario says, defaults filled in
    jobs: int
    layout: TrainingLayout  # of one job
    sequence_length: int
    tokens: float  # of one epoch
    epochs: float
    progress_tokens: float  # trained already, all epochs together
    token_factor: float  # tokens that a batch above the critical one costs, over those of a small batch
    checkpoint_every_s: float | None
    software: str  # row of planner.estimate.frameworks that time and memory were predicted for
    mixed: bool  # runs on several offers at once
    turn: Turn | None = None  # of a job that changes machines
    on: OnNode | None = None  # which devices of a node that fleets run on too; None: its nodes are its own

    @property
    def nodes_per_job(self) -> int:
        """Shapes of one job."""
        return self.machine.nodes // self.jobs

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run, those done before included: tokens over those of a global batch.

        Where the job changes machines and its batch with them, those of both parts.
        """
        return -int(-self.steps_alone // 1)

    @property
    def steps_alone(self) -> float:
        """Steps of the whole run; each part of a job that changes machines makes its share at its own batch."""
        own = self.tokens * self.epochs * self.token_factor / self.tokens_per_step
        if self.turn is None:
            return own
        other = own * self.layout.global_batch_sequences / self.turn.other_batch_sequences
        return self.turn.share * own + (1.0 - self.turn.share) * other

    @property
    def steps_done(self) -> int:
        """Whole steps that a run under way has made."""
        return int(self.progress_tokens // self.tokens_per_step)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one global batch."""
        return self.layout.global_batch_sequences * self.sequence_length


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One kind of requests of a fleet, and what of it comes to one allocation at the planned peak."""

    name: str
    input_tokens: float | None  # mean; None: a name without lengths
    output_tokens: float | None
    peak_requests_per_s: float  # of the fleet
    routed_requests_per_s: float  # of them, to this allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMemory:
    """Memory of one device of a replica, as planned."""

    usable_bytes: float  # that the engine may fill
    workspace_bytes: float  # of it, beside weights and cache: forward passes, libraries, buffers
    weights_bytes: float  # of it

    @property
    def cache_room_bytes(self) -> float:
        """What is left for the cache."""
        return self.usable_bytes - self.workspace_bytes - self.weights_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLaunch(Launch):
    """The replicas of one allocation of a fleet."""

    fleet: ServingFleet  # as the scenario says, defaults filled in
    layout: ServingLayout  # of one replica
    replicas: int
    replicas_needed: int  # without those that are spare
    replicas_always: int  # the others come and go with the load
    devices_per_replica: int
    role: str  # whole | prefill | decode
    engine: str  # that the latencies were predicted for: vllm, sglang ...
    pools: tuple[str, ...]  # stems of the fleet's other allocations
    staged_prefill: bool  # whether some pool of the fleet works on prompts in a pipeline
    requests_per_s: float  # of one replica at the planned peak
    batch: float | None  # sequences that a replica was planned to hold at once
    mean_input_tokens: float
    mean_output_tokens: float
    buckets: tuple[Bucket, ...]  # kinds of requests
    memory: PlannedMemory | None  # None: only rates were given
    limits: Limits | None  # what the engine may run at once, as the latencies were predicted; None: device unknown
    on: OnNode | None = None  # a node that it shares; None: its nodes are its own

    @property
    def comes_and_goes(self) -> bool:
        """Whether some replicas run only while the load asks for them."""
        return self.replicas_always < self.replicas

    @property
    def replicas_per_node(self) -> int:
        """Whole replicas on one shape; 0 when a replica spans several."""
        if self.on is not None:
            return self.replicas
        return self.machine.devices_per_node // self.devices_per_replica

    @property
    def nodes_per_replica(self) -> int:
        """Shapes of one replica; 1 when several replicas share a shape."""
        return -(-self.devices_per_replica // self.machine.devices_per_node)


def by_job(row: TrainingAllocation, nodes: Sequence[OnNode]) -> Iterator[tuple[TrainingAllocation, OnNode]]:
    """A row of jobs on shared nodes as one row for each job, with its devices."""
    size = whole(row["devices_per_shape"])
    for on in nodes:
        for first in range(0, len(on.devices), size):
            yield {**row, "jobs": 1, "count": 1, "devices": size}, replace(on, devices=on.devices[first : first + size])
