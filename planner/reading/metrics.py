"""What metrics of serving engines and accelerators mean: load, lengths, latencies, and which devices there are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.reading.columns import zone_of
from planner.reading.inventory import Node
from planner.reading.inventory import told_of as machines_told
from planner.reading.kinds import Asked, Piece, Reading
from planner.reading.request_log import fleet_model, name_of, spread_of
from planner.reading.tables import csv_text, printable

_MOST_MODELS = 20
_MOST_DEVICES = 100_000
DAY_HOURS, WEEK_HOURS = 24, 168
_ENGINE = re.compile(r"(vllm|sglang|tgi|trtllm|dynamo_frontend)[:_](.+)")
# role -> what follows the engine's name, the newest first; _total and the parts of a histogram are left off
_ROLES: Mapping[str, tuple[str, ...]] = {
    "running": ("num_requests_running", "num_running_reqs", "batch_current_size", "inflight_requests"),
    "waiting": ("num_requests_waiting", "num_queue_reqs", "queue_size", "queued_requests"),
    "kv": ("kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage", "kv_cache_utilization"),
    "finished": ("request_success", "num_requests", "requests"),
    "prompt": ("prompt_tokens",),
    "answer": ("generation_tokens",),
    "preempted": ("num_preemptions",),
    "queries": ("prefix_cache_queries", "gpu_prefix_cache_queries"),
    "hits": ("prefix_cache_hits", "gpu_prefix_cache_hits"),
    "from_cache": ("cached_tokens",),  # of the prompt tokens
    "cached": ("cache_hit_rate", "gpu_prefix_cache_hit_rate", "kv_cache_hit_rate"),
    "ttft": ("time_to_first_token_seconds",),
    "tpot": ("inter_token_latency_seconds", "time_per_output_token_seconds", "request_mean_time_per_token_duration"),
    "e2e": ("e2e_request_latency_seconds", "request_duration_seconds", "request_duration"),
    "queue": ("request_queue_time_seconds", "queue_time_seconds", "request_queue_duration"),
    "input": ("request_prompt_tokens", "prompt_tokens_histogram", "request_input_length", "input_sequence_tokens"),
    "output": (
        "request_generation_tokens",
        "generation_tokens_histogram",
        "request_generated_tokens",
        "output_sequence_tokens",
    ),
}
_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "whole request", "queue": "wait in the queue"}
_TRITON = "nv_inference_"


@dataclass(slots=True, kw_only=True)
class Series:
    """One metric under one set of labels: its values, and their times where they are written [s]."""

    name: str
    labels: Mapping[str, str]
    values: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Of a counter: its increase over the values that there are, a restart added; its value where it has one."""
        return self.values[0] if len(self.values) == 1 else sum(self.steps)

    @property
    def steps(self) -> list[float]:
        """Increase of a counter from each value to the next; one that falls began again at 0."""
        return [after - before if after >= before else after for before, after in zip(self.values, self.values[1:])]

    @property
    def restarts(self) -> int:
        """How often a counter began again."""
        return sum(after < before for before, after in zip(self.values, self.values[1:]))


@dataclass(slots=True, kw_only=True)
class Metrics:
    """All series, by name and labels."""

    series: dict[Any, Series] = field(default_factory=dict)

    def named(self, wanted: Callable[[str], bool]) -> list[Series]:
        """Series whose names are wanted and that have values."""
        return [each for each in self.series.values() if each.values and wanted(each.name)]


def told_of(reading: Reading, metrics: Metrics, asked: Asked) -> None:
    """Figures of what is known of the metrics, and what follows from them.

    Parameters
    ----------
    reading
        Takes figures, notes and pieces.
    metrics
        All series that were read.
    asked
        Its name and model are those of the fleet that follows, its time zone that of the load by hours.
    """
    every = metrics.named(lambda _: True)
    reading.show("metrics", len({each.name for each in every}))
    reading.show("series", len(every))
    times = sorted({time for each in every for time in each.times})
    if len(times) > 1:
        reading.show("first time", _said(times[0]))
        reading.show("last time", _said(times[-1]))
        reading.show("step", float(np.median(np.diff(times))), "s")
        reading.understood["times"] = "in UTC"
    known = [_engines_told(reading, every, asked), _devices_told(reading, every), _triton_told(reading, every)]
    if not any(known):
        _others_told(reading, every)
        reading.note(
            "none of these metrics is known: those of vLLM, SGLang, TGI, TensorRT-LLM, Dynamo, DCGM and Triton are"
        )


