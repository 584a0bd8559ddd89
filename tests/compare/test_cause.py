"""What moved the decision: planted changes are named, and break-even prices hold when solved from the start."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.analysis.compare.cause import find_cause
from planner.analysis.compare.changes import Between, changes_between
from planner.analysis.compare.flips import runner_up
from planner.analysis.compare.outcome import Outcome, outcome_of
from planner.analysis.compare.resolve import Resolver
from planner.analysis.tighten import solve_within_targets
from planner.candidates.reprice import closed, repriced
from planner.catalog.model import Catalog
from planner.optimize.limited import Asker
from planner.report.compare_view import render_comparison
from planner.scenario.schema import Scenario
from tests.compare import worlds
from tests.compare.worlds import OFFERS, at_prices, base, market, question, sealed, side
from tests.tiers import settings
from tests.worlds import catalog, job, offer, scenario, shape

HYPERBOLIC, A100, H100, NEBIUS, H200, H200_FURTHER, RUNPOD, L40S = (
    "hyperbolic:default:2x-H100-149-1443:on_demand",
    "hyperstack:CANADA-1:n3-A100x1:on_demand",
    "hyperstack:CANADA-1:n3-H100-SXM5x8:on_demand",
    "nebius:eu-north1:gpu-h100-sxm_8gpu-128vcpu-1600gb:on_demand",
    "verda:FIN-02:1H200.141S.44V:on_demand",
    "verda:FIN-03:1H200.141S.44V:on_demand",
    "runpod:US-CA-1:1x_A100-80GB_SECURE:on_demand",
    "runpod:US-WA-1:8x_L40S_SECURE:on_demand",
)


def cause_of(other: Any) -> dict[str, Any]:
    cause: dict[str, Any] = api.compare(base(), other).document["comparisons"][0]["cause"]
    return cause


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] if row["kind"] != "scenario" else row["name"] for row in rows]


def from_the_start(scenario: Scenario, catalog: Catalog) -> Outcome:
    """The best plan by the planner's own way, nothing priced anew."""
    listed = api.enumerate_candidates(scenario, catalog)
    return outcome_of(*solve_within_targets(listed, lambda asked: api.optimize(asked.program)), untouched=True)


def noisy(prices: dict[str, float], share: float = 0.001) -> Catalog:
    """Some prices, while all the others move a little."""
    moved = {
        offer.id: offer.price_microusd_per_hour / 1e6 * (1 + share * (-1) ** number)
        for number, offer in enumerate(market().offers)
    }
    return at_prices(market(), moved | prices)


def test_one_price_among_those_that_stay() -> None:
    cause = cause_of(side("B", at_prices(market(), {RUNPOD: 1.0})))
    assert (cause["verdict"], cause["level"], names(cause["found"])) == ("single", "what", [RUNPOD])
    (found,) = cause["found"]
    assert (found["alone"]["decision"], found["without"]["decision"]) == ("new", "old")
    assert found["alone"]["workloads"] == ["chat"]
    assert found["alone"]["moved_usd"] == pytest.approx((1.0 - 1.35) * 730)
    assert found["break_even"]["price_usd_per_hour"] == pytest.approx(1.35, rel=1e-6)
    assert found["break_even"]["holds"] == "below"


@pytest.mark.parametrize(("offer", "price"), [(RUNPOD, 1.0), (A100, 2.0), (H200, 1.1), (HYPERBOLIC, 5.0)])
def test_one_price_while_all_others_move_a_little(offer: str, price: float) -> None:
    catalog = noisy({offer: price})
    cause = cause_of(side("B", catalog))
    assert (cause["verdict"], names(cause["found"])) == ("single", [offer])
    assert cause["changes"] == len(OFFERS)
    flip = cause["found"][0]["break_even"]
    assert flip["proven"]
    decided = from_the_start(question(), catalog).what
    for aside in (-0.001, 0.001):
        solved = from_the_start(question(), at_prices(catalog, {offer: flip["price_usd_per_hour"] * (1 + aside)}))
        assert (solved.what == decided) == ((aside < 0) == (flip["holds"] == "below"))


