"""How a serving row was run: device, engine, formats, lengths, and the layouts that it may have had.

What a row does not state is its engine's documented default, or a convention of its kind of benchmark: tasks of MLPerf
Inference with language models have lengths of their data sets, and latencies that a run must keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device
from planner.csvtable import Columns, kinds_of, read_table
from planner.estimate.engines import engine_limits
from planner.estimate.serving_formats import FILE_FORMATS, FORMATS
from planner.validate.rows import HOUSE, MeasuredRow
from planner.validate.rows_facts import device_of
from planner.validate.serving_rows import ServingRow

TASKS_TABLE = "mlperf_tasks.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of rounds v3.1 to v5.1; latencies are 99th percentiles [s], None where the rules have none."""

    task: str
    rounds: str
    input_tokens: float
    output_tokens: float
    variation: float  # coefficient of variation of both lengths (assumed)
    beams: int
    requests: int  # of the data set, or as many as an offline run sends at least
    server_ttft_s: float | None = None
    server_tpot_s: float | None = None
    server_latency_s: float | None = None  # of the whole answer
    interactive_ttft_s: float | None = None
    interactive_tpot_s: float | None = None
    source: str
    lengths_source: str
    as_of: str
    status: str

    def limits(self, scenario: str) -> tuple[float, float] | None:
        """First token and time per token that a scenario of the task must keep [s]; None where it has no such run."""
        text = scenario.lower()
        if "offline" in text:
            return (float("inf"), float("inf"))
        if "interactive" in text:
            pair = (self.interactive_ttft_s, self.interactive_tpot_s)
        elif self.server_latency_s:  # an answer as a whole: what its tokens may take
            pair = (self.server_latency_s, self.server_latency_s / self.output_tokens)
        else:
            pair = (self.server_ttft_s, self.server_tpot_s)
        return (pair[0], pair[1]) if pair[0] and pair[1] else None


@lru_cache(maxsize=1)
def mlperf_tasks() -> tuple[Task, ...]:
    """Every task of the table."""
    columns = Columns(kinds=kinds_of(Task), required=("task", "input_tokens", "output_tokens", "source", "as_of"))
    return tuple(Task(**cells) for _, cells in read_table(HOUSE / TASKS_TABLE, columns))


def task_of(model: str | None) -> Task | None:
    """The task of a model as results name it (llama2-70b-99.9, llama3.1-8b-edge); None for one not in the table."""
    name = (model or "").lower()
    found = [task for task in mlperf_tasks() if name == task.task or name.startswith(f"{task.task}-")]
    return max(found, key=lambda task: len(task.task), default=None)


def unknown_task(model: str | None, scenario: str) -> str | None:
    """Why a run of MLPerf cannot be told: no known rule has its task, or its scenario; None when it can be."""
    task = task_of(model)
    if task is None:
        known = ", ".join(one.task for one in mlperf_tasks())
        return f"MLPerf task '{model}' is not known, and so neither are its lengths and limits; known: {known}"
    if task.limits(scenario) is None:
        return f"MLPerf task {task.task} has no limits for '{scenario}'"
    return None


# Engine, as rows name it -> the constants and limits that it goes by.
_ENGINES = (
    ("tensorrt", "trt-llm"), ("trt", "trt-llm"), ("sglang", "sglang"), ("vllm", "vllm"),
    ("fastertransformer", "fastertransformer"), ("turbomind", "lmdeploy"), ("lmdeploy", "lmdeploy"),
    ("llama.cpp", "llama.cpp"), ("mlc", "mlc-llm"), ("neuron", "neuron"), ("sax", "jetstream"),
    ("jetstream", "jetstream"),
)  # fmt: skip
_LOCAL = {"llama.cpp": "q4_k_m", "mlc-llm": "q4f16"}  # their 4-bit files quantise embeddings and head too
# Releases of an engine that was written anew since: their own name, and the versions that are theirs. TensorRT-LLM runs
# on PyTorch from 1.0 on and was compiled before; vLLM has run on its second engine by default since 0.8.
_BEFORE = {
    "trt-llm": ("trt-llm-0", re.compile(r"^0\.|TensorRT 10")),
    "vllm": ("vllm-0", re.compile(r"(?<![\d.])0\.[0-7]\.\d|2024")),
}
OLD_TENSORRT = _BEFORE["trt-llm"][0]
_NOW = {old: engine for engine, (old, _) in _BEFORE.items()}