def _said(time_s: float) -> str:
    try:
        return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time_s:g} s"


def is_known(name: str) -> bool:
    """Whether a metric is one of an engine or a device that is known here."""
    return bool(_ENGINE.fullmatch(name)) or name.startswith(("DCGM_FI_", _TRITON))


# serving engines


def _stem(name: str) -> tuple[str, str]:
    """What follows the engine's name, without _total and without the part of a histogram; and that part."""
    found = _ENGINE.fullmatch(name)
    stem, part = (found.group(2) if found else ""), ""
    for each in ("sum", "count", "bucket"):
        if stem.endswith(f"_{each}"):
            stem, part = stem.removesuffix(f"_{each}"), each
    return stem.removesuffix("_total"), part


_BROKEN = ("abort", "error")  # how vLLM calls it


class Engine:
    """Metrics of one model by role and part of a histogram."""

    def __init__(self, series: Iterable[Series]) -> None:
        self.by_stem: defaultdict[tuple[str, str], list[Series]] = defaultdict(list)
        for each in series:
            self.by_stem[_stem(each.name)].append(each)

    def of(self, role: str, part: str = "") -> list[Series]:
        """The series of a role, under the newest of its names that is there."""
        return next((self.by_stem[stem, part] for stem in _ROLES[role] if (stem, part) in self.by_stem), [])

    def total(self, role: str, part: str = "") -> float | None:
        """A counter, summed over its series; None where there is none."""
        found = self.of(role, part)
        return sum(each.total for each in found) if found else None

    def gauge(self, role: str) -> tuple[float, float] | None:
        """Mean and p95 over the values of a gauge, summed over what was seen at one time."""
        found = self.of(role)
        if not found:
            return None
        if role == "kv":  # a share: of the engines together their mean
            return _spread([value for each in found for value in each.values])
        return _spread(np.sum([_same_length(each.values, len(found[0].values)) for each in found], axis=0).tolist())

    def mean(self, role: str) -> float | None:
        """Mean of a histogram."""
        total, count = self.total(role, "sum"), self.total(role, "count")
        return total / count if total is not None and count else None

    def quantile(self, role: str, q: float) -> tuple[float, float] | None:
        """A quantile of a histogram, read off between the bounds of its bucket; and the lower of them."""
        counts: defaultdict[float, float] = defaultdict(float)
        for each in self.of(role, "bucket"):
            try:
                counts[float(each.labels.get("le", "nan").replace("+Inf", "inf"))] += each.total
            except ValueError:
                continue
        bounds = sorted(bound for bound in counts if bound == bound)
        if not bounds or counts[bounds[-1]] <= 0:
            return None
        rank, below, low = q * counts[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            if counts[bound] >= rank:
                inside = counts[bound] - below
                high = low if bound == np.inf else bound
                return low + (high - low) * ((rank - below) / inside if inside > 0 else 1.0), low
            below, low = counts[bound], bound
        return None


def _same_length(values: Sequence[float], length: int) -> list[float]:
    """Values cut or filled with their last to a length."""
    return list(values[:length]) + [values[-1]] * max(length - len(values), 0)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.percentile(values, 95))


def _engines_told(reading: Reading, every: Iterable[Series], asked: Asked) -> bool:
    models: defaultdict[str, list[Series]] = defaultdict(list)
    for each in every:
        if _ENGINE.fullmatch(each.name) and not each.name.endswith(("_created", "_info")):
            labels = each.labels
            model = labels.get("model_name") or labels.get("model") or labels.get("name") or ""
            models[model if model in models or len(models) < _MOST_MODELS else "other models"].append(each)
    if not models:
        return False
    reading.tool = " and ".join(sorted({found.group(1) for series in models.values() for each in series
                                        if (found := _ENGINE.fullmatch(each.name))}))  # fmt: skip
    restarts = sum(each.restarts for series in models.values() for each in series if each.name.endswith("_total"))
    if restarts:
        reading.note(f"counters began again {restarts:,} times (an engine restarted): what came after counts on")
    for model, series in sorted(models.items()):
        before = f"{printable(model, 60)}: " if len(models) > 1 else ""
        _engine_told(reading, Engine(series), model, before, asked)
    return True


