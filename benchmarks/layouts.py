"""Layouts a second: enumeration, legality, every term of memory and of step time, for legal layouts only.

Prints layouts/s on one core, and the time in units of one numpy multiply pass over as many float64
values: a unit that a busy machine stretches as much as the work itself. The bar is 500,000 legal layouts
a second with every term, and one second for the whole search of a 530B GPT on 5,120 A100.

    python benchmarks/layouts.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from planner import api
from planner.architecture.load import load_model
from planner.candidates.layouts import LayoutRules, enumerate_layouts
from planner.catalog.load import load_catalog
from planner.estimate.resolve import training_machine
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.load import parse_scenario

CASES = {
    "llama-3.1-8b, 8 to 512 devices": ("llama-3.1-8b", 8192, 488.28, range(8, 513, 8)),
    "llama-3.1-405b, 512 to 4096 devices": ("llama-3.1-405b", 8192, 2000.0, range(512, 4097, 64)),
    "mt-nlg-530b, 320 to 5,120 devices": ("mt-nlg-530b", 2048, 1920.0, range(320, 5121, 64)),
    "qwen3-235b-a22b (experts), 64 to 2048 devices": ("qwen3-235b-a22b", 4096, 2048.0, range(64, 2049, 64)),
}


A100 = "aws/p4de.24xlarge"
LARGE = """
schema: plan/v1
name: large
training:
  - {name: gpt-530b, model: mt-nlg-530b, tokens: 270B, deadline: 60 days, sequence_length: 2048,
     global_batch: 1920 sequences}
hardware:
  allow: [a100-sxm-80gb]
  owned: [{shape: dgx-a100-80gb, count: 640, price: $9.80/h}]
"""
JOB = "schema: plan/v1\nname: a\ntraining:\n  - {name: j, model: gpt2, tokens: 1B, deadline: 9 h}\n"


def median_s(work: Callable[[], object], runs: int = 7) -> float:
    """Median wall seconds of one call."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(title: str, model: str, sequence: int, batch: float, counts: range) -> None:
    """Enumerate and evaluate one case, and print its rate."""
    arch = load_model(model)
    rules = LayoutRules(
        sequence_length=sequence,
        batches=(batch,),
        batch_range=(batch * 0.9, batch * 1.1),
        sharding=(0, 1, 2, 3),
        recompute=(0, 1, 2),
        domain_devices=8,
    )
    spec = TrainingSpec(tokens=1e12, sequence_length=sequence, tier="analytic")
    catalog = load_catalog()
    shape, job = catalog.shapes[A100], parse_scenario(JOB, file="job.yaml").training[0]
    machine = training_machine(catalog.devices[shape.device], shape, job, arch, catalog, 50e9)

    def evaluate() -> tuple[int, int]:
        layout = enumerate_layouts(arch, counts, rules)
        memory, step = training_memory(arch, spec, layout), training_time(arch, spec, layout, machine)
        terms = [np.ascontiguousarray(one[name]) for one in (memory, step) for name in one]  # materialised, every one
        return len(np.asarray(memory.total)) + 0 * len(np.asarray(step.total)), len(terms)

    count, terms = evaluate()
    values, out = np.random.default_rng(0).random(count), np.empty(count)
    seconds = median_s(evaluate)
    passes = seconds / median_s(lambda: np.multiply(values, 1.000001, out=out), 101)
    rate = f"{count:,} legal layouts, {terms} terms, {count / seconds:,.0f} /s"
    print(f"{title}: {rate}, {seconds:.3f} s, {passes:,.0f} multiply passes")


def search() -> None:
    """The whole search of a 530B GPT on up to 5,120 A100: offers, counts, layouts, margins, prices, pruning."""
    scenario = parse_scenario(LARGE, file="large.yaml")
    catalog = api.load_catalog()
    seen = api.enumerate_candidates(scenario, catalog).ledgers["gpt-530b"].layouts_seen
    seconds = median_s(lambda: api.enumerate_candidates(scenario, catalog), 3)
    print(f"search of mt-nlg-530b on up to 5,120 A100: {seen:,} layouts seen, {seconds:.3f} s (bar 1 s)")


def main() -> None:
    for title, (model, sequence, batch, counts) in CASES.items():
        measure(title, model, sequence, batch, counts)
    search()


if __name__ == "__main__":
    main()
