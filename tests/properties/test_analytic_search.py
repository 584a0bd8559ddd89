"""What the search takes for granted of the analytic tier, on layouts at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.candidates.counts import _best_rate
from planner.candidates.layouts import LayoutRules, enumerate_layouts
from planner.catalog.load import load_catalog
from planner.estimate.layout import Layout
from planner.estimate.resolve import training_machine
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.load import parse_scenario

CATALOG = load_catalog()
SHAPES = ("aws/p5.48xlarge", "aws/p4d.24xlarge", "gcp/tpu-v6e-8", "onprem/v100-pcie-32gb-x1")
MODELS = ("llama-3.2-1b", "llama-3.1-8b", "gpt3-175b", "qwen3-30b-a3b", "deepseek-v2-lite")


def layouts_of(model: str, domain: int) -> Layout:
    rules = LayoutRules(
        sequence_length=4096,
        batches=(256.0,),
        batch_range=(256.0, 256.0),
        sharding=(0, 1, 2, 3),
        recompute=(0, 1, 2),
        domain_devices=domain,
    )
    return enumerate_layouts(load_model(model), [8, 64, 256], rules)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_recomputation_and_bounds(model: str, shape: str, precision: str) -> None:
    """More recomputation is never faster; no layout is faster than the bound that counts of shapes start from."""
    arch, facts = load_model(model), CATALOG.shapes[shape]
    device = CATALOG.devices[facts.device]
    if not device.peak_flop_per_s.get(precision):
        pytest.skip(f"{device.id} has no {precision}")
    text = f"schema: plan/v1\nname: a\ntraining:\n  - {{name: j, model: {model}, tokens: 1B, deadline: 9 h, precision: {precision}}}\n"  # noqa: E501
    job = parse_scenario(text, file="a.yaml").training[0]
    machine = training_machine(device, facts, job, arch, CATALOG, 25e9)
    layout = layouts_of(model, facts.devices)
    spec = TrainingSpec(tokens=1e9, sequence_length=4096, precision=precision, tier="analytic")
    by_level = []
    for level in (0, 1, 2):
        same = replace(layout.select(np.flatnonzero(np.asarray(layout.recompute) == 0)))
        chosen = replace(same, recompute=np.full(len(same.devices), level))
        by_level.append(np.asarray(training_time(arch, spec, chosen, machine).total))
    none, selective, full = by_level
    assert (selective >= none * (1 - 1e-12)).all()
    assert (full >= selective * (1 - 1e-12)).all()
    least = 6.0 * arch.matmul_parameters * 1e9 / (_best_rate(machine) * np.asarray(same.devices))
    assert (none >= least).all()


@pytest.mark.parametrize("tier", ["rule", "analytic"])
@pytest.mark.parametrize("model", MODELS)
def test_zero_2_takes_no_less_time_than_zero_1(model: str, tier: str) -> None:
    """What lets the search time one of them where both fit; ZeRO-2 never needs more memory.

    Its gradients are scattered in every micro-batch; a pipeline keeps them whole.
    """
    arch, facts = load_model(model), CATALOG.shapes["aws/p5.48xlarge"]
    text = f"schema: plan/v1\nname: a\nestimator: {tier}\ntraining:\n  - {{name: j, model: {model}, tokens: 1B, deadline: 9 h}}\n"  # noqa: E501
    job = parse_scenario(text, file="a.yaml").training[0]
    machine = training_machine(CATALOG.devices[facts.device], facts, job, arch, CATALOG, 25e9)
    layout = layouts_of(model, facts.devices)
    spec = TrainingSpec(tokens=1e9, sequence_length=4096, tier=tier)
    sharded = layout.select(np.flatnonzero(np.asarray(layout.sharding) == 1))
    further = replace(sharded, sharding=np.full(len(sharded.devices), 2))
    times = [np.asarray(training_time(arch, spec, one, machine).total) for one in (sharded, further)]
    needs = [np.asarray(training_memory(arch, spec, one).total) for one in (sharded, further)]
    assert (times[0] <= times[1] * (1 + 1e-12)).all()
    once = (np.asarray(sharded.micro_batches) == 1) | (np.asarray(sharded.pp) > 1)
    assert (times[0] == times[1])[once].all()
    assert (times[0] < times[1])[~once].any()
    assert (needs[1] <= needs[0] * (1 + 1e-12)).all()