def _engine_told(reading: Reading, engine: Engine, model: str, before: str, asked: Asked) -> None:
    finished, span = engine.total("finished"), _span_s(engine)
    if finished is None:
        finished = engine.total("e2e", "count")
    rate = finished / span if finished and span else None
    reading.show(f"{before}requests that finished", finished)
    broken = sum(each.total for each in engine.of("finished") if each.labels.get("finished_reason") in _BROKEN)
    if broken:
        reading.show(f"{before}of them aborted or failed", broken)
        reading.note("requests that were aborted or failed count in the rate: engines worked on them, and their tokens "
                     "are among the others")  # fmt: skip
    reading.show(f"{before}rate", rate, "requests/s")
    for role, label in (("prompt", "prompt tokens"), ("answer", "answer tokens")):
        tokens = engine.total(role)
        reading.show(f"{before}{label}", tokens, "tokens")
        if tokens is not None and span:
            reading.show(f"{before}{label} a second", tokens / span, "tokens/s")
    for role, label, unit in (("running", "running at once", "requests"), ("waiting", "waiting", "requests"),
                              ("kv", "KV cache in use", "of 1")):  # fmt: skip
        gauge = engine.gauge(role)
        if gauge is not None:
            reading.show(f"{before}{label}, mean", gauge[0], unit)
            reading.show(f"{before}{label}, p95", gauge[1] if gauge[1] != gauge[0] else None, unit)
    for role, label in _LATENCIES.items():
        reading.show(f"{before}{label}, mean", engine.mean(role), "s")
        if high := engine.quantile(role, 0.95):
            between = "s, between the bounds of its bucket" if high[0] > high[1] else "s at least, beyond all buckets"
            reading.show(f"{before}{label}, p95", high[0], between)
    reading.show(f"{before}preemptions", engine.total("preempted"))
    shared = _shared(engine)
    reading.show(f"{before}prompt tokens from the prefix cache", shared, "of 1")
    _fleet_told(reading, engine, model, rate, shared, asked, finished)


def _shared(engine: Engine) -> float | None:
    hits, queries = engine.total("hits"), engine.total("queries")
    if hits is not None and queries:
        return min(hits / queries, 1.0)
    cached, prompts = engine.total("from_cache"), engine.total("prompt")
    if cached is not None and prompts:  # over the whole time; a rate is of the last moment
        return min(cached / prompts, 1.0)
    gauge = engine.gauge("cached")
    return gauge[0] if gauge and 0 <= gauge[0] <= 1 else None


def _span_s(engine: Engine) -> float | None:
    """Time that the counters cover, of the one that says the most of requests.  [s]"""
    for role, part in (("finished", ""), ("e2e", "count"), ("prompt", ""), ("answer", "")):
        times = [each.times for each in engine.of(role, part) if len(each.times) > 1]
        if times:
            return max(each[-1] for each in times) - min(each[0] for each in times)
    return None


