"""Every comparison of a row with what it rents, of runs with periods, and of totals: one within, at it, one beyond."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from planner.analysis import standing
from planner.architecture.load import load_model
from planner.checks import allocation, bought_ahead, calendar, parted, serving, verify
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding
from planner.checks.replica import Rates
from tests.worlds import GIB, catalog, device, fleet, job, offer, scenario, shape

HOUR = 3600.0
MODEL = load_model("llama-3.1-8b")


def told(findings: Iterable[Finding]) -> list[str]:
    return [one.reference for one in findings]


def facts(of: Any = None, sold: Any = None) -> OfferFacts:
    one = of or shape("north/two", devices=2)
    return OfferFacts(sold or offer(one.id, 3.0), one, device(), None, one.inter_node_bytes_per_s_per_device)


def check(**top: Any) -> allocation.AllocationCheck:
    asked = scenario([job(deadline="2 h")], **top)
    return allocation.AllocationCheck(scenario=asked, catalog=catalog(), arch=load_model("llama-3.1-8b"))


def rented(count: int, **cells: Any) -> dict[str, Any]:
    """A row of shapes of two devices at $3 an hour, as the catalog tells it."""
    one = facts()
    place = allocation.place_cells(one.offer, one.shape)
    return {**place, "offer": one.offer.id, "price_microusd_per_hour": 3_000_000, "count": count, "devices": 2 * count,
            "jobs": 1, **cells}  # fmt: skip


# ---- rows of jobs


@pytest.mark.parametrize(("count", "jobs", "found"), [(2, 1, 0), (3, 1, 0), (4, 1, 1), (6, 2, 0), (7, 2, 1)])
def test_no_more_is_rented_than_is_sold(count: int, jobs: int, found: int) -> None:
    """Three shapes are sold to one job."""
    sold = offer("north/two", 3.0, max_shapes=3)
    findings = check()._offer(check().scenario.training[0], rented(count, jobs=jobs), facts(sold=sold))
    assert told(findings) == ["limit-exceeded"] * found


@pytest.mark.parametrize(("count", "devices", "found"), [(1, 2, 0), (0, 0, 1), (2, 3, 1), (2, 5, 1)])
def test_shapes_are_whole_and_have_their_devices(count: int, devices: int, found: int) -> None:
    row = rented(count, devices=devices)
    assert told(check()._offer(check().scenario.training[0], row, facts())) == ["wrong-count"] * found


def test_a_price_is_that_of_the_catalog_to_the_micro_dollar() -> None:
    for price, found in ((3_000_000, 0), (3_000_001, 1), (2_999_999, 1)):
        row = rented(1, price_microusd_per_hour=price)
        assert told(check()._offer(check().scenario.training[0], row, facts())) == ["wrong-price"] * found


@pytest.mark.parametrize(("needed_gib", "margin", "found"), [(59, 1.0, 0), (60, 1.0, 0), (60.001, 1.0, 1),
                                                             (50, 1.2, 0), (50.001, 1.2, 1)])  # fmt: skip
def test_what_is_needed_with_its_margin_is_usable(
    needed_gib: float, margin: float, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device of 64 GiB, of which 4 GiB are reserved."""
    needed = needed_gib * GIB
    terms = SimpleNamespace(total=needed, row=lambda _: {"weights": needed})
    monkeypatch.setattr(allocation, "training_memory", lambda *_: terms)
    monkeypatch.setattr(allocation, "layout_of", lambda *_: None)
    memory = {"terms_bytes": {"weights": needed}, "needed_bytes": needed, "usable_bytes": 60.0 * GIB,
              "free_bytes": 60 * GIB - needed}  # fmt: skip
    one = check()
    margins: Any = SimpleNamespace(memory=margin)
    layout: Any = SimpleNamespace(devices=2)
    row: Any = {"memory": memory, "layout": {}}
    findings = one._memory(one.scenario.training[0], row, layout, facts(), margins)
    assert told(findings) == ["does-not-fit"] * found


