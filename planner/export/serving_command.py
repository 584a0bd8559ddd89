"""A serving command, as it goes into a script of one node, a SkyPilot task or a pod; and what a router in front needs.

A router is told which share of each kind of request goes to which allocation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from typing_extensions import TypedDict

from planner.carriers import dataclass
from planner.estimate.kernels import EXPORTED_KINDS, PLUGINS, TPU_HOST_CHIPS
from planner.estimate.serving_formats import FILE_FORMATS
from planner.export import engine, file_text
from planner.export.file_text import Argument, Blank, Expand, Target, command_line, commented, demand, header_lines
from planner.export.launch import Bucket, ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch
from planner.report.escape import terminal

PORT = 8000
GROUP_PORT = 29500  # where the nodes of one replica meet
START_S, FETCHED_BYTES_PER_S = 1800, 250e6  # of small models, and a slow way from the hub to a machine's disk (assumed)
HEALTH = "/health"  # answers 200 when the engine serves: vLLM and SGLang alike
DRAFT_HEAD = "a draft head made for this model (EAGLE-3): one layer, whose memory and time the plan counts"
MODEL_MEANING = "the weights: a folder, or a repository of the Hugging Face hub"
# "CUDA C++ Programming Guide", environment variables; ROCm documentation "GPU isolation techniques"; seen 2026-11-24;
# oneAPI Level Zero specification, environment variables (recalled)
VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
# What repositories of tuned models are called, and families whose plain names are of tuned ones
_TUNED = re.compile(
    r"instruct|chat|-it\b|gpt-oss|qwen3|deepseek|kimi|glm|minimax|command|phi-|aya|smollm3|granite|magistral|devstral",
    re.IGNORECASE,
)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """How a node of a replica learns its place: words of the shell that runs there."""

    rank: Expand
    head: Expand


SCRIPT = Meeting(rank=Expand('"$NODE_RANK"'), head=Expand('"$MASTER_ADDR"'))
SCRIPT_BLANKS = (
    Blank(name="NODE_RANK", meaning="which of the replica's nodes this is, from 0"),
    Blank(name="MASTER_ADDR", meaning="address of the replica's node 0"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The command of one port: one replica, or the replicas that share a node."""

    target: Target
    words: tuple[object, ...]  # the program and what it takes without options
    arguments: tuple[Argument, ...]
    follower: str  # option of every node of a replica but the first; "" when all run the same command
    blanks: tuple[Blank, ...]
    notes: tuple[str, ...]
    image: str  # container, without the registry; "" where its tag is not known
    package: str  # what pip installs; "" where the index has it for other devices alone
    running_metric: str  # sequences at once, as an adapter of its metrics names them
    environment: tuple[tuple[str, str], ...] = ()  # variables that it needs as planned

    @property
    def made_for(self) -> str:
        """Which version the command is for, where another program's file holds it."""
        target = self.target
        return f"the server is {target.name} {target.version}, options read on {target.read} from {target.source}"

    def lines(self, meeting: Meeting | None = None) -> list[str]:
        """Lines of a POSIX shell that become the server; `meeting` where a replica spans nodes."""
        asked = [
            *(demand(blank) for blank in self.blanks),
            *(f"export {name}={held}" for name, held in self.environment),
        ]
        command = "exec " + command_line(self.words, self.arguments)
        if meeting is None or not self.follower:
            return [*asked, command]
        first = f"set --; [ {meeting.rank} = 0 ] || set -- {self.follower}"
        return [*asked, first, command + ' \\\n  "$@"']


