"""The mix of hardware against published and seeded instances, and pools on two devices that win together."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task
from planner.optimize.solve import optimize
from tests.optimize.instances import mix, program
from tests.tiers import cases

TOY = Path(__file__).parent / "data" / "toy.csv"
PRICES = (1_010_000, 3_670_000)  # A10G, A100-80GB; micro-dollars an hour
RATES = ((2, 1, 5, 2), (20, 20, 40, 20))  # requests/s by bucket
SHARES = {"shipped": (0.2, 0.1, 0.5, 0.2), "uniform": (0.25, 0.25, 0.25, 0.25)}


def toy(workload: str, requests_per_s: int, slices: int = 0) -> Program:
    """The toy of tyler-griggs/melange-release@d46ab43 (melange/config/example.json), as of 2026-11-21."""
    demand = tuple(round(share * requests_per_s * 1_000_000) for share in SHARES[workload])
    task = Task(name="toy", kind="serving", first=0, stop=2, demand_micro_per_s=demand, integer_slices=slices)
    capacity = [[1_000_000 * rate for rate in rates] for rates in RATES]
    return program([task], cost=PRICES, replicas=[1, 1], capacity_micro_per_s=capacity)


def lines() -> list[dict[str, str]]:
    with TOY.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize(("column", "slices"), [("divisible", 0), ("slices_1", 1), ("slices_4", 4), ("slices_8", 8)])
def test_toy_costs_what_is_published(column: str, slices: int, solver: str) -> None:
    rows = lines()
    assert len(rows) == 18
    for row in rows[:: cases(3, 1)]:
        answer = optimize(toy(row["workload"], int(row["requests_per_s"]), slices), solver=solver)
        assert (answer.status, answer.cost_microusd / 1e6) == ("optimal", float(row[column])), row


def test_seeded_mix_of_sixty_buckets_and_twelve_types() -> None:
    answer = optimize(mix(60, 12))
    assert answer.status == "optimal"
    assert answer.cost_microusd == 127_384_650  # 127.385 $/h
    assert answer.flows.sum() == pytest.approx(200e6, rel=1e-6)


def pools(*, whole: int) -> Program:
    """Two devices, 10 requests/s: the first prefills fast, the second decodes fast; whole requests at `whole`/s."""
    task = Task(name="chat", kind="serving", first=0, stop=6, demand_micro_per_s=(10_000_000,))
    role = [WHOLE, PREFILL, DECODE] * 2
    rates = [whole, 10, 3, whole, 2, 10]
    return program(
        [task],
        cost=[4_000_000] * 3 + [2_000_000] * 3,
        replicas=[1] * 6,
        role=role,
        capacity_micro_per_s=[[1_000_000 * rate] for rate in rates],
    )


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_pools_on_two_devices_win_when_whole_requests_are_slow(solver: str) -> None:
    """Whole at 2/s: 5 of the cheap device, $10. Prefill on one of the first, decode on one of the second: $6."""
    answer = optimize(pools(whole=2), solver=solver)
    assert (answer.status, answer.cost_microusd) == ("optimal", 6_000_000)
    assert answer.units.tolist() == [0, 1, 0, 0, 0, 1]
    assert answer.flows[:, 0].tolist() == pytest.approx([0, 1e7, 0, 0, 0, 1e7])


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_whole_requests_win_when_they_are_fast(solver: str) -> None:
    """Whole at 5/s: two of the cheap device, $4, against $6 for the pools."""
    answer = optimize(pools(whole=5), solver=solver)
    assert answer.units.tolist() == [0, 0, 0, 2, 0, 0]


def test_levels_rent_the_base_by_the_year_and_the_peak_by_the_hour() -> None:
    """Base 4/s at all hours, 10/s in a quarter of them: 4 replicas always ($8 each), 6 in the peak ($3 each)."""
    task = Task(name="f", kind="serving", first=0, stop=2, demand_micro_per_s=(10,), levels=((4,), (10,)))
    question = program(
        [task], cost=[8, 3], replicas=[1, 1], level=[0, 1], capacity_micro_per_s=[[1], [1]], max_units=[99, 99]
    )
    answer = optimize(question)
    assert (answer.units.tolist(), answer.cost_microusd) == ([4, 6], 50)
    assert [flows.sum() for flows in answer.level_flows] == pytest.approx([4, 10])


def test_share_on_spot_is_of_the_rates_of_all_units() -> None:
    """Spot at half the price, at most 30 % of the capacity: 3 of 10 equal replicas."""
    task = Task(name="f", kind="serving", first=0, stop=2, demand_micro_per_s=(10,), max_spot_share=0.3)
    question = program([task], cost=[2, 1], replicas=[1, 1], spot=[0, 1], capacity_micro_per_s=[[1], [1]])
    assert optimize(question).units.tolist() == [7, 3]