def test_the_same_machines_a_region_further_are_told_as_such() -> None:
    catalog = at_prices(market(), {H200: 0.8})
    first = api.side_of("A", question(), catalog)
    second = api.side_of("B", question(), at_prices(catalog, {H200_FURTHER: 0.7}))
    one = api.compare(first, second).document["comparisons"][0]
    assert one["cause"]["level"] == "where"
    assert names(one["cause"]["found"]) == [H200_FURTHER]
    assert {row["changed"] for row in one["workloads"]} <= {"place", "nothing"}


def test_two_prices_that_only_together_keep_the_plan_from_where_it_was() -> None:
    """Both offers of about the same price must rise before anything else is rented."""
    cause = cause_of(side("B", at_prices(market(), {A100: 9.0, RUNPOD: 9.0, L40S: 6.5})))
    assert cause["verdict"] == "together"
    assert names(cause["found"]) == [A100, RUNPOD]
    assert cause["proven"]


def test_an_offer_that_came() -> None:
    first = api.side_of("A", question(), worlds.without(market(), A100))
    second = api.side_of("B", question(), at_prices(market(), {L40S: 6.7}))
    cause = api.compare(first, second).document["comparisons"][0]["cause"]
    assert [(row["kind"], row["id"]) for row in cause["found"]] == [("added", A100)]
    assert cause["found"][0]["break_even"]["price_usd_per_hour"] == pytest.approx(1.64, rel=1e-6)
    assert cause["found"][0]["old"] is None


def test_an_offer_that_went() -> None:
    cause = cause_of(side("B", worlds.without(market(), A100, NEBIUS)))
    assert [(row["kind"], row["id"]) for row in cause["found"]] == [("removed", A100)]
    flip = cause["found"][0]["break_even"]
    assert (flip["price_usd_per_hour"], flip["holds"]) == (pytest.approx(1.64, rel=1e-6), "above")


def test_a_price_that_is_flagged_is_as_good_as_none() -> None:
    offers = tuple(replace(o, quality="suspect") if o.id == A100 else o for o in market().offers)
    cause = cause_of(side("B", sealed(replace(market(), offers=offers))))
    assert [(row["kind"], row["id"]) for row in cause["found"]] == [("removed", A100)]