def told(
    launch: ServingLaunch, target: Target, ready: Sequence[str], between_pools: str
) -> tuple[object, tuple[Blank, ...], tuple[str, ...]]:
    """The model on a command line, what to fill in, and what to note, of a fleet's allocation.

    Parameters
    ----------
    launch
        The allocation.
    target
        The engine.
    ready
        Weight formats that it makes from a published 16-bit checkpoint.
    between_pools
        What to note of a pool of a disaggregated fleet.
    """
    published, weights, held = launch.model.hf_id, launch.fleet.weights, launch.model.checkpoint
    there = _holds(held, weights) if held else weights in (*engine.SIXTEEN_BITS, *ready)
    notes = list(engine.engine_notes(launch, target.name))
    blanks = []
    model: object = published
    if not _REPOSITORY.fullmatch(published) or not there:
        model = Expand('"$MODEL"')
        form = "the weights: one GGUF file" if weights in FILE_FORMATS else MODEL_MEANING
        blanks.append(Blank(name="MODEL", meaning=f"{form}, in {weights}"))
        if published:
            other = f", which {published} does not, in {held}" if held else ""
            notes.append(f"the plan serves {weights} weights: MODEL must hold a checkpoint in that format{other}")
    elif held:
        notes.append(f"{published} holds its weights in {held}: no option that makes them of 16 bits is given")
    if _REPOSITORY.fullmatch(published) and not _TUNED.search(published):
        notes.append(
            f"{published} is a base model: it continues texts, and engines refuse chats where no template is; name its "
            "tuned version in the scenario (model) to serve those: the shape is the same"
        )
    if engine.runs_own_code(launch):
        notes.append("the model's repository holds code of its own, which runs on your machines: look at it first")
    if launch.fleet.speculative and engine.predicts_ahead(launch):
        notes.append(f"{launch.model.name} predicts further tokens by a layer of its own, which drafts here")
    elif launch.fleet.speculative and not engine.draft_repository(launch):
        own = launch.fleet.speculative.model is None
        blanks.append(Blank(name="DRAFT_MODEL", meaning=DRAFT_HEAD if own else "the draft model"))
    if sent := engine.exchange(launch):
        notes.append(
            f"tokens are sent to their experts by {sent}, as planned: the image or your own build must hold it"
        )
    if launch.role != "whole":
        notes.append(between_pools)
    return model, tuple(blanks), tuple(notes)


def _holds(checkpoint: str, weights: str) -> bool:
    """Whether a checkpoint is in the format that was planned: 8-bit floats are of one width, in blocks or not."""
    return checkpoint == weights or (checkpoint.startswith("fp8") and weights.startswith("fp8"))


def format_arguments(
    launch: ServingLaunch, target: Target, online: Mapping[str, str], caches: Mapping[str, str]
) -> list[Argument]:
    """Options of number formats, which both engines call alike.

    Parameters
    ----------
    launch
        The allocation.
    target
        The engine.
    online, caches
        Its names of weight formats that it makes while it loads, and of cache formats.

    Raises
    ------
    NotExpressible
        It has no cache in that format.
    """
    fleet, sixteen = launch.fleet, engine.dtype(launch)
    if fleet.kv_cache not in caches:
        raise NotExpressible(f"{target.name} has no cache in {fleet.kv_cache}", "write kv_cache: fp8 or bf16")
    cache = caches[fleet.kv_cache]
    if cache == "bfloat16" and sixteen == "float16":
        cache = "auto"  # the device has no bf16: the cache is kept as the rest is
    found: list[Argument] = [("--dtype", sixteen)]
    if fleet.weights in online and not launch.model.checkpoint:  # engines refuse to make what is made already
        found.append(("--quantization", online[fleet.weights]))
    return [*found, ("--kv-cache-dtype", cache)]


def start_s(launch: ServingLaunch) -> int:
    """Time that a server may take before it answers: its weights are fetched, in 16 bits, and loaded.  [s]"""
    return max(START_S, round(2 * launch.model.parameters / FETCHED_BYTES_PER_S))


def served_name(launch: ServingLaunch) -> str:
    """Name by which clients ask for the model: the scenario's, as visible text."""
    return terminal(launch.model.name).strip() or launch.stem


def port_of(launch: ServingLaunch) -> int:
    """Where a server listens: on a node that others use too, by its first device."""
    return PORT + (launch.on.devices[0] if launch.on is not None else 0)


def chosen_devices(launch: ServingLaunch | TrainingLaunch) -> list[str]:
    """A line of a POSIX shell that shows a program its own devices of a shared node; none where all are its own.

    Raises
    ------
    NotExpressible
        It is not known how devices are told apart.
    """
    if launch.on is None:
        return []
    return [f"export {visible(launch)}={','.join(map(str, launch.on.devices))}"]


