"""Every legal replica of one fleet on every allowed offer, with the load that it carries.

A replica is one model copy on tp·pp·dp devices. Several replicas share a shape when they fit into
it; a replica may span whole shapes when the network between them is known. A unit, the smallest
thing that can be added, is one full shape of replicas, or the shapes of one replica.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.layouts import tensor_splits
from planner.candidates.ledger import Ledger
from planner.candidates.machines import refusal_note, serving_refusal
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.offers import ShapeCaps, Site, group_by_physics
from planner.candidates.program import Units
from planner.catalog.model import Catalog
from planner.estimate.machine import Machine
from planner.estimate.resolve import peak_demand_per_s, peaks_of, serving_machine, serving_spec
from planner.estimate.serving import (
    ReplicaLayout,
    ServingCapacity,
    ServingMemory,
    ServingPeaks,
    ServingSpec,
    given_throughput_capacity,
    serving_capacity,
    serving_memory,
)
from planner.estimate.sources import serving_equations
from planner.scenario.schema import Scenario, ServingFleet
from planner.units import format_bytes

MICRO = 1_000_000
LARGEST_PIPELINE = 16
LARGEST_SPAN = 16  # shapes of one replica
ATTENTION_RANKS = (1, 2, 4, 8)  # attention data parallelism, for models with experts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingQuestion:
    """One fleet with everything that the search needs, resolved."""

    fleet: ServingFleet
    arch: Architecture
    spec: ServingSpec
    scenario: Scenario
    catalog: Catalog

    @property
    def estimator(self) -> str:
        """The tier that predicts."""
        return "rule (given throughput)" if self._given else "rule (roofline T1)"

    @property
    def _given(self) -> float | None:
        return self.fleet.throughput_tokens_per_s_per_device

    @property
    def demand_micro_per_s(self) -> int:
        """Peak request rate.  [micro-requests/s]"""
        return math.ceil(peak_demand_per_s(self.fleet) * MICRO - 1e-6)

    def demand(self) -> dict[str, float]:
        """What is asked for, in base units."""
        return {
            "requests_per_minute": self.fleet.qpm,
            "peak_requests_per_s": peak_demand_per_s(self.fleet),
            "input_tokens": self.fleet.input_tokens,
            "output_tokens": self.fleet.output_tokens,
            "target_load": self.fleet.target_load,
            "spare_replicas": self.fleet.spare_replicas,
        }

    def equations(self) -> list[str]:
        """Ids of the equations behind the numbers."""
        return serving_equations(self._given is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Fitting replicas of one physics group, before prices."""

    group: list[Site]
    layout: ReplicaLayout
    memory: ServingMemory
    capacity: ServingCapacity | None
    requests_per_s: NDArray[np.float64]
    nodes: NDArray[np.int64]  # shapes of one unit
    replicas: NDArray[np.int64]  # of one unit
    rows: NDArray[np.int64]  # those that fit


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTable:
    """The columns of one fleet: row i adds units of `nodes[i]` shapes of `sites[i]`."""

    sites: tuple[Site, ...]
    parts: tuple[tuple[_Part, int], ...]  # the evaluated arrays of each row, and its place in them
    nodes: NDArray[np.int64]
    replicas: NDArray[np.int64]
    requests_per_s: NDArray[np.float64]  # of one replica, at full load
    capacity_micro_per_s: NDArray[np.int64]  # of one unit, at the target load
    cost_microusd: tuple[int, ...]  # of one unit over the horizon
    needed_units: NDArray[np.int64]  # when the fleet runs on this row alone
    max_units: NDArray[np.int64]
    demand_micro_per_s: int
    horizon_hours: float

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.sites)

    def units(self) -> Units:
        """What one unit of each row brings and takes."""
        return Units(
            cost_microusd=self.cost_microusd,
            finish_s=np.zeros(len(self)),
            nodes=self.nodes,
            replicas=self.replicas,
            capacity_micro_per_s=self.capacity_micro_per_s,
            max_units=self.max_units,
        )

    def layout_row(self, row: int) -> dict[str, int]:
        """The parallel split of one row."""
        part, index = self.parts[row]
        return {name: int(_at(getattr(part.layout, name), index)) for name in ("tp", "pp", "dp", "ep")}

    def devices_per_replica(self, row: int) -> int:
        """Devices of one replica of a row."""
        part, index = self.parts[row]
        return int(_at(part.layout.devices, index))

    def memory_row(self, row: int) -> tuple[dict[str, float], float]:
        """Memory terms of one device, and what is usable; a cache of unknown size counts as nothing.  [B]"""
        part, index = self.parts[row]
        terms = {name: _finite(value) or 0.0 for name, value in part.memory.terms.row(index).items()}
        return terms, float(_at(part.memory.usable_bytes, index))

    def estimate_row(self, row: int) -> dict[str, Any]:
        """Speed of one replica of a row; a given throughput says nothing of batch and latency."""
        part, index = self.parts[row]
        common = {"batch": _finite(_at(part.memory.batch, index))}
        if part.capacity is None:
            given: dict[str, Any] = {
                "tpot_s": None,
                "prefill_s": None,
                "decode_terms_s": {},
                "binds": "given throughput",
            }
            return common | given
        capacity = part.capacity
        return common | {
            "tpot_s": _finite(_at(capacity.tpot_s, index)),
            "prefill_s": _finite(_at(capacity.prefill_s, index)),
            "decode_terms_s": capacity.decode_step.row(index),
            "binds": f"{_at(capacity.binding, index)}, batch by {_at(capacity.batch_limit, index)}",
        }