def _fleet_told(
    reading: Reading, engine: Engine, model: str, rate: float | None, shared: float | None, asked: Asked,
    finished: float | None,
) -> None:  # fmt: skip
    name = asked.name or name_of(model.rsplit("/", 1)[-1]) or "engine"
    fleet: dict[str, Any] = {"name": name}
    for role, tokens, key, label in (("input", "prompt", "input_tokens", "prompt"),
                                     ("output", "answer", "output_tokens", "answer")):  # fmt: skip
        mean, total, high = engine.mean(role), engine.total(tokens), engine.quantile(role, 0.95)
        if mean is None and total and finished:
            mean = total / finished
        if not mean or mean < 1:
            continue
        reading.show(f"{label}, mean ({name})", mean, "tokens")
        same_bucket = high is None or high[1] < mean or high[0] <= high[1]  # or beyond the last bound
        fleet[key] = max(round(mean), 1) if same_bucket or high is None else spread_of({"mean": mean, "p95": high[0]})
        if not same_bucket and high is not None:
            reading.show(f"{label}, p95 ({name})", high[0], "tokens, between the bounds of its bucket")
    if "input_tokens" not in fleet or "output_tokens" not in fleet:
        return
    fleet = {"name": name, "model": fleet_model(reading, asked, [model] if model else []), **fleet}
    if rate:
        fleet["qpm"] = float(f"{rate * 60:.6g}")
    else:
        reading.note("a scrape has no time: no rate follows; the fleet's qpm is yours to give (a range has it)")
    if shared:
        fleet["prefix_cached"] = f"{shared:.2%}".replace("%", " %")
    profile = load_profile(engine, asked.time_zone) if rate else None
    if profile:
        reading.pieces.append(profile_piece(name, profile))
        fleet["load_profile"] = reading.pieces[-1].name
    says = f"a fleet for the load of {printable(reading.source)}"
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]}, says=says))


def load_profile(engine: Engine, zone: str) -> list[float] | None:
    """Requests by hour of the week, else of the day, of the time zone; None where hours are missing."""
    found = engine.of("finished") or engine.of("e2e", "count")
    edges = sorted({time for each in found for time in each.times})
    steps = ((begin, end, step) for each in found for step, begin, end in zip(each.steps, each.times, each.times[1:]))
    return weights_by_hour(pairwise(edges), steps, zone)


def profile_piece(name: str, weights: Sequence[float]) -> Piece:
    """The file of a load profile: weights by hour of a day or week, of a fleet by its name."""
    text = csv_text(["hour", "weight"], ([hour, f"{weight:.6g}"] for hour, weight in enumerate(weights)))
    says = f"load over {'a week' if len(weights) == WEEK_HOURS else 'a day'}"
    return Piece(what="profile", name=f"{name}.load.csv", text=text, says=says)


def weights_by_hour(
    seen: Iterable[tuple[float, float]], counted: Iterable[tuple[float, float, float]], zone: str
) -> list[float] | None:
    """Requests a second by hour of the week, else of the day, of a time zone; None where hours are missing.  [1/s]

    Parameters
    ----------
    seen
        Times that are covered, from and to, with requests or without; each a week at most.  [s]
    counted
        Times, from and to, and the requests that came in them.  [s, s, count]
    zone
        Whose hours they are.
    """
    came: defaultdict[int, float] = defaultdict(float)
    covered: defaultdict[int, float] = defaultdict(float)
    for begin, end in seen:
        for hour, seconds in _hours(begin, end, zone):
            covered[hour] += seconds
    for begin, end, step in counted:
        for hour, seconds in _hours(begin, end, zone):
            came[hour] += step * seconds / (end - begin)
    if len(covered) < WEEK_HOURS:
        for sums in (came, covered):
            for hour in [hour for hour in sums if hour >= DAY_HOURS]:
                sums[hour % DAY_HOURS] += sums.pop(hour)
    if len(covered) not in (DAY_HOURS, WEEK_HOURS) or not sum(came.values()):
        return None
    return [came[hour] / covered[hour] for hour in range(len(covered))]