# ---- rows of fleets


def replica(tp: int = 1, **cells: Any) -> dict[str, Any]:
    row = {"layout": {"tp": tp, "pp": 1, "dp": 1, "ep": 1, "cp": 1}, "devices_per_replica": tp, "count": 2}
    return {**row, "replicas": 1, "role": "whole", "offer": "x", "cost_microusd": 0, **cells}


def asked(**cells: Any) -> Any:
    return scenario(serving=[fleet(**cells)]).serving[0]


@pytest.mark.parametrize(
    ("tp", "replicas", "found"),
    [(1, 0, 1), (1, 1, 0), (1, 4, 0), (1, 5, 1), (2, 2, 0), (2, 3, 1), (4, 1, 0), (4, 2, 1)],
)
def test_replicas_fit_their_shapes(tp: int, replicas: int, found: int) -> None:
    """Two shapes of two devices."""
    assert told(serving._legal(asked(), MODEL, replica(tp, replicas=replicas), facts())) == ["wrong-count"] * found


def test_a_replica_has_the_devices_of_its_split_and_a_network_to_span_shapes() -> None:
    assert told(serving._legal(asked(), MODEL, replica(2, devices_per_replica=1), facts())) == ["illegal-layout"]
    alone = facts(shape("north/two", devices=2, inter_node_bytes_per_s_per_device=None))
    assert told(serving._legal(asked(), MODEL, replica(2), alone)) == []
    assert told(serving._legal(asked(), MODEL, replica(4), alone)) == ["network-unknown"]


@pytest.mark.parametrize(("replicas", "found"), [(4, 0), (3, 0), (2, 1)])
def test_least_replicas(replicas: int, found: int) -> None:
    rows = [{"replicas": replicas - 1, "replicas_needed": replicas - 1}, {"replicas": 1, "replicas_needed": 1}]
    assert told(serving._counts(asked(min_replicas=3), rows, 0)) == ["demand-unmet"] * found


@pytest.mark.parametrize(("needed", "found"), [(1, 1), (2, 0), (3, 1)])
def test_spares_are_not_needed(needed: int, found: int) -> None:
    rows = [{"replicas": 3, "replicas_needed": needed}]
    assert told(serving._counts(asked(), rows, 1)) == ["wrong-load"] * found


@pytest.mark.parametrize(("spares", "found"), [(1, 1), (2, 0), (3, 1)])
def test_spares_are_as_many_as_asked(spares: int, found: int) -> None:
    assert told(serving._spares(asked(spare_replicas=2), {"spare_replicas": spares})) == ["wrong-fleet"] * found


@pytest.mark.parametrize(("share", "found"), [(0.9991, 0), (0.999, 0), (0.9989, 1)])
def test_a_fleet_is_up_for_its_share_of_the_time(share: float, found: int) -> None:
    stated = {"spare_replicas": 1, "availability": {"time_within_spares": share}}
    assert told(serving._spares(asked(availability="99.9 %"), stated)) == ["not-available"] * found


@pytest.mark.parametrize(("at_s", "found"), [(0.9, 0), (1.0, 0), (1 + 1e-8, 1), (None, 1)])
def test_targets_are_kept_where_requests_are_sent(at_s: float | None, found: int) -> None:
    target = {"name": "ttft", "at_confidence_s": at_s, "target_s": 1.0}
    for rate, counted in ((1.0, found), (0.0, 0)):
        point = {"requests_per_s": rate, "targets": [target]}
        assert told(serving._missed(asked(), {"point": point})) == ["target-missed"] * counted


@pytest.mark.parametrize(("cost", "found"), [(5_999_999, 1), (6_000_000, 0), (6_000_001, 1)])
def test_a_row_costs_its_units(cost: int, found: int) -> None:
    """Two shapes for an hour at $3."""
    assert told(serving._money(asked(), replica(cost_microusd=cost), facts(), 1.0)) == ["wrong-cost"] * found


