"""What a calendar takes for granted, and the facts behind what is bought ahead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.candidates.search import Candidates
from planner.catalog.model import Catalog, Provenance, Transfer
from planner.optimize.class_mixes import able_to_mix
from planner.scenario.schema import HORIZON_S, MAX_PERIODS
from planner.scenario.terms import COMMITMENT_HOURS
from planner.units import format_duration

if TYPE_CHECKING:
    from planner.plan.model.bought import BoughtParts
    from planner.plan.model.workloads import Workload

MIXES_SAVED = 0.08  # the most of eight fleets held against every mix of a grid: decision 0036
_SHORT = 1e-9  # share of a period that rounding may take


def calendar_assumptions(candidates: Candidates, bought: BoughtParts, workloads: Sequence[Workload]) -> Iterator[str]:
    """What was not in the scenario and shaped the schedule, and what was not looked at; nothing without a calendar."""
    scenario, calendar = candidates.scenario, candidates.calendar
    if calendar is None:
        return
    if calendar.periods > 1:
        period = format_duration(calendar.period_s)
        yield (
            f"a job starts with a period of {period} and holds its machines in every period that it touches, "
            "its time margin included; fleets hold theirs all the time"
        )
    renewed_s = scenario.renewed_s
    if renewed_s and calendar.pools:
        yield (
            f"a commitment that ends may be followed by another at the same price: a period is {_term(renewed_s)}, the "
            "shortest term within the horizon (periods)"
        )
    if calendar.pools:
        yield "nodes on demand beside contracted ones are taken for whole periods"
    if any(contract["full_microusd"] != contract["prorated_microusd"] for contract in bought["contracts"]) and (
        "beyond_horizon" not in scenario.hardware.model_fields_set
    ):
        yield "fees of contracts that reach beyond the horizon count whole (hardware.beyond_horizon)"
    if bought["copies"]:
        yield (
            "a copy of data is kept from the first start to the last deadline of the jobs that read them, and is there "
            "when they start"
        )
    yield from _not_looked_at(candidates, workloads)


def _not_looked_at(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """What makes a plan cheaper without a calendar and is left out beside one, with what it may be worth."""
    for name in able_to_mix(candidates):
        yield (
            f"{name}: replicas for mixes of its classes of requests are not looked for beside contracts or periods; "
            f"without them they were worth up to {MIXES_SAVED:.0%} of a fleet"
        )
    held = {fleet.name for fleet in candidates.scenario.serving if fleet.availability is not None}
    for workload in workloads:
        fleet = workload["fleet"] if workload["kind"] == "serving" and workload["name"] in held else None
        if fleet and fleet["spare_replicas"] > 1:
            yield (
                f"{workload['name']}: fewer, larger replicas, of which fewer are spare, are not looked for beside "
                "contracts or periods; they may save a replica"
            )


def bought_warnings(bought: BoughtParts) -> Iterator[str]:
    """Prices of contracts that were not seen, or have no date."""
    for contract in bought["contracts"]:
        if contract["price_status"] == "date-unknown":
            yield f"{contract['offer']}: the price has no date of its own (transcribed {contract['price_as_of']})"
        if contract["price_status"] == "recalled":
            yield f"{contract['offer']}: the price was recalled, not seen"


def short_terms(candidates: Candidates) -> Iterator[str]:
    """Contracts that are allowed and last for no period: none of them was weighed."""
    calendar = candidates.calendar
    if calendar is None:
        return
    shortest_h = min(calendar.period_hours(number) for number in range(calendar.periods))
    longest: dict[str, float] = {}
    for offer in (offer for pool in calendar.pools for offer in pool.contracts):
        most = COMMITMENT_HOURS.get(offer.price_model) if offer.max_term_hours is None else offer.max_term_hours
        longest[offer.price_model] = max(longest.get(offer.price_model, 0.0), math.inf if most is None else most)
    for model, hours in sorted(longest.items()):
        if hours * (1 + _SHORT) < shortest_h:
            periods = f"periods={hours:.17g} h"
            mends = calendar.horizon_s / 3600.0 / hours <= MAX_PERIODS
            yield (
                f"{model} is left out: its longest term, {_term(3600.0 * hours)}, is shorter than a period, "
                f"{_term(3600.0 * shortest_h)}, and covers none"
                + (f"; --set '{periods}' lets one follow another" if mends else "")
            )


def _term(length_s: float) -> str:
    """A time in months where it is whole months, as contracts are sold."""
    months = length_s / HORIZON_S
    return f"{months:.0f} months" if months > 1 and math.isclose(months, round(months)) else format_duration(length_s)


def bought_facts(candidates: Candidates, bought: BoughtParts) -> Iterator[tuple[str, str, str, Provenance]]:
    """Subject, fact, value and origin of every price behind contracts and copies."""
    for contract in bought["contracts"]:
        origin = Provenance(
            source=contract["price_source"], as_of=contract["price_as_of"], status=contract["price_status"]
        )
        yield contract["offer"], "price", f"{contract['price_microusd_per_hour'] / 1e6:g} USD/h per shape", origin
    for copy in bought["copies"]:
        home = copy["from"].partition("/")[0]
        keys = [(home, "inter-region" if home == copy["provider"] else "egress"), (copy["provider"], "storage")]
        for provider, kind in keys:
            found = _transfer(candidates.catalog, provider, kind)
            if found is not None:
                yield provider, kind, _tiers(found.tiers), found.provenance


def _transfer(catalog: Catalog, provider: str, kind: str) -> Transfer | None:
    return catalog.transfers.get((provider, kind))


def _tiers(tiers: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{price:g} USD/GB above {above:g} GB" for above, price in tiers)