def visible(launch: Launch) -> str:
    """The variable by which a program is shown some devices of its node.

    Raises
    ------
    NotExpressible
        It is not known how devices are told apart.
    """
    name = VISIBLE.get(launch.machine.vendor)
    if name is None:
        raise NotExpressible(f"how {launch.machine.device} devices of a node are told apart", "share_nodes: false")
    return name


def replicas_together(launch: ServingLaunch) -> int:
    """Replicas of one port: those that share a node."""
    return max(launch.replicas_per_node, 1) if launch.nodes_per_replica == 1 else 1


def serving(launch: Launch) -> ServingLaunch:
    """The launch of a fleet, if an engine can serve it.

    Raises
    ------
    NotExpressible
        It has no model, or runs on a device that no engine of these formats supports.
    """
    assert isinstance(launch, ServingLaunch)
    plugin = PLUGINS.get(("vllm", launch.machine.vendor, launch.machine.device_kind))
    if plugin is not None:
        raise NotExpressible(f"vLLM runs on {launch.machine.device} by {plugin}, a package that is not exported")
    if launch.machine.device_kind not in EXPORTED_KINDS:
        raise NotExpressible(f"vLLM and SGLang do not run on {launch.machine.device}")
    if launch.machine.device_kind == "tpu" and launch.machine.devices_per_node > TPU_HOST_CHIPS:
        raise NotExpressible(
            f"{launch.machine.shape_name} has several hosts, over which vLLM needs a Ray cluster of its own",
            "allow slices of one host",
        )
    if launch.machine.shape_kind == "share":
        raise NotExpressible(f"{launch.machine.shape_name} is a share of a device, of which engines have no notion")
    return launch


def routing_files(launch: ServingLaunch, target: Target) -> list[ExportFile]:
    """The allocation's row of the routing table; nothing where all requests come to one allocation alike."""
    if not launch.pools and len(launch.buckets) <= 1:
        return []
    return [ExportFile(name=f"{launch.stem}.routing.json", text=file_text.json(routing_table(launch, target)))]


class BucketRouted(TypedDict):
    """Requests of a kind that this allocation takes at the planned peak, and which share of all that is."""

    name: str
    input_tokens: float | None
    output_tokens: float | None
    requests_per_s: float
    share: float


class RoutingTable(TypedDict):
    """The allocation's row of the routing table."""

    about: list[str]
    fleet: str
    pool: str
    other_pools: list[str]
    role: str
    replicas: int
    planned_requests_per_s_per_replica: float
    buckets: list[BucketRouted]


def routing_table(launch: ServingLaunch, target: Target) -> RoutingTable:
    """Shares of the requests of each bucket at the planned peak that this allocation takes."""
    return {
        "about": header_lines(launch, target),
        "fleet": launch.workload,
        "pool": launch.stem,
        "other_pools": list(launch.pools),
        "role": launch.role,
        "replicas": launch.replicas,
        "planned_requests_per_s_per_replica": launch.requests_per_s,
        "buckets": [_bucket(bucket) for bucket in launch.buckets],
    }


def _bucket(bucket: Bucket) -> BucketRouted:
    peak, routed = bucket.peak_requests_per_s, bucket.routed_requests_per_s
    return {
        "name": bucket.name,
        "input_tokens": bucket.input_tokens,
        "output_tokens": bucket.output_tokens,
        "requests_per_s": routed,
        "share": min(routed / peak, 1.0) if peak > 0 else 0.0,
    }


ServerOf = Callable[[ServingLaunch, Meeting], Server]


def script_files(
    launch: Launch, suffix: str, server_of: ServerOf, apart: Callable[[ServingLaunch], bool]
) -> list[ExportFile]:
    """An engine's script of one allocation, and its row of the routing table.

    Parameters
    ----------
    launch
        The allocation.
    suffix
        Of the script's name.
    server_of
        The engine's `server`.
    apart
        Whether each replica of a node is a server of its own, behind a port of its own.

    Raises
    ------
    NotExpressible
        The engine has no words for it.
    """
    fleet = serving(launch)
    server = server_of(fleet, SCRIPT)
    text = servers_apart(fleet, server) if apart(fleet) else script(fleet, server)
    return [ExportFile(name=f"{launch.stem}.{suffix}", text=text), *routing_files(fleet, server.target)]