def _at(values: Any, index: int) -> Any:
    array = np.asarray(values)
    return array[index] if array.ndim else array[()]


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def resolve_serving(fleet: ServingFleet, arch: Architecture, scenario: Scenario, catalog: Catalog) -> ServingQuestion:
    """The fleet with its defaults filled in."""
    return ServingQuestion(fleet=fleet, arch=arch, spec=serving_spec(fleet), scenario=scenario, catalog=catalog)


def serving_table(question: ServingQuestion, sites: Sequence[Site], ledger: Ledger) -> ServingTable:
    """The columns of one fleet."""
    parts = _evaluate(question, group_by_physics(_able_sites(question, sites, ledger)), ledger)
    caps = ShapeCaps(question.scenario)
    rows = [
        (site, part, int(index))
        for part in parts
        for site in part.group
        for index in part.rows
        if _within_cap(question, caps, part, site, int(index), ledger)
    ]
    return _priced(question, rows, ledger)


def _able_sites(question: ServingQuestion, sites: Sequence[Site], ledger: Ledger) -> Iterator[Site]:
    for site in sites:
        reason = serving_refusal(site, question.scenario, question.catalog)
        if reason:
            ledger.drop(reason, "offers", nearest=refusal_note(site, reason, "serving"))
        else:
            yield site