def test_a_row_is_of_whole_units() -> None:
    row = replica(4, count=3, cost_microusd=6_000_000)
    assert told(serving._money(asked(), row, facts(), 1.0)) == ["wrong-count"]


@pytest.mark.parametrize(
    ("rate", "load", "planned"), [(1.0, 1.0, 1_000_000), (1.0, 0.8, 800_000), (0.9999999, 1.0, 999_999)]
)
def test_no_more_is_planned_than_the_target_load_of_a_rate(rate: float, load: float, planned: int) -> None:
    rates = Rates([rate, 0.0, rate], [rate, 0.0, 10 * rate])
    assert serving.planned_micro_per_s(asked(target_load=load), rates) == [planned, 0, math.floor(1e6 * rate + 1e-6)]


# ---- runs and periods

GRID = calendar.Grid(period_hours=24.0, periods=7, horizon_hours=168.0)


def pausing(runs: list[tuple[int, int]], jobs: int = 2, **asked: Any) -> list[str]:
    """Runs of (period, jobs) of a job that may pause."""
    one = scenario(
        [job(schedule="elastic", count=jobs, **{"deadline": "7 days", **asked})], horizon="7 days", periods="1 day"
    )
    spans = [{"start_hours": 24.0 * at, "end_hours": 24.0 * (at + 1), "jobs": many} for at, many in runs]
    row = {"runs": spans, "jobs": jobs, "start_hours": spans[0]["start_hours"], "end_hours": spans[-1]["end_hours"]}
    return told(calendar._pausing(one.training[0], row, GRID))


@pytest.mark.parametrize(("jobs", "found"), [(0, 1), (1, 0), (2, 0), (3, 1)])
def test_a_running_period_has_some_of_the_jobs(jobs: int, found: int) -> None:
    assert pausing([(0, 2), (2, jobs)]) == ["wrong-count"] * found


def test_runs_are_periods_each_once_and_in_order() -> None:
    assert pausing([(0, 1), (1, 1)]) == []
    assert pausing([(1, 1), (0, 1)]) == ["wrong-start"]
    assert pausing([(1, 1), (1, 1)]) == ["wrong-start"]


def test_runs_lie_between_start_and_deadline() -> None:
    asked = {"start": "24 h", "deadline": "72 h"}
    assert pausing([(1, 1), (3, 1)], **asked) == []
    assert pausing([(0, 1), (3, 1)], **asked) == ["too-early"]
    assert pausing([(1, 1), (4, 1)], **asked) == ["late"]