def script(launch: ServingLaunch, server: Server) -> str:
    """The script: head, what to fill in, the command."""
    spans = launch.nodes_per_replica > 1
    blanks = (*server.blanks, *(SCRIPT_BLANKS if spans else ()))
    head = header_lines(launch, server.target, blanks, [*how_often(launch), *server.notes])
    asked = [demand(blank) for blank in SCRIPT_BLANKS] if spans else []
    body = ["set -eu", *asked, *chosen_devices(launch), *server.lines(SCRIPT if spans else None)]
    return "#!/usr/bin/env bash\n" + commented(head) + "\n".join(body) + "\n"


def servers_apart(launch: ServingLaunch, server: Server) -> str:
    """The script of a node whose replicas are a server each: `server` is that of one of them."""
    together, port = replicas_together(launch), port_of(launch)
    ports = f"a node has {together} servers, at ports {port} to {port + together - 1}: put a balancer in front"
    head = header_lines(launch, server.target, server.blanks, [*how_often(launch), *server.notes, ports])
    own = [("--port", Expand('"$2"')) if name == "--port" else (name, value) for name, value in server.arguments]
    serve = f'export {visible(launch)}="$1"\nexec {command_line(server.words, own)}'
    needed = [f"export {name}={held}" for name, held in server.environment]
    body = ["set -eu", *map(demand, server.blanks), *needed, *each_replica(launch, serve, str)]
    return "#!/usr/bin/env bash\n" + commented(head) + "\n".join(body) + "\n"


def how_often(launch: ServingLaunch) -> list[str]:
    """On how many nodes a script of one node runs, and what it makes."""
    nodes, replicas, spare = launch.machine.nodes, launch.replicas, launch.replicas - launch.replicas_needed
    each, together = launch.nodes_per_replica, replicas_together(launch)
    per = f"{each} nodes make one replica" if each > 1 else f"{together} replica{'s' * (together > 1)} a node"
    spares = f", {spare} of them spare" if spare else ""
    if launch.machine.shape_kind == "mig":  # a slice counts as a node
        slices = f"each of {nodes} slices" if nodes > 1 else "the one slice"
        own = " and, where they lie on one host, a port of its own" if nodes > 1 else ""
        return [
            f"run this for {slices}, {replicas} in all{spares}: CUDA_VISIBLE_DEVICES=MIG-..., as nvidia-smi -L names "
            f"it, gives a server its slice{own}"
        ]
    where = f"each of {nodes} nodes" if nodes > 1 else "the one node"
    if launch.on is not None:
        others = ", ".join(launch.on.others) or "other replicas of its own"
        where = f"node {launch.on.node + 1} of the {launch.on.nodes} that fleets share, beside {others}"
        per = f"devices {', '.join(map(str, launch.on.devices))} are its own there"
    return [f"run this on {where}: {per}, {replicas} in all{spares}"]


def each_replica(launch: ServingLaunch, serve: str, named: Callable[[int], str]) -> Iterator[str]:
    """Lines that start a server for each replica of a node; all of them end when one does.

    Parameters
    ----------
    launch
        The allocation, of several replicas a node.
    serve
        Lines that become one server, whose devices are "$1" and whose port is "$2".
    named
        A device of the node as the engine names it.
    """
    size, port = launch.devices_per_replica, port_of(launch)
    first = launch.on.devices[0] if launch.on is not None else 0
    yield "serve() { # its devices and its port"
    yield "  " + serve.replace("\n", "\n  ")
    yield "}"
    yield "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
    for number in range(replicas_together(launch)):
        own = range(first + number * size, first + (number + 1) * size)
        yield f"serve {','.join(map(named, own))} {port + number} &"
    yield "wait -n"
