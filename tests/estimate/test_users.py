"""Users of a replica: what fills it counts at the target load, and confidence holds for every faster engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.estimate.resolve_serving import RowLimits, requests_of
from planner.estimate.serving_fleet import FleetAsk, Margins, Replicas, full_load, load_of, load_within_targets
from planner.traffic import Traffic
from tests.simulate.engines import replica_of

ASK = FleetAsk(
    weights="bf16", kv_cache="bf16", targets_s={"ttft_p95": 0.4, "tpot_p95": 0.015}, think_s=20.0, target_load=0.8
)
REQUESTS = requests_of(Traffic.of_lengths(1000.0, 300.0, requests_per_s=1.0))
SLOTS = np.array([128.0])


def replicas(slower: float = 1.0) -> Replicas:
    limits = RowLimits(
        max_num_seqs=np.array([128.0]), max_batched_tokens=np.array([8192.0]), memory_fraction=np.array([0.9]),
        fraction="of_device",
    )  # fmt: skip
    return Replicas(
        arch=load_model("llama-3.1-8b"),
        replica=replica_of("llama-3.1-8b", "bf16", "bf16", 1, 1, "h100"),
        limits=limits,
        margins=Margins(engine=np.array([slower]), first_token=np.array([1.0])),
    )


def test_users_who_fill_a_replica_send_the_target_load_of_its_rate() -> None:
    rate = full_load(replace(ASK, think_s=np.inf, target_load=1.0), replicas(), REQUESTS, SLOTS)
    users = full_load(ASK, replicas(), REQUESTS, SLOTS) * 0.8
    sent = load_of(ASK, replicas(), REQUESTS, users, SLOTS, at_confidence=True).requests_per_s
    assert float(sent[0]) == pytest.approx(0.8 * float(rate[0]), rel=1e-3)


def test_the_most_users_keep_their_targets_and_one_in_a_hundred_more_do_not() -> None:
    most = load_within_targets(ASK, replicas(), REQUESTS, SLOTS)
    assert most[0] < full_load(ASK, replicas(), REQUESTS, SLOTS)[0]  # a target stops it
    for users, kept in ((most, True), (most * 1.01, False)):
        load = load_of(ASK, replicas(), REQUESTS, users, SLOTS, at_confidence=True)
        late = [float(load.latency_s(name)[0]) / limit for name, limit in ASK.targets_s.items()]
        assert (max(late) <= 1 + 1e-4) == kept


def test_users_who_are_served_in_time_by_a_slow_engine_are_by_every_faster_one() -> None:
    """The number is that of the slowest; at the same users a faster engine is sent more and answers sooner."""
    most = load_within_targets(ASK, replicas(1.4), REQUESTS, SLOTS)
    loads = [
        load_of(ASK, replicas(slower), REQUESTS, most, SLOTS, at_confidence=True)
        for slower in (1.0, 1.1, 1.2, 1.3, 1.4)
    ]
    for name in ("ttft_p95", "tpot_p95"):
        late = [float(load.latency_s(name)[0]) for load in loads]
        assert late == sorted(late)
        assert late[-1] <= ASK.targets_s[name] * (1 + 1e-4)
    sent = [float(load.requests_per_s[0]) for load in loads]
    assert sent == sorted(sent, reverse=True)
    assert most[0] < load_within_targets(ASK, replicas(), REQUESTS, SLOTS)[0]
