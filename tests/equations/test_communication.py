"""Collectives: what must hold between them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations import communication as com
from tests.published.equations.communication import in_switch_all_reduce_s, ring_all_gather_s, torus_all_gather_s

N, W, ALPHA = 1e9, 100e9, 1e-5


@pytest.mark.parametrize("function", [com.ring_all_reduce_s, ring_all_gather_s, com.all_reduce_s, com.all_to_all_s])
def test_one_rank_needs_no_time(function) -> None:
    assert function(N, 1, W, ALPHA) == 0


def test_all_reduce_is_a_scatter_and_a_gather() -> None:
    assert com.ring_all_reduce_s(N, 8, W, ALPHA) == pytest.approx(2 * ring_all_gather_s(N, 8, W, ALPHA))


def test_tree_wins_for_small_messages_and_many_ranks_only() -> None:
    assert com.all_reduce_s(1e3, 512, W, ALPHA) == com.tree_all_reduce_s(1e3, 512, W, ALPHA)
    assert com.all_reduce_s(1e10, 8, W, ALPHA) == com.ring_all_reduce_s(1e10, 8, W, ALPHA)


def test_nccl_bus_bandwidth_factor() -> None:
    """nccl-tests converts time to bus bandwidth by 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather."""
    for ranks in (2, 8, 64):
        algorithm = N / com.ring_all_reduce_s(N, ranks, W)
        assert W / algorithm == pytest.approx(2 * (ranks - 1) / ranks)


def test_switch_sends_once() -> None:
    assert in_switch_all_reduce_s(N, 8, W) < com.ring_all_reduce_s(N, 8, W)


def test_hierarchy_of_one_level_is_flat() -> None:
    assert com.hierarchical_all_reduce_s(N, 8, 1, W, 1.0) == com.all_reduce_s(N, 8, W)
    assert com.hierarchical_all_reduce_s(N, 1, 8, 1e-9 + W, W) == com.all_reduce_s(N, 8, W)
    assert com.hierarchical_all_gather_s(N, 8, 1, W, 1.0) == ring_all_gather_s(N, 8, W)


def test_a_gather_starts_once_for_each_rank_but_its_own() -> None:
    """Eq. (1) of EQ-COM-8: 7 starts inside a node of 8, 3 between 4 nodes."""
    no_bytes = com.hierarchical_all_gather_s(0.0, 8, 4, W, W, 1e-5, 1e-3)
    assert no_bytes == pytest.approx(7 * 1e-5 + 3 * 1e-3)


@pytest.mark.parametrize("slower", [2, 10])
def test_hierarchy_reduces_before_it_leaves_the_node_and_goes_on_while_it_does(slower: int) -> None:
    """8 ranks a node, 4 nodes: the network carries an eighth of the message per device, beside what is inside."""
    inside, across = com.all_reduce_s(N, 8, W), com.all_reduce_s(N / 8, 4, W / slower)
    assert com.hierarchical_all_reduce_s(N, 8, 4, W, W / slower) == pytest.approx(max(inside, across))


def test_a_small_message_waits_for_both_levels() -> None:
    """Without bytes nothing hides: the starts inside the node and those between nodes add up."""
    starts = com.all_reduce_s(0.0, 8, W, 1e-5) + com.all_reduce_s(0.0, 4, W, 1e-3)
    assert com.hierarchical_all_reduce_s(0.0, 8, 4, W, W, 1e-5, 1e-3) == pytest.approx(starts)


def test_torus_is_bound_by_hops_for_small_arrays() -> None:
    assert torus_all_gather_s(1.0, 9e10, 1, 8) == 8e-6
    assert torus_all_gather_s(1e9, 9e10, 1, 8, 0) == pytest.approx(2 * torus_all_gather_s(1e9, 9e10, 1, 8))


def test_context_ring_counts_replicated_heads_once_each() -> None:
    split = com.context_ring_bytes(4096, 8, 128, 128, np.array([1, 8, 16]), 4)
    assert split.tolist() == [3 * 4096 * 512 * heads for heads in (8, 1, 1)]