def test_a_fact_that_changed() -> None:
    """Half the memory, and the job no longer fits the H100 that trained it."""
    name = "h100-sxm-80gb"
    small = replace(market().devices[name], memory_bytes=market().devices[name].memory_bytes // 8)
    catalog = sealed(replace(market(), devices={**market().devices, name: small}))
    cause = cause_of(side("B", at_prices(catalog, {L40S: 6.7})))
    assert (cause["verdict"], cause["level"]) == ("single", "what")
    assert [(row["kind"], row["id"], row["field"]) for row in cause["found"]] == [("fact", name, "memory_bytes")]
    assert cause["found"][0]["break_even"] is None


def test_how_many_may_be_had_is_a_change_of_terms() -> None:
    offers = tuple(replace(o, max_shapes=0) if o.id == HYPERBOLIC else o for o in market().offers)
    cause = cause_of(side("B", sealed(replace(market(), offers=offers))))
    assert [(row["kind"], row["field"]) for row in cause["found"]] == [("terms", "max_shapes")]


def test_a_key_of_the_scenario_and_one_that_does_nothing() -> None:
    cause = cause_of(side("B", None, "serving.chat.qpm=600", "limits.max_devices=500"))
    assert (cause["verdict"], names(cause["found"])) == ("single", ["serving.chat.qpm"])
    assert cause["changes"] == 2
    assert not cause["others"]


def test_a_price_and_a_key_at_once() -> None:
    cause = cause_of(side("B", at_prices(market(), {HYPERBOLIC: 9.0}), "serving.chat.qpm=600"))
    assert (cause["verdict"], sorted(names(cause["found"]))) == ("together", [HYPERBOLIC, "serving.chat.qpm"])
    whose = {tuple(row["alone"]["workloads"]) for row in cause["found"]}
    assert ("tune",) in whose, "the price alone moves the job"


def test_a_workload_that_came_and_keys_that_make_no_sense_without_it() -> None:
    fleet = "{name: more, model: {parameters: 1B}, throughput: 900 tokens/s, qpm: 60, peak_factor: 1"
    more = f"  - {fleet}, input_tokens: 500, output_tokens: 200}}"
    text = worlds.QUESTION.replace("hardware:", f"{more}\nhardware:")
    other = api.side_of("B", question(text=text), market())
    cause = cause_of(other)
    assert (cause["verdict"], names(cause["found"])) == ("single", ["serving.more"])


def test_only_the_money_moved() -> None:
    cause = cause_of(side("B", noisy({})))
    assert cause["level"] == "cost"
    moved = {row["id"]: row["alone"]["moved_usd"] for row in (*cause["found"], *cause["others"])}
    assert set(moved) == {A100, HYPERBOLIC}, "only what is rented moves the cost"
    assert cause["verdict"] == "together"


def test_a_price_that_moves_the_money_alone_is_said_to_once() -> None:
    """It was said to move "the cost and the cost by -$2,970"."""
    comparison = api.compare(base(), side("B", at_prices(market(), {A100: 1.5})))
    told = " ".join(render_comparison(comparison.document, "table").split())
    assert re.search(r"this alone moves the cost by [-+]\$\d", told), told


def test_nothing_that_changed_matters() -> None:
    cause = cause_of(side("B", at_prices(market(), {NEBIUS: 24.0})))
    assert (cause["verdict"], cause["level"], cause["found"]) == ("none", "none", [])


def test_a_price_decides_whether_there_is_a_plan() -> None:
    first = api.side_of("A", question("limits.budget=$1100"), market())
    prices = {offer.id: offer.price_microusd_per_hour / 1e6 * 2 for offer in market().offers if offer.id != RUNPOD}
    other = api.side_of("B", question("limits.budget=$1100"), at_prices(market(), prices | {RUNPOD: 2.0}))
    one = api.compare(first, other).document["comparisons"][0]
    assert one["cause"]["verdict"] in ("single", "together")
    assert set(names(one["cause"]["found"])) <= {A100, RUNPOD, L40S, HYPERBOLIC}
    assert one["money"][-1]["new_usd"] is None


def test_too_many_questions_are_told_as_such() -> None:
    resolver = resolver_of(noisy({RUNPOD: 1.0}))
    resolver.most_solves = 4
    cause = find_cause(resolver)
    assert not cause.proven
    assert cause.verdict == "unknown"


def resolver_of(catalog: Catalog, before: Catalog | None = None, *texts: str) -> Resolver:
    from planner.api.comparing import DEFAULTS, _engine

    old, first = question(*texts), before or market()
    between = Between(old, old, first, catalog, changes_between(old, old, first, catalog))
    return Resolver(between=between, engine=_engine(False, DEFAULTS))


FACTORS = st.lists(st.sampled_from([0.3, 0.6, 0.9, 1.0, 1.1, 2.0, 4.0]), min_size=len(OFFERS), max_size=len(OFFERS))


def scaled(factors: list[float]) -> Catalog:
    return at_prices(
        market(),
        {o.id: o.price_microusd_per_hour / 1e6 * factor for o, factor in zip(market().offers, factors)},
    )


@settings(max_examples=4)
@given(FACTORS, st.sampled_from(["limits.budget=$3000", "limits.spend=$60/h", "limits.max_devices=64"]))
def test_ways_priced_anew_are_those_listed_at_these_prices(factors: list[float], limit: str) -> None:
    asked = question(limit)
    anew = repriced(api.enumerate_candidates(asked, market()), scaled(factors))
    listed = api.enumerate_candidates(asked, scaled(factors))
    for one, other in ((anew.whole, listed.whole), (anew.program, listed.program)):
        for name in ("cost_microusd", "nodes", "offer", "max_units", "capacity_micro_per_s"):
            assert (getattr(one, name) == getattr(other, name)).all(), name
        for row, same in zip(one.rows, other.rows, strict=True):
            assert (row.name, row.bound, row.coefficients.tolist()) == (
                same.name,
                same.bound,
                same.coefficients.tolist(),
            )


def test_closed_offers_are_in_no_column() -> None:
    listed = api.enumerate_candidates(question(), market())
    left = closed(listed, {A100})
    fewer = api.enumerate_candidates(question(), worlds.without(market(), A100))
    assert left.whole.column_count == fewer.whole.column_count < listed.whole.column_count
    assert (left.program.cost_microusd == fewer.program.cost_microusd).all()


@settings(max_examples=4)
@given(FACTORS)
def test_what_is_not_tried_would_change_nothing(factors: list[float]) -> None:
    """The claims of `resolve`, each held against solving after all."""
    resolver = resolver_of(scaled(factors))
    every = resolver.every
    base, full = resolver.outcome(()), resolver.outcome(every)
    for number in every:
        for told, start, begun in (
            (resolver.alone((number,)), frozenset[int](), base),
            (resolver.without((number,)), every, full),
        ):
            if told is None:
                solved = resolver.outcome(start ^ {number})
                assert (solved.how, solved.cost_microusd) == (begun.how, begun.cost_microusd)


@settings(max_examples=4)
@given(FACTORS)
def test_a_cause_leads_to_the_decision_and_none_of_it_can_be_spared(factors: list[float]) -> None:
    resolver = resolver_of(scaled(factors))
    cause = find_cause(resolver)
    base, full = resolver.outcome(()), resolver.outcome(resolver.every)
    if cause.level in ("none", "cost"):
        return
    part = cause.level
    assert getattr(base, part) != getattr(full, part)
    if cause.verdict == "single":
        assert all(getattr(resolver.outcome((number,)), part) == getattr(full, part) for number in cause.numbers)
        return
    assert getattr(resolver.outcome(cause.numbers), part) == getattr(full, part)
    for number in cause.numbers:
        rest = set(cause.numbers) - {number}
        assert getattr(resolver.outcome(rest), part) != getattr(full, part)


@pytest.mark.parametrize("name", ["mixed-job", "spot-first"])
def test_a_job_on_several_offers_uses_all_of_them(name: str) -> None:
    """A dearer second offer was passed over as one that the plan does not use."""
    session = api.session(api.load_scenario(name, settings=["prefer=cheapest"]))
    rows = session.solve().document["workloads"][0]["allocations"]
    assert len({row["offer"] for row in rows}) > 1
    listed, solution = solve_within_targets(session.candidates, lambda asked: api.optimize(asked.program))
    outcome = outcome_of(listed, solution, untouched=True)
    assert {row["offer"] for row in rows} <= outcome.used
    assert {row["offer"]: row["cost_microusd"] for row in rows} == {
        offer: cost for offer, cost in outcome.spend_microusd.items() if offer in {row["offer"] for row in rows}
    }


def test_a_runner_up_that_switches_tells_both_of_its_offers() -> None:
    north = [offer(dollars=1.0), offer(dollars=0.4, price_model="spot")]
    south = [offer("south/one", dollars=1.01), offer("south/one", dollars=0.5, price_model="spot")]
    world = catalog(shapes=[shape(), shape("south/one")], offers=[*north, *south],
                    grids={("north", "r1"): (300, 1.2), ("south", "r1"): (300, 1.2)})  # fmt: skip
    asked = scenario([job("job", tokens="200B", deadline="100 h")], prefer="cheapest",
                     hardware={"pricing": ["on_demand", "spot"], "quotas": [{"price_model": "spot", "max_shapes": 1}],
                               "spot": {"interruptions": "0.05 /h", "restart": "5 min"}})  # fmt: skip
    listed = api.enumerate_candidates(asked, world)
    found = runner_up(listed, api.optimize(listed.program), Asker())
    assert found is not None
    taken = {offer: count for _, offer, _, count in found.offers}
    assert taken.keys() == {south[0].id, south[1].id}
    assert taken[south[1].id] == 1 < taken[south[0].id]
    assert found.prices == ((south[0].id, 1_010_000, 1), (south[1].id, 500_000, 1))
    assert found.share is not None
    assert 0.9 < found.share < 1
