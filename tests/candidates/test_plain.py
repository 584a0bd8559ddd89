"""Which of two layouts is the plainer, and what is never the fastest."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.ties import plain_serving
from planner.candidates.training_choice import least_by
from planner.estimate.serving import ReplicaLayout


@pytest.mark.parametrize("domain", [8, np.array([8, 8, 8, 8])], ids=["one", "each"])
def test_a_replica_on_two_nodes_is_split_within_them_and_cut_across(domain: int) -> None:
    """The Llama 3 herd of models, section 6.1: 16-bit 405B, tensor parallel in each of two nodes, pipeline across."""
    tp, pp = np.array([8.0, 1.0, 4.0, 16.0]), np.array([2.0, 16.0, 4.0, 1.0])
    layout = ReplicaLayout(devices=tp * pp, tp=tp, pp=pp, ep=np.ones(4), cp=np.ones(4))
    assert int(np.argmin(plain_serving(layout, domain, made_for_it=True))) == 0


def test_a_pipeline_within_a_node_is_less_plain_than_tensors() -> None:
    tp, pp = np.array([4.0, 1.0, 2.0]), np.array([1.0, 4.0, 2.0])
    layout = ReplicaLayout(devices=tp * pp, tp=tp, pp=pp, ep=np.ones(3), cp=np.ones(3))
    assert int(np.argmin(plain_serving(layout, 8, made_for_it=True))) == 0


def test_a_time_that_is_not_known_is_never_the_shortest() -> None:
    assert least_by(np.array([1, 1, 2]), np.array([np.nan, 3.0, np.nan]), 3).tolist() == [np.inf, 3.0, np.inf]
