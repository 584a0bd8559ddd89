"""Commitments beside what they are commitments to, from the catalog alone, and the document of `plan reserve`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.analysis.reserve.model import BreakEven, ReserveDocument, Term, Together
from planner.candidates.offers import usable_offers
from planner.catalog.model import Catalog, Offer
from planner.estimate.market import market
from planner.plan.plan_files import catalog_used
from planner.scenario.hardware_keys import COMMITMENT_HOURS
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.plan import Status


def break_evens(scenario: Scenario, catalog: Catalog, models: Sequence[str], *, suspect: bool) -> list[BreakEven]:
    """Every commitment that the scenario could use, best first, with the use at which it breaks even.

    Parameters
    ----------
    scenario
        Asked with the price models in question allowed, beside on demand.
    models
        The price models of commitments.
    suspect
        Whether prices that look wrong count.
    """
    known = market(scenario, catalog)
    offers = list(usable_offers(scenario, known, allow_suspect=suspect))
    steady: dict[tuple[str, str], list[Offer]] = {}
    for offer in offers:
        if offer.price_model == "on_demand":
            steady.setdefault((offer.provider, offer.shape), []).append(offer)
    rows = [_break_even(offer, steady, known) for offer in offers if offer.price_model in models]
    return sorted(rows, key=lambda row: (row["use"] is None, row["use"] or 0.0, row["offer"]))


def _break_even(offer: Offer, steady: dict[tuple[str, str], list[Offer]], catalog: Catalog) -> BreakEven:
    there = steady.get((offer.provider, offer.shape), [])
    near = [one for one in there if one.region == offer.region] or there
    rented = min(near, key=lambda one: (one.price_microusd_per_hour, one.id), default=None)
    price = offer.price_microusd_per_hour
    return {
        "offer": offer.id,
        "provider": offer.provider,
        "region": offer.region,
        "device": catalog.shapes[offer.shape].device,
        "shape": offer.shape,
        "price_model": offer.price_model,
        "contract": offer.contract,
        "term_hours": term_hours(offer),
        "price_microusd_per_hour": price,
        "on_demand": rented.id if rented else None,
        "on_demand_microusd_per_hour": rented.price_microusd_per_hour if rented else None,
        "use": price / rented.price_microusd_per_hour if rented else None,
        "as_of": offer.provenance.as_of,
        "status": offer.provenance.status,
    }


def term_hours(offer: Offer) -> float:
    """The shortest term that is sold: all of it is paid, so it decides how much use is enough.  [h]"""
    return offer.min_term_hours or COMMITMENT_HOURS.get(offer.price_model, 0.0)


def reserve_document(
    scenario: Scenario,
    catalog: Catalog,
    rows: list[BreakEven],
    terms: list[Term],
    together: Together | None,
    not_held: list[str],
    warnings: list[str],
) -> ReserveDocument:
    """The document of break-evens and decisions.

    Parameters
    ----------
    scenario
        Its name and title are told.
    catalog
        Its name, day and digest are told.
    rows
        Break-evens, in the order in which they are told.
    terms
        What each kind of commitment does for the scenario; empty where none is offered.
    together
        What all kinds at once do; None = fewer than two are offered.
    not_held
        Limits that the scenario states and that were lifted.
    warnings
        Of the plans that are chosen.
    """
    return {
        "schema": "plan/reserve/v1",
        "name": scenario.name,
        "title": scenario.title,
        "status": _worst([*(term["status"] for term in terms), *([together["status"]] if together else [])]),
        "catalog": catalog_used(catalog, scenario),
        "break_evens": rows,
        "terms": terms,
        "together": together,
        "not_held": not_held,
        "warnings": warnings,
    }


def _worst(found: Iterable[Status]) -> Status:
    """The worst of several ends."""
    worst: tuple[Status, ...] = ("failed", "infeasible", "stopped", "feasible")
    given = set(found)
    return next((status for status in worst if status in given), "optimal")
