"""How a serving row was run: device, engine, formats, lengths, and the layouts that it may have had.

What a row does not state is its engine's documented default, or a convention of its kind of benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device
from planner.estimate.engines import engine_limits
from planner.validate.rows import MeasuredRow
from planner.validate.rows_machine import device_of
from planner.validate.serving_rows import ServingRow

# Engine, as rows name it -> the constants and limits that it goes by.
_ENGINES = (
    ("tensorrt", "trt-llm"), ("trt", "trt-llm"), ("sglang", "sglang"), ("vllm", "vllm"),
    ("fastertransformer", "fastertransformer"), ("turbomind", "fastertransformer"), ("lmdeploy", "fastertransformer"),
    ("llama.cpp", "llama.cpp"), ("mlc", "mlc-llm"), ("neuron", "neuron"), ("sax", "jetstream"),
    ("jetstream", "jetstream"),
)  # fmt: skip
_LOCAL = ("llama.cpp", "mlc-llm")  # their 4-bit files quantise embeddings and head too
OLD_TENSORRT = "trt-llm-0"  # compiled engines, before the releases from 1.0 on that run on PyTorch
_COMPILED = re.compile(r"^0\.|TensorRT 10")

_FORMATS = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp4", "nvfp4"), ("q4_k", "q4_k_m"), ("int4", "int4"), ("awq", "int4"),
    ("gptq", "int4"), ("4-bit", "int4"), ("fp8", "fp8"), ("int8", "int8"), ("bf16", "bf16"), ("fp16", "fp16"),
    ("f16", "fp16"), ("fp32", "fp32"),
)  # fmt: skip
_CACHE_WITH = {"fp8": "fp8", "nvfp4": "fp8"}  # of checkpoints made for TensorRT-LLM: their cache is calibrated too

# InferenceX draws prompt and answer evenly from 0.8 to 1.0 of its three nominal shapes (README of the measurements).
_INFERENCEX = {(1024, 1024), (1024, 8192), (8192, 1024)}
_INFERENCEX_MEAN = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an MLPerf task is made of; prompts as the task's data set has them (recalled, 2026-11-21)."""

    input_tokens: float
    output_tokens: float
    beams: int = 1


_MLPERF = (
    ("gptj", Task(input_tokens=900, output_tokens=69, beams=4)),  # CNN/DailyMail; 69: tokens per sample of the rules
    ("mixtral", Task(input_tokens=250, output_tokens=145.9)),  # OpenOrca, GSM8K, MBXP
    ("llama2-70b", Task(input_tokens=294, output_tokens=294.5)),  # OpenOrca
)
SERVER_SHARE = 0.9  # of the offline rate: a server run keeps its 99th percentile, so its queues must stay short
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
    server: bool  # answers must come in time, not only in number


def serving_device(row: ServingRow, catalog: Catalog) -> Device | None:
    """The catalog's device of a row; None when no name fits."""
    names = (row.accel_class, row.accelerator)
    found = (device_of(MeasuredRow(accelerator=name), catalog) for name in names if name)
    return next((device for device in found if device), None)


def serving_engine(row: ServingRow) -> str:
    """Whose constants a row goes by; the row's own name for an engine that is not known."""
    name = (row.engine or "").lower()
    plain = next((engine for word, engine in _ENGINES if word in name), name)
    if plain == "trt-llm" and _COMPILED.search(row.engine_version or ""):
        return OLD_TENSORRT
    return plain


def weight_format(row: ServingRow) -> str:
    """Format of the weights: as stated, else as the model's name says, else 16 bits."""
    if "gpt-oss" in (row.model or ""):
        return "mxfp4"  # the only format of its checkpoints
    for text in (row.weight_precision, row.model):
        if found := next((own for word, own in _FORMATS if word in (text or "").lower()), None):
            return "q4_k_m" if found == "int4" and serving_engine(row) in _LOCAL else found
    return "bf16"


def cache_format(row: ServingRow) -> str:
    """Format of the cache: as stated, else 8 bits where the checkpoint's calibration has it, else 16 bits."""
    stated = next((own for word, own in _FORMATS if word in (row.kv_precision or "").lower()), None)
    if stated:
        return stated
    calibrated = serving_engine(row) in ("trt-llm", OLD_TENSORRT) or "FP8-KV" in (row.model or "")
    return _CACHE_WITH.get(weight_format(row), "bf16") if calibrated else "bf16"


def load_of(row: ServingRow) -> Load:
    """What a row's replica was given; a whole data set has the means of its task."""
    given, made, beams = row.input_tokens, row.output_tokens, 1
    if row.load == "mlperf":
        task = next((own for word, own in _MLPERF if word in (row.model or "").lower()), _MLPERF[-1][1])
        given, made, beams = given or task.input_tokens, made or task.output_tokens, task.beams
    if row.load == "single":
        given, made = 0.0, made or _SINGLE_TOKENS
    if row.load == "closed" and (given, made) in _INFERENCEX:
        given, made = _INFERENCEX_MEAN * (given or 0.0), _INFERENCEX_MEAN * (made or 0.0)
    pile = min(max(OFFLINE_TOKENS / float(made or 256.0), OFFLINE_REQUESTS[0]), OFFLINE_REQUESTS[1])
    requests = (row.concurrency if row.load == "offline" else None) or (BENCH_REQUESTS if row.load == "burst" else pile)
    return Load(
        kind=row.load,
        input_tokens=float(given if given is not None else 512.0),
        output_tokens=float(made or 256.0),
        clients=float(row.concurrency or 1.0),
        requests=float(requests),
        beams=beams,
        requests_per_s=float(row.request_rate or 0.0),
        server="server" in (row.scenario or "").lower(),
    )


def splits_of(row: ServingRow, arch: Architecture, device: Device) -> list[Split]:
    """The layouts that a row may have had: the stated one, else every even one; the fastest is predicted.

    Tables of mixture-of-experts models at full load hide whether attention was data parallel.
    """
    devices, pp = int(row.n_accel or 1), int(row.pp or 1)
    if device.kind != "gpu" or row.engine in ("vllm-tpu",):  # degrees count cores there
        return [Split(tp=devices, pp=1, dp=1, ep=1, replicas=1)]
    if row.tp is None:
        powers = [tp for tp in (1, 2, 4, 8) if devices % tp == 0]
        return [Split(tp=tp, pp=1, dp=1, ep=1, replicas=devices // tp) for tp in powers]
    tp, dp = int(row.tp), max(int(row.dp or 1), 1)
    ep = min(max(int(row.ep or 1), 1), tp * dp) if arch.is_moe else 1
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
    return float(engine_limits("trt-llm" if engine == OLD_TENSORRT else engine, device).max_num_seqs)
