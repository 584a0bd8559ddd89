"""Where experts are spread, tensor ranks cut none of them: each has its part of the tokens, as guides have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.catalog.load import load_catalog
from planner.estimate.layout import Layout, expert_tensor_degree
from planner.estimate.resolve import training_machine, training_spec
from planner.estimate.training import training_time
from planner.validate.memory_rows import predict_peak_memory
from planner.validate.rows import shipped_training_rows
from planner.validate.training import predict_training
from tests.worlds import job as job_of
from tests.worlds import scenario


def test_experts_are_cut_only_where_they_are_not_spread() -> None:
    assert expert_tensor_degree(np.array([1, 2, 4, 4]), np.array([1, 1, 8, 64])).tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("ep", [2, 4])
def test_a_layout_takes_as_long_alone_as_beside_others(ep: int) -> None:
    """Experts that tensor ranks hold twice exchange gradients without data parallelism: alone, they did not, and a plan
    that was timed beside others was refused by its own check."""
    catalog, arch = load_catalog(), load_model("qwen3-30b-a3b")
    (job,) = scenario([job_of(model="qwen3-30b-a3b", layout={"tp": 8})]).training
    shape = catalog.shapes["onprem/dgx-h100"]
    device = catalog.devices[shape.device]
    machine = training_machine(device, shape, job, arch, catalog, 50e9)
    spec = training_spec(job, arch, device, shape)
    sizes = {"devices": 16, "dp": 1, "tp": 8, "pp": 2, "vpp": 1, "cp": 1, "ep": ep, "micro_batch": 8, "sharding": 1,
             "recompute": 2, "global_batch": 64}  # fmt: skip
    alone = training_time(arch, spec, Layout(**sizes), machine).row(0)
    pair = {name: np.array([size, size]) for name, size in sizes.items()}
    pair |= {"dp": np.array([1, 2]), "tp": np.array([8, 4])}
    beside = training_time(arch, spec, Layout(**pair), machine).row(0)
    assert alone == pytest.approx(beside)
    assert alone["data_parallel"] > 0


@pytest.mark.parametrize("ep", [8, 16])
def test_tensor_ranks_permute_their_own_tokens_and_hold_as_many_experts(ep: int) -> None:
    """Half of the tokens in twice the passes: the step moves as much, where each rank moved all of them before."""
    catalog = load_catalog()
    whole = replace(next(row for row in shipped_training_rows() if row.id == "mb-0101"), ep=ep, recompute="none")
    assert (whole.tp, whole.dp, whole.n_accel) == (1, 16, 16)
    halves = replace(whole, tp=2, dp=8)
    one, two = predict_training([whole, halves], catalog)
    assert two.terms["elementwise"] == pytest.approx(one.terms["elementwise"], rel=0.1)
    held = [predict_peak_memory(row, catalog) for row in (whole, halves)]
    assert held[0] is not None
    assert held[1] is not None
    assert held[1] < held[0]  # dense weights are cut; experts lie as they did