def _hours(begin: float, end: float, zone: str) -> Iterable[tuple[int, float]]:
    """Hours of the week (0: Monday, 0:00) that a time falls on, and its seconds in each; none of more than a week."""
    if end - begin > WEEK_HOURS * 3600:
        return
    while begin < end:
        until = min((begin // 900 + 1) * 900, end)  # zones differ by quarters of an hour
        local = datetime.fromtimestamp(begin, zone_of(zone))
        yield local.weekday() * DAY_HOURS + local.hour, until - begin
        begin = until


# accelerators


def _devices_told(reading: Reading, every: Iterable[Series]) -> bool:
    devices: dict[tuple[str, str], dict[str, list[float]]] = {}
    models: dict[tuple[str, str], str] = {}
    cut = 0
    for each in every:
        if not each.name.startswith("DCGM_FI_"):
            continue
        labels = {plain.lower(): value for plain, value in each.labels.items()}
        device = labels.get("uuid") or labels.get("gpu_uuid") or labels.get("gpu") or labels.get("device") or ""
        node = labels.get("hostname") or labels.get("node") or labels.get("instance") or ""
        key = (node, device)
        if key not in devices and len(devices) >= _MOST_DEVICES:
            continue
        cut += bool(labels.get("gpu_i_profile"))
        figures = devices.setdefault(key, {})
        if not (labels.get("gpu_i_profile") and "_FB_" in each.name):  # memory of a slice is not that of its device
            figures.setdefault(each.name.removeprefix("DCGM_FI_"), []).extend(each.values)
        models.setdefault(key, labels.get("modelname", ""))
    if not devices:
        return False
    reading.tool = reading.tool if reading.tool != "Prometheus" else "dcgm-exporter"
    for name, label, unit in (("DEV_GPU_UTIL", "device busy", "%"), ("PROF_GR_ENGINE_ACTIVE", "engines active", "of 1"),
                              ("PROF_PIPE_TENSOR_ACTIVE", "tensor cores active", "of 1"),
                              ("DEV_POWER_USAGE", "power of a device", "W"),
                              ("DEV_FB_USED", "memory in use of a device", "MiB")):  # fmt: skip
        values = [value for figures in devices.values() for value in figures.get(name, ())]
        if values:
            mean, high = _spread(values)
            reading.show(f"{label}, mean", mean, unit)
            reading.show(f"{label}, p95", high, unit)
    if cut:
        reading.note("some metrics are of MIG slices: their devices count as whole ones")
    nodes: Counter[tuple[str, str, float | None]] = Counter()
    for key, figures in devices.items():
        memory = [figures[part][-1] for part in ("DEV_FB_USED", "DEV_FB_FREE") if part in figures]
        reserved = figures.get("DEV_FB_RESERVED", [0.0])[-1]
        size = round(sum(memory) + reserved, -2) * 2.0**20 if len(memory) == 2 and sum(memory) > 0 else None
        nodes[key[0], models[key], size] += 1
    if any(model for _, model, _ in nodes):
        machines_told(reading, [Node(name=node, device=model, devices=count, memory_bytes=size)
                                for (node, model, size), count in nodes.items()])  # fmt: skip
    else:
        reading.note("no metric names its device (modelName): what is owned does not follow")
    return True


# Triton


def _triton_told(reading: Reading, every: Iterable[Series]) -> bool:
    models: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for each in every:
        if each.name.startswith(_TRITON) and (len(models) < _MOST_MODELS or each.labels.get("model", "") in models):
            models[each.labels.get("model", "")][each.name.removeprefix(_TRITON)] += each.total
    if not models:
        return False
    reading.tool = "Triton"
    for model, figures in sorted(models.items()):
        before = f"{printable(model, 60) or 'no name'}: "
        good, bad = figures["request_success"], figures["request_failure"]
        reading.show(f"{before}requests that succeeded", good)
        reading.show(f"{before}requests that failed", bad)
        if figures["exec_count"]:
            reading.show(f"{before}inferences of an execution", figures["count"] / figures["exec_count"])
        for key, label in (("request_duration_us", "whole request"), ("queue_duration_us", "wait in the queue"),
                           ("compute_infer_duration_us", "compute")):  # fmt: skip
            if key in figures and good:
                reading.show(f"{before}{label}, mean", figures[key] / good * 1e-6, "s")
    reading.note("Triton's metrics count requests, not tokens: no fleet follows from them")
    return True


def _others_told(reading: Reading, every: Iterable[Series]) -> None:
    names: defaultdict[str, list[float]] = defaultdict(list)
    for each in every:
        if each.name in names or len(names) < _MOST_MODELS:
            names[each.name].extend(each.values[:100_000])
    for name, values in names.items():
        reading.show(f"{printable(name) or 'a query without a name'}, mean", float(np.mean(values)))
