"""Replicas for tests of load: twelve pairs of a model on devices and a shape of requests, and a plain engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.architecture.load import load_model
from planner.equations.registry import as_float
from planner.equations.serving_memory import GIB
from planner.estimate.machine import Machine
from planner.estimate.serving_constants import ServingConstants
from planner.estimate.serving_formats import serving_peaks
from planner.estimate.serving_open import RequestShape
from planner.estimate.serving_step import Replica, ReplicaLayout
from planner.estimate.serving_work import ServingWork, taken

# Of the order of constants fitted to closed-loop rows of ai-dynamo/aiconfigurator@095f58a51; any would do here.
CONSTANTS = ServingConstants(
    name="of tests",
    bandwidth=0.774,
    compute=0.517,
    link=0.7,
    kernel_unit_s=41.0e-6,
    collective_s=14.5e-6,
    sequence_s=14.5e-6,
    request_s=0.122,
)


def machine(peak_flop_per_s: float, memory_bandwidth: float, link: float, memory_gib: float = 80.0) -> Machine:
    """A machine of eight devices, of round figures."""
    return Machine(
        peak_flop_per_s=peak_flop_per_s,
        mfu=0.4,
        memory_bytes=memory_gib * GIB,
        memory_bandwidth_bytes_per_s=memory_bandwidth,
        pair_bytes_per_s=link,
        all_bytes_per_s=link,
        scale_up_devices=8,
        node_devices=8,
        host_bytes_per_s=63e9,
        inter_node_bytes_per_s=50e9,
    )


MACHINES = {
    "h100": machine(989e12, 3.35e12, 450e9),
    "h200": machine(989e12, 4.8e12, 450e9, 141.0),
    "a100": machine(312e12, 2.04e12, 300e9),
    "l40s": machine(362e12, 0.864e12, 32e9, 48.0),
    "b200": machine(2250e12, 8e12, 900e9, 180.0),
}
EIGHT_BIT = {"h100": 2, "h200": 2, "b200": 2, "l40s": 2, "a100": 1}


def replica_of(model: str, weights: str, cache: str, tp: int, pp: int, device: str, **changes: Any) -> Replica:
    """A model on a device; `changes` replace fields of the machine."""
    arch, where = load_model(model), MACHINES[device]
    half = float(where.peak_flop_per_s)
    peaks = {"fp32": half / 15, "fp16": half, "bf16": half, "fp8": half * EIGHT_BIT[device]}
    return Replica(
        work=ServingWork.of(arch, weights, cache),
        layout=ReplicaLayout(devices=tp * pp, tp=tp, pp=pp),
        machine=Machine(**{**{name: getattr(where, name) for name in where.__slots__}, **changes}),
        peaks=serving_peaks(arch, weights, peaks),
        constants=CONSTANTS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: a replica, requests, the sequences that may run, and how outputs are spread."""

    name: str
    replica: Replica
    shape: RequestShape
    limit: int
    lengths: str = "lognormal"
    requests: int = 12_000


def case(
    name: str, engine: tuple[Any, ...], tokens: tuple[float, float, float, float], limit: int, **more: Any
) -> Case:
    """`tokens`: mean prompt, its E[X^2]/E[X]^2, mean output, its; `engine`: arguments of `replica_of`."""
    prompt, prompt_spread, output, output_spread = tokens
    shape = RequestShape(
        input_tokens=prompt,
        output_tokens=output,
        input_second_moment=prompt_spread * prompt**2,
        output_second_moment=output_spread * output**2,
    )
    return Case(name=name, replica=replica_of(*engine), shape=shape, limit=limit, **more)


def twelve() -> list[Case]:
    """Small and large dense models, experts, a latent cache, a pipeline; short and long prompts and outputs."""
    return [
        case("8b-chat", ("llama-3.1-8b", "bf16", "bf16", 1, 1, "h100"), (500, 1, 200, 1), 256),
        case("8b-spread", ("llama-3.1-8b", "fp8", "fp8", 1, 1, "l40s"), (2000, 1.5, 150, 1.5), 64),
        case("8b-story", ("llama-3.1-8b", "bf16", "bf16", 1, 1, "a100"), (100, 1.3, 800, 2), 256, lengths="geometric"),
        case("8b-document", ("llama-3.1-8b", "fp8", "fp8", 1, 1, "h200"), (12000, 1, 300, 1), 96),
        case("70b-chat", ("llama-3.1-70b", "fp8", "fp8", 4, 1, "h100"), (1500, 1, 400, 1), 256),
        case("70b-spread", ("llama-3.1-70b", "fp8", "fp8", 2, 1, "h200"), (4000, 1.4, 250, 1.4), 128),
        case("70b-pipe", ("llama-3.1-70b", "bf16", "bf16", 4, 2, "a100"), (800, 1.2, 500, 2), 128, lengths="geometric"),
        case("70b-short", ("llama-3.1-70b", "bf16", "bf16", 8, 1, "a100"), (200, 1, 50, 1), 64),
        case("gpt-oss", ("gpt-oss-120b", "mxfp4", "bf16", 4, 1, "h100"), (1024, 1, 1024, 1.2), 256),
        case("deepseek", ("deepseek-v3", "fp8", "fp8", 8, 1, "h200"), (3000, 1.3, 600, 1.3), 256, requests=24_000),
        case(
            "mixtral-few-slots",
            ("mixtral-8x7b", "bf16", "bf16", 2, 1, "h100"),
            (700, 1, 200, 2),
            56,
            lengths="geometric",
            requests=60_000,  # waits for a slot come in rare, long spells
        ),
        case("70b-long", ("llama-3.1-70b", "fp8", "fp8", 2, 1, "b200"), (6000, 1.1, 1500, 1), 200),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """An engine of straight lines, where textbook queues apply; numbers or arrays."""

    step0_s: Any = 0.01
    sequence_s: Any = 0.0
    prompt_token_s: Any = 1e-4
    request_s: Any = 0.0
    ranks: Any = 1.0

    def take(self, index: Any) -> Plain:
        """The rows of `index`."""
        return taken(self, index)  # type: ignore[no-any-return]

    def step_s(self, sequences: Any, context_tokens: Any) -> Any:
        """A constant and a part for each sequence."""
        return self.step0_s + as_float(sequences) * self.sequence_s + 0.0 * as_float(context_tokens)

    def token_s(self, sequences: Any, context_tokens: Any) -> Any:
        """One token a step."""
        return self.step_s(sequences, context_tokens)

    def prefill_s(self, input_tokens: Any, cached_tokens: Any = 0) -> Any:
        """A time for each token that is not in the cache."""
        return np.maximum(as_float(input_tokens) - as_float(cached_tokens), 0.0) * self.prompt_token_s

    def prefill_alone_s(self, input_tokens: Any, cached_tokens: Any = 0) -> Any:
        """The same."""
        return self.prefill_s(input_tokens, cached_tokens)