_FORMATS = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp4", "nvfp4"), *((name, name) for name in FILE_FORMATS),
    ("q3_k", "q3_k_m"), ("q4_k", "q4_k_m"), ("q5_k", "q5_k_m"), ("q8", "q8_0"), ("int4", "int4"), ("awq", "int4"),
    ("gptq-int8", "int8"), ("gptq-8bit", "int8"), ("gptq", "int4"), ("4-bit", "int4"), ("4bit", "int4"),
    ("nf4", "int4"), ("w8a8", "int8"), ("w4a", "int4"), ("w8a16", "int8"), ("float8", "fp8"), ("fp8", "fp8"),
    ("int8", "int8"), ("8-bit", "int8"), ("8bit", "int8"), ("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16"),
    ("f16", "fp16"), ("float16", "fp16"), ("half", "fp16"), ("16-bit", "bf16"), ("16bit", "bf16"), ("fp32", "fp32"),
    ("f32", "fp32"), ("float32", "fp32"),
)  # fmt: skip
_BITS = re.compile(r"(\d+(?:\.\d+)?) ?bpw")  # of a weight, as ExLlamaV2 and 3 name their checkpoints
_BY_BITS = ("q2_k", "q3_k_m", "int4", "q5_k_m", "q6_k", "int8")
_UNSAID = ("", "auto", "default", "none", "same as weights")  # cells that leave the format to the engine
_CACHE_WITH = {"fp8": "fp8", "nvfp4": "fp8"}  # of checkpoints made for TensorRT-LLM: their cache is calibrated too

# InferenceX draws prompt and answer evenly from 0.8 to 1.0 of its three nominal shapes (README of the measurements).
_INFERENCEX = {(1024, 1024), (1024, 8192), (8192, 1024)}
_INFERENCEX_MEAN = 0.9


# ShareGPT, as its first thousand conversations are sampled by benchmarks: answers of 200 tokens in the mean, with a
# standard deviation nearly as large. Means of data sets are fractions; lengths that are set are whole numbers.
SHAREGPT_VARIATION = 0.95
OPEN_REQUESTS = 300.0  # of a run at a rate: some hundred (README of the measurements)
_ONE_RUN = "bench serve; fixed"  # of as many requests as it sends at most, the first of all clients among them
LONG_TOKENS, FEWEST_REQUESTS = 2e6, 100.0  # a benchmark of long requests sends fewer
BENCH_REQUESTS = 1000.0  # `vllm bench serve` sends so many when it is not told otherwise
OFFLINE_TOKENS, OFFLINE_REQUESTS = 3e6, (1000.0, 30000.0)  # of a pile of unstated size: output, and bounds
_SINGLE_TOKENS = 256.0  # of a batch-1 decode whose length is not stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One way in which a row's devices may have been used."""

    tp: int
    pp: int
    dp: int
    ep: int
    replicas: int

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the replicas were given.  [tokens], [count]"""

    kind: str
    input_tokens: float
    output_tokens: float
    clients: float  # closed loop, or sequences of a static batch
    requests: float  # of a pile
    beams: int
    requests_per_s: float  # offered in an open loop
    variation: float = 0.0  # coefficient of variation of the lengths
    first_wave: float = 0.0  # share of a closed loop's requests that are their clients' first
    ttft_limit_s: float = float("inf")  # that 99 of 100 requests keep
    tpot_limit_s: float = float("inf")
    apart: bool = False  # prompts and answers are worked on by different replicas


def serving_device(row: ServingRow, catalog: Catalog) -> Device | None:
    """The catalog's device of a row; None when no name fits."""
    names = (row.accel_class, row.accelerator)
    found = (device_of(MeasuredRow(accelerator=name), catalog) for name in names if name)
    return next((device for device in found if device), None)


def serving_engine(row: ServingRow) -> str:
    """Whose constants a row goes by; the row's own name for an engine that is not known."""
    name = (row.engine or "").lower()
    plain = next((engine for word, engine in _ENGINES if word in name), name)
    old, versions = _BEFORE.get(plain, (plain, None))
    return old if versions is not None and versions.search(row.engine_version or "") else plain


def weight_format(row: ServingRow) -> str:
    """Format of the weights: as stated, else as the model's name says, else 16 bits."""
    if "gpt-oss" in (row.model or ""):
        return "mxfp4"  # the only format of its checkpoints
    for text in (row.weight_precision, row.model):
        if found := _format_in(text):
            return _LOCAL.get(serving_engine(row), found) if found == "int4" else found
    return "bf16"


def _format_in(text: str | None) -> str | None:
    """The format that some words name."""
    words = (text or "").lower()
    if bits := _BITS.search(words):
        return min(_BY_BITS, key=lambda name: abs(FORMATS[name].bits - float(bits[1])))
    return next((own for word, own in _FORMATS if word in words), None)


def unread_cell(row: ServingRow) -> str:
    """Which cell says something that no prediction knows, and would take for something else; "" where none does."""
    stated, cache, load = row.weight_precision or "", row.kv_precision or "", row.load
    if stated.lower() not in _UNSAID and not (_format_in(stated) or _format_in(row.model)):
        return f"weight_precision '{stated}' is no format that is known: {', '.join(FORMATS)}"
    if cache.lower() not in _UNSAID and not _format_in(cache):
        return f"kv_precision '{cache}' is no format that is known: {', '.join(FORMATS)}"
    if load == "closed" and not row.concurrency:
        return "a closed loop needs its number of clients (concurrency)"
    return "" if load != "open" or row.request_rate else "an open loop needs its rate of requests (request_rate)"


