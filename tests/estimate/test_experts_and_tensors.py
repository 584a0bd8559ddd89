"""Where experts are spread, tensor ranks cut none of them: each has its part of the tokens, as guides have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.load import load_catalog
from planner.estimate.layout import expert_tensor_degree
from planner.validate.memory import predict_peak_memory
from planner.validate.rows import shipped_training_rows
from planner.validate.training import predict_training


def test_experts_are_cut_only_where_they_are_not_spread() -> None:
    assert expert_tensor_degree(np.array([1, 2, 4, 4]), np.array([1, 1, 8, 64])).tolist() == [1, 2, 1, 1]


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