def replica_layouts(arch: Architecture, site: Site) -> tuple[ReplicaLayout, NDArray[np.int64], NDArray[np.int64]]:
    """Legal replicas on a site, with the shapes and the replicas of one unit of each."""
    per_shape, span = site.shape.devices, LARGEST_SPAN if site.inter_node_bytes_per_s is not None else 1
    domain = max(per_shape, site.shape.scale_up_devices)
    depth = min(max(arch.layer_count, 1), LARGEST_PIPELINE)
    splits = [
        (tp, pp, dp, ep)
        for tp in tensor_splits(arch, domain)
        for pp in (2**k for k in range(depth.bit_length()) if 2**k <= depth)
        for dp in (ATTENTION_RANKS if arch.is_moe else (1,))
        for ep in sorted({1, tp * dp} if arch.is_moe and _experts_divide(arch, tp * dp) else {1})
        if _packs(tp * pp * dp, per_shape, span)
    ]
    tp, pp, dp, ep = np.array(splits, dtype=np.int64).reshape(-1, 4).T
    devices = tp * pp * dp
    nodes = np.maximum(devices // per_shape, 1)
    replicas = np.maximum(per_shape // devices, 1)
    sizes = {"devices": devices, "tp": tp, "pp": pp, "ep": ep}
    return ReplicaLayout(**{name: size.astype(np.float64) for name, size in sizes.items()}), nodes, replicas


def _experts_divide(arch: Architecture, ranks: int) -> bool:
    return all(group.experts % ranks == 0 for group in arch.layers if group.experts)


def _packs(devices: int, per_shape: int, span: int) -> bool:
    """A replica is a part of a shape, or a whole number of shapes."""
    return devices <= per_shape or (devices % per_shape == 0 and devices // per_shape <= span)


def _evaluate(question: ServingQuestion, groups: Sequence[list[Site]], ledger: Ledger) -> list[_Part]:
    """All replicas of all groups in one pass; the parts share its arrays and differ in their rows."""
    if not groups:
        return []
    splits = [replica_layouts(question.arch, group[0]) for group in groups]
    sizes = [len(nodes) for _, nodes, _ in splits]
    layout = ReplicaLayout(
        **{
            name: np.concatenate([np.asarray(getattr(split, name), dtype=np.float64) for split, _, _ in splits])
            for name in ("devices", "tp", "pp", "ep")
        }
    )
    machine = _repeated(
        [serving_machine(site.device, site.shape, site.inter_node_bytes_per_s) for site, *_ in groups], sizes
    )
    memory = serving_memory(question.arch, question.spec, layout, machine)
    rate, capacity = _rates(question, groups, sizes, layout, machine, memory)
    missing = np.broadcast_to(np.asarray(memory.missing_bytes, dtype=np.float64), rate.shape)
    nodes, replicas = (np.concatenate([split[which] for split in splits]) for which in (1, 2))
    return [
        _Part(
            group=group,
            layout=layout,
            memory=memory,
            capacity=capacity,
            requests_per_s=rate,
            nodes=nodes,
            replicas=replicas,
            rows=_usable_rows(question, group[0], start, missing[start:stop], rate[start:stop], ledger),
        )
        for group, start, stop in zip(groups, np.cumsum([0, *sizes]), np.cumsum(sizes))
    ]


def _repeated(parts: Sequence[Machine], sizes: Sequence[int]) -> Machine:
    """Machines as arrays: each one as often as it has layouts."""
    rates = [field.name for field in fields(Machine) if isinstance(getattr(parts[0], field.name), int | float)]
    columns: dict[str, Any] = {name: np.repeat([float(getattr(part, name)) for part in parts], sizes) for name in rates}
    return Machine(**columns)


def _usable_rows(
    question: ServingQuestion,
    site: Site,
    start: int,
    missing: NDArray[np.float64],
    rate: NDArray[np.float64],
    ledger: Ledger,
) -> NDArray[np.int64]:
    """Rows of a group that fit and have a speed."""
    fits, fast = missing <= 0, np.isfinite(rate) & (rate > 0)
    ledger.layouts_seen += len(rate)
    _note_memory(ledger, site, missing[~fits])
    if question.arch.layers:
        ledger.drop("network-unknown", "layouts", int((fits & ~fast).sum()))
    else:
        text = "a bare parameter count has no speed of its own: give throughput, or name a preset or config"
        ledger.drop("shape-unknown", "layouts", int((fits & ~fast).sum()), nearest=text)
    return np.flatnonzero(fits & fast) + start


def _rates(
    question: ServingQuestion,
    groups: Sequence[list[Site]],
    sizes: Sequence[int],
    layout: ReplicaLayout,
    machine: Machine,
    memory: ServingMemory,
) -> tuple[NDArray[np.float64], ServingCapacity | None]:
    """Requests per second of one replica at full load: given by the user, or the roofline."""
    given, spec, arch = question.fleet.throughput_tokens_per_s_per_device, question.spec, question.arch
    if given is not None:
        return np.asarray(given_throughput_capacity(given, layout, spec.output_tokens), dtype=np.float64), None
    each = [peaks_of(arch, spec.weights, site.device, site.shape) for site, *_ in groups]
    peaks = ServingPeaks(
        **{
            name: np.repeat([float(getattr(part, name)) for part in each], sizes)
            for name in ("linear", "expert", "attention")
        }
    )
    capacity = serving_capacity(arch, spec, layout, machine, peaks=peaks, memory=memory)
    rate = np.broadcast_to(np.asarray(capacity.requests_per_s, dtype=np.float64), (sum(sizes),))
    return rate, capacity


def _note_memory(ledger: Ledger, site: Site, missing: NDArray[np.float64]) -> None:
    if len(missing):
        least = float(missing.min())
        ledger.drop(
            "memory",
            "layouts",
            len(missing),
            nearest=f"needs {format_bytes(least)} less per device on {site.device.id}",
            miss=least,
        )


def _within_cap(
    question: ServingQuestion, caps: ShapeCaps, part: _Part, site: Site, index: int, ledger: Ledger
) -> bool:
    cap, nodes = caps.of(site), int(part.nodes[index])
    if nodes > cap:
        text = f"{nodes} shapes of {site.offer.id} for one replica, {cap} allowed"
        ledger.drop("quota", "columns", nearest=text, miss=float(nodes - cap))
        return False
    hours = question.scenario.horizon_s / 3600.0
    if nodes * site.offer.price_microusd_per_hour * hours > DEAREST_MICROUSD:
        ledger.drop("too-dear", "columns", nearest=f"{site.offer.id}: more than $10,000,000,000")
        return False
    return True


def _priced(question: ServingQuestion, rows: Sequence[tuple[Site, _Part, int]], ledger: Ledger) -> ServingTable:
    fleet, demand = question.fleet, question.demand_micro_per_s
    nodes = np.array([part.nodes[index] for _, part, index in rows], dtype=np.int64)
    replicas = np.array([part.replicas[index] for _, part, index in rows], dtype=np.int64)
    each = np.array([part.requests_per_s[index] for _, part, index in rows], dtype=np.float64)
    planned = np.floor(each * fleet.target_load * MICRO + 1e-6).astype(np.int64)
    usable = np.flatnonzero(planned > 0)
    ledger.drop("too-slow", "columns", len(rows) - len(usable), nearest="less than a request in eleven days")
    rows, nodes, replicas = [rows[int(i)] for i in usable], nodes[usable], replicas[usable]
    each, planned = each[usable], planned[usable]
    needed = _units_for(demand + fleet.spare_replicas * planned, planned, replicas, fleet.min_replicas)
    largest = int(planned.max()) if len(planned) else 0
    most = _units_for(demand + fleet.spare_replicas * largest + 0 * planned, planned, replicas, fleet.min_replicas)
    limits = ShapeCaps(question.scenario, one_job=False)
    caps = np.array([limits.of(site) for site, _, _ in rows], dtype=np.int64)
    hours = question.scenario.horizon_s / 3600.0
    return ServingTable(
        sites=tuple(site for site, _, _ in rows),
        parts=tuple((part, index) for _, part, index in rows),
        nodes=nodes,
        replicas=replicas,
        requests_per_s=each,
        capacity_micro_per_s=planned * replicas,
        cost_microusd=tuple(
            cost_microusd(int(count), site.offer.price_microusd_per_hour, hours)
            for count, (site, _, _) in zip(nodes, rows)
        ),
        needed_units=needed,
        max_units=np.minimum(most, np.maximum(caps // np.maximum(nodes, 1), 1)),
        demand_micro_per_s=demand,
        horizon_hours=hours,
    )


def _units_for(
    load: NDArray[np.int64], planned: NDArray[np.int64], replicas: NDArray[np.int64], min_replicas: int
) -> NDArray[np.int64]:
    """Units of a row that carry a load alone, and hold the fewest replicas asked for."""
    unit = np.maximum(planned * replicas, 1)
    by_load, by_count = -(-load // unit), -(-min_replicas // np.maximum(replicas, 1))
    needed: NDArray[np.int64] = np.maximum(np.maximum(by_load, by_count), 1)
    return needed