@pytest.mark.parametrize(("used", "found"), [(3, 0), (4, 0), (5, 1)])
def test_a_pool_is_covered_in_every_period(used: int, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three nodes under contract and one on demand."""
    use = SimpleNamespace(name="p", pool="p", reserved=[3, 3], on_demand=[1, 1], used=[4, used])
    monkeypatch.setattr(bought_ahead, "pool_uses", lambda *_: [use])
    document: Any = {"schedule": {"use": [], "shares": []}, "contracts": []}
    grid: Any = SimpleNamespace(periods=2)
    nothing: Any = None
    findings = told(bought_ahead._pools(document, nothing, nothing, grid))
    assert findings == [*["limit-exceeded"] * found, "wrong-schedule"]


# ---- mixes


@pytest.mark.parametrize(("shares", "found"), [((40, 23), 1), ((40, 24), 0), ((40, 25), 1)])
def test_shares_of_a_mix_make_the_batch(shares: tuple[int, int], found: int) -> None:
    one = scenario([job(deadline="2 h", mix_within_job=True)])
    mix = parted.MixCheck(
        scenario=one, catalog=catalog(), arch=load_model("llama-3.1-8b"), job=one.training[0], under_way=None
    )
    rows = [
        {
            "mix": {
                "name": "3 × a + 5 × b",
                "groups": 2,
                "batch_sequences": 64,
                "sequences": share,
                "share": share / 64,
            },
            "offer": offer,
            "count": count,
            "layout": {"dp": 1, "micro_batch": 1, "pp": 1, "vpp": 1, "global_batch_sequences": share},
            "jobs": 1,
            "hours": 1.0,
        }
        for share, offer, count in zip(shares, "ab", (3, 5))
    ]
    assert told(mix._shares(rows)) == ["wrong-share"] * found
    rows[1]["count"] = 6
    assert told(mix._shares(rows)) == ["wrong-mix"] + ["wrong-share"] * found


# ---- totals


@pytest.mark.parametrize(
    ("dollars", "found"), [(1.000001, 0), (1.0000014, 0), (1.0000006, 0), (1.0000016, 1), (1.0, 1), (1.4, 1)]
)
def test_dollars_are_the_micro_dollars(dollars: float, found: int) -> None:
    """Of $1.000001, up to half a micro-dollar off."""
    assert told(verify._dollars({"cost_usd": dollars, "cost_microusd": 1_000_001}, "x")) == ["wrong-total"] * found


@pytest.mark.parametrize(("further", "found"), [(0, 0), (1, 1), (-1, 1)])
def test_dollars_of_large_sums_are_the_nearest_float(further: int, found: int) -> None:
    """A float of trillions of dollars skips micro-dollars; its neighbours are another sum."""
    microusd, steps = 1_686_771_264_519_696_001, {0: 0.0, 1: math.inf, -1: -math.inf}
    usd = microusd / 1e6
    usd = math.nextafter(usd, steps[further]) if further else usd
    assert told(verify._dollars({"cost_usd": usd, "cost_microusd": microusd}, "x")) == ["wrong-total"] * found


@pytest.mark.parametrize(("off", "found"), [(-1, 1), (0, 0), (1, 1)])
def test_totals_are_exact(off: int, found: int) -> None:
    assert told(verify._same(10**15 + off, 10**15, "x")) == ["wrong-total"] * found


# ---- what is proven


@pytest.mark.parametrize(("bound", "found"), [(10**12 - 1, 0), (10**12, 0), (10**12 + 1, 1), (None, 0)])
@pytest.mark.parametrize("status", ["optimal", "feasible"])
def test_a_bound_is_not_above_the_cost(status: str, bound: int | None, found: int) -> None:
    """Told with a certificate that says the same, so that nothing but the bound can be wrong."""
    summary = {"cost_microusd": 10**12, "bound_microusd": bound, "gap": 0.0}
    certificate = {"criterion": "cost", "bound": bound, "gap": 0.0}
    document: Any = {"status": status, "summary": summary, "workloads": [], "certificate": certificate}
    assert told(verify._proof(document)) == ["wrong-proof"] * found


@pytest.mark.parametrize(
    ("value", "bound", "found"),
    [
        (10**11, 10**11 + 10**5, []),
        (10**11, 10**11 + 10**5 + 1, ["wrong-certificate"]),
        (10**6, 10**6 + 10**4, []),
        (10**6, 10**6 + 10**4 + 1, ["wrong-certificate"]),
        (10**11, 10**11 - 10**5, []),
    ],
)
def test_what_prices_prove_is_at_most_a_millionth_or_a_cent_above(value: int, bound: int, found: list[str]) -> None:
    certificate: Any = {"bound": min(bound, value), "gap": 0.0}
    assert told(standing._figures(certificate, value, bound)) == found


@pytest.mark.parametrize(("off", "found"), [(10**5, 0), (10**5 + 1, 1), (-(10**5), 0), (-(10**5) - 1, 1)])
def test_the_bound_that_is_stated_is_the_one_that_is_proven(off: int, found: int) -> None:
    """Half of what a plan of $100,000 costs, a millionth of the cost off."""
    value, bound = 10**11, 10**11 // 2
    certificate: Any = {"bound": bound + off, "gap": (value - bound - off) / value}
    assert told(standing._figures(certificate, value, bound)) == ["wrong-certificate"] * found