def cache_format(row: ServingRow) -> str:
    """Format of the cache: as stated, else 8 bits where the checkpoint's calibration has it, else 16 bits."""
    if stated := _format_in(row.kv_precision):
        return stated
    calibrated = serving_engine(row) in ("trt-llm", OLD_TENSORRT) or "FP8-KV" in (row.model or "")
    return _CACHE_WITH.get(weight_format(row), "bf16") if calibrated else "bf16"


def load_of(row: ServingRow) -> Load:
    """What a row's replica was given; a whole data set has the means of its task, and its limits."""
    given, made, beams, sent, limits, variation = row.input_tokens, row.output_tokens, 1, None, None, 0.0
    task = task_of(row.model) if row.load == "mlperf" else None
    if task is not None:
        given, made, beams, sent = given or task.input_tokens, made or task.output_tokens, task.beams, task.requests
        limits, variation = task.limits(row.scenario or ""), task.variation
    if row.load == "single":  # from an empty context, but for tests at a depth; a prompt by itself is as long as it is
        given, made = (given if "depth" in (row.scenario or "") else 0.0), made or given or _SINGLE_TOKENS
    if row.load == "closed" and (given, made) in _INFERENCEX:
        given, made = _INFERENCEX_MEAN * (given or 0.0), _INFERENCEX_MEAN * (made or 0.0)
    pile = min(max(OFFLINE_TOKENS / float(made or 256.0), OFFLINE_REQUESTS[0]), OFFLINE_REQUESTS[1])
    asked = row.concurrency if row.load in ("offline", "burst") else sent
    bench = min(max(LONG_TOKENS / (float(given or 512.0) + float(made or 256.0)), FEWEST_REQUESTS), BENCH_REQUESTS)
    requests = asked or {"burst": bench, "open": OPEN_REQUESTS}.get(row.load, pile)
    if "sharegpt" in (row.scenario or "").lower() or (row.load == "burst" and float(made or 0.0) % 1):
        variation = SHAREGPT_VARIATION
    variation = variation if row.output_variation is None else row.output_variation
    first, each = limits or (float("inf"), float("inf"))
    return Load(
        kind=row.load,
        input_tokens=float(given if given is not None else 512.0),
        output_tokens=float(made or 256.0),
        clients=float(row.concurrency or 1.0),
        requests=float(requests),
        beams=beams,
        requests_per_s=float(row.request_rate or 0.0),
        variation=variation,
        first_wave=min(float(row.concurrency or 1.0) / bench, 1.0) if _ONE_RUN in (row.scenario or "") else 0.0,
        ttft_limit_s=first,
        tpot_limit_s=each,
        apart="disagg" in (row.scenario or "").lower(),
    )


def splits_of(row: ServingRow, arch: Architecture, device: Device) -> list[Split]:
    """The layouts that a row may have had: the stated one, else every even one; the fastest is predicted.

    Tables of mixture-of-experts models at full load hide whether attention was data parallel.

    Parameters
    ----------
    row
        Devices and degrees; one that is not stated is 1, but for tensor parallelism.
    arch
        Shape of its model: with experts attention may be data parallel.
    device
        Of the row; on others than GPUs degrees count cores, and one split of all devices is taken.
    """
    devices, pp = int(row.n_accel or 1), int(row.pp or 1)
    if device.kind != "gpu" or row.engine in ("vllm-tpu",):  # degrees count cores there
        return [Split(tp=devices, pp=1, dp=1, ep=1, replicas=1)]
    if row.tp is None:
        powers = [tp for tp in (1, 2, 4, 8) if devices % tp == 0]
        plain = [Split(tp=tp, pp=1, dp=1, ep=1, replicas=devices // tp) for tp in powers]
        apart = [_attention_parallel(one.tp, 1, one) for one in plain if arch.is_moe and one.tp > 1]
        return [*plain, *(split for pair in apart for split in pair)]
    tp, dp = int(row.tp), max(int(row.dp or 1), 1)
    ep = min(max(int(row.ep or 1), 1), tp * dp) if arch.is_moe else 1
    if tp * pp * dp > devices and tp % dp == 0:  # SGLang's flag cuts the tensor ranks into groups for attention
        tp = tp // dp
    replicas = devices // (tp * pp * dp) if devices % (tp * pp * dp) == 0 else 1
    stated = Split(tp=tp, pp=pp, dp=dp, ep=ep, replicas=max(replicas, 1))
    hidden = arch.is_moe and row.dp is None and row.load == "offline" and tp > 1
    return [stated, *_attention_parallel(tp, pp, stated)] if hidden else [stated]


def _attention_parallel(tp: int, pp: int, stated: Split) -> Iterator[Split]:
    yield Split(tp=tp, pp=pp, dp=1, ep=tp, replicas=stated.replicas)
    yield Split(tp=1, pp=pp, dp=tp, ep=tp, replicas=stated.replicas)


def sequence_limit(row: ServingRow, device: Device) -> float:
    """Most sequences that the engine runs at once, whatever fits."""
    if row.load in ("static", "peak", "first", "single", "mlperf"):
        return float("inf")
    engine = serving_engine(row)
    return float(engine_limits(_NOW.get(engine, engine), device).max_num_seqs)
