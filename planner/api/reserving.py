"""Reserve or rent: a scenario with and without commitments, and what both cost when things turn out otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.analysis.reserve.model import ASKED_HOURS
from planner.answers.asked import Reserve
from planner.api.sessions import Session
from planner.api.taking import ScenarioLike, catalog_of, scenario_of
from planner.catalog.model import Catalog
from planner.deadline import Deadline
from planner.errors import InputError, UsageError
from planner.estimate.market import METERED
from planner.plan.parts import expected_microusd, said_of
from planner.scenario.hardware_keys import COMMITMENT_HOURS
from planner.scenario.schema import Scenario
from planner.spelling import closest
from planner.units import format_percent

if TYPE_CHECKING:
    from planner.analysis.reserve.model import Otherwise, Reserved, Term, Together
    from planner.plan.model.bought import Contract
    from planner.plan.model.plan import PlanDocument

COMMITMENTS = (*COMMITMENT_HOURS, "block")
QUARTER_HOURS = 2190.0  # of commitments that may begin at other times: a plan decides these quarter by quarter
FALL = 0.3  # of demand, and of prices
IN_ALL = ("budget", "carbon")  # limits of a whole horizon
_SHORT_HOURS = 1e-6  # between contracts of which one follows another
WEEK_HOURS = 168.0  # of blocks of days or months, which a year of load is taken in
CALENDARS_HOURS = (QUARTER_HOURS, 730.0, WEEK_HOURS)  # of scenarios that state none, the first in which all can begin


def reserve(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    terms: Sequence[str] = ("commitment_1y", "commitment_3y"),
    otherwise: bool = True,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
) -> Reserve:
    """What to reserve and what to leave on demand, for each kind of commitment, and where each breaks even.

    The load of a fleet is taken to go on for the term; jobs run once. Limits of what the scenario's own horizon may
    cost or emit in all are lifted then, and named. A scenario with periods keeps its horizon and all its limits. Where
    several kinds are offered, one program also decides over all of them and when each begins. Costs are those of the
    cheapest plans on both sides, whatever the scenario prefers; of several futures (`uncertainty`) they are the mean of
    all cases, weighed as contracts are chosen (`risk`).

    Parameters
    ----------
    scenario
        The question; its own `hardware.pricing` says what else may be rented.
    terms
        Price models that are bought ahead: commitments such as commitment_1y, and block.
    otherwise
        Also solve for 30 % less demand, prices 30 % lower, and an end half-way, with what was reserved kept.
    solver, gap, time_limit_s, threads, seed, allow_suspect
        As for `solve`; a time limit is that of each solving.

    Raises
    ------
    UsageError
        A term is no commitment.
    InputError, StoppedError
        As `solve`.
    """
    from planner.analysis.reserve.document import break_evens, reserve_document

    scenario = scenario_of(scenario).with_({"prefer": "cheapest"})  # on both sides: calendars are never made plainer
    catalog = catalog or catalog_of(scenario)
    for term in terms:
        if term not in COMMITMENTS:
            near = closest(term, COMMITMENTS) or [one for one in COMMITMENTS if term and one.endswith(term)]
            hint = (f"did you mean {near[0]}? " if near else "") + "one of: " + ", ".join(COMMITMENTS)
            raise UsageError.of("unknown-value", f"'{term[:40]}' is no commitment", hint=hint)
    scenario, not_held = _without_sums(scenario) if scenario.periods_s is None else (scenario, [])
    options: dict[str, Any] = {"solver": solver, "gap": gap, "time_limit_s": time_limit_s, "threads": threads}
    options |= {"seed": seed, "allow_suspect": allow_suspect}
    rented = [model for model in scenario.hardware.pricing if model in METERED] or ["on_demand"]
    sold = {offer.price_model for offer in catalog.offers} | {one.price_model for one in scenario.hardware.contracts}
    taken = [term for term in terms if term in sold]
    lasting = {} if scenario.periods_s is not None else {"horizon": f"{max(COMMITMENT_HOURS.values()):.17g} h"}
    asked = _begun(scenario, {**lasting, "hardware.pricing": [*rented, *taken]})
    rows = break_evens(asked, catalog, taken, suspect=allow_suspect)
    offered = {row["price_model"] for row in rows}
    answered = [_term(scenario, catalog, term, rented, otherwise, options) for term in taken if term in offered]
    found, said = [term for term, _ in answered], [(term["price_model"], warnings) for term, warnings in answered]
    together = None
    if len(found) > 1:
        together, warnings = _together(scenario, catalog, found, rented, options)
        said.append(("all terms together", warnings))
    return Reserve(
        document=reserve_document(
            scenario,
            catalog,
            rows,
            found,
            together,
            not_held,
            [*_of_cases(scenario), *_not_asked(scenario, terms), *said_of(said)],
        )
    )


def _without_sums(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The scenario without limits of what its whole horizon costs or emits, and their names."""
    names = [path for path in scenario.limits.whole if path.rpartition(".")[2] in IN_ALL]
    if not names:
        return scenario, names
    given = scenario.resolved["limits"].get("sites") or []
    sites = [{key: value for key, value in dict(site).items() if key not in IN_ALL}
             for site, stated in zip(given if isinstance(given, list) else [given], scenario.limits.sites, strict=True)
             if stated.power_w is not None]  # fmt: skip
    return scenario.with_({f"limits.{key}": None for key in IN_ALL} | {"limits.sites": sites or None}), names


def _begun(
    scenario: Scenario, changes: Mapping[str, Any], calendars_hours: Sequence[float | None] = (None, *CALENDARS_HOURS)
) -> Scenario:
    """The scenario with these changes, in the first of several periods in which all of its jobs can begin.

    Contracts make a calendar of a scenario; as long as a commitment, its one period begins before a job that starts
    later. A scenario with periods of its own keeps them.
    """
    refused: InputError | None = None
    for hours in calendars_hours if scenario.periods_s is None else (None,):
        try:
            return scenario.with_(changes if hours is None else {**changes, "periods": f"{hours:g} h"})
        except InputError as error:
            if all(problem.reference != "no-period" for problem in error.problems):
                raise
            refused = refused or error
    assert refused is not None
    raise refused


def _contracts(scenario: Scenario, *models: str) -> dict[str, Any]:
    """The scenario's own contracts without commitments other than those: they are used whatever it may rent."""
    given = scenario.resolved.get("hardware", {}).get("contracts") or []
    stated = zip(given, scenario.hardware.contracts, strict=True)
    kept = [raw for raw, one in stated if one.price_model in models or one.price_model not in COMMITMENTS]
    return {"hardware.contracts": kept or None} if given else {}


def _together(
    scenario: Scenario, catalog: Catalog, terms: Sequence[Term], rented: Sequence[str], options: Mapping[str, Any]
) -> tuple[Together, list[str]]:
    """One program in which every kind of commitment may be taken, from the begin of any period; what it warns of."""
    models = [term["price_model"] for term in terms]
    hours = max(term["term_hours"] for term in terms)
    changes: dict[str, Any] = {"hardware.pricing": [*rented, *models], **_contracts(scenario, *models)}
    if scenario.periods_s is None:
        changes |= {"horizon": f"{hours:.17g} h", "hardware.beyond_horizon": "full"}
    weekly = "block" in models and hours <= ASKED_HOURS["block"]  # as blocks alone are asked: more choice costs no more
    asked = _begun(scenario, changes, (WEEK_HOURS, *CALENDARS_HOURS) if weekly else CALENDARS_HOURS)
    chosen = Session(asked, catalog, **options).solve().document
    cost = _cost(chosen)
    before = next(term["on_demand_microusd"] for term in terms if term["term_hours"] == hours)
    bought = [contract for contract in chosen["contracts"] if contract["kind"] in models]
    if cost is not None and before is not None and cost > before:
        cost, bought = before, []
    told: Together = {
        "horizon_hours": asked.horizon_s / 3600.0,
        "period_hours": (asked.periods_s or 0.0) / 3600.0,
        "status": chosen["status"],
        "proven": chosen["certificate"] is not None and chosen["status"] == "optimal",
        "cost_microusd": cost,
        "on_demand_microusd": before,
        "saved_microusd": before - cost if cost is not None and before is not None else None,
        "reserved": [
            {
                **_reserved(contract),
                "price_model": contract["kind"],
                "start_hours": contract["start_hours"],
                "start_date": contract["start_date"],
                "term_hours": contract["term_hours"],
            }
            for contract in bought
        ],
    }
    return told, chosen["warnings"]


def _term(
    scenario: Scenario, catalog: Catalog, model: str, rented: Sequence[str], otherwise: bool, options: Mapping[str, Any]
) -> tuple[Term, list[str]]:
    """What one kind of commitment does, and what the plan with it warns of."""
    hours = scenario.horizon_s / 3600 if scenario.periods_s is not None else ASKED_HOURS[model]
    taken = {"hardware.pricing": [*rented, model], **_contracts(scenario, model)}
    begun = _begun(scenario, {"horizon": f"{hours:.17g} h", **taken})
    lasting = begun.with_({"hardware.pricing": rented, **_contracts(scenario)})
    if model not in COMMITMENT_HOURS and scenario.periods_s is None:
        with suppress(InputError):  # a job that starts and ends within a week, or ends after the year, keeps it whole
            lasting = lasting.with_({"periods": f"{WEEK_HOURS:g} h"})
    alone = Session(lasting, catalog, **options)
    steady = alone.solve().document
    chosen = alone.with_(taken).solve().document
    warnings = chosen["warnings"]
    cost, before = _cost(chosen), _cost(steady)
    if cost is not None and before is not None and cost > before:  # fleets share no node beside a calendar
        chosen, cost = steady, before
    bought = [contract for contract in chosen["contracts"] if contract["kind"] == model]
    asked = _Otherwise(lasting, alone, bought)
    told: Term = {
        "price_model": model,
        "term_hours": hours,
        "status": chosen["status"],
        "proven": chosen["certificate"] is not None and chosen["status"] == "optimal",
        "cost_microusd": cost,
        "on_demand_microusd": before,
        "saved_microusd": before - cost if cost is not None and before is not None else None,
        "reserved": [_reserved(contract) for contract in bought],
        "otherwise": asked.all(hours) if otherwise and bought else [],
    }
    return told, warnings


def _reserved(contract: Contract) -> Reserved:
    return {
        "offer": contract["offer"],
        "region": contract["region"],
        "shape": contract["shape"],
        "device": contract["device"],
        "nodes": contract["count"],
        "devices": contract["devices"],
        "fee_microusd": contract["cost_microusd"],
        "used": contract["used_share"],
    }


class _Otherwise:
    """Both ways in another future: what was reserved is paid, stands there and costs nothing more."""

    def __init__(self, scenario: Scenario, alone: Session, bought: Sequence[Contract]) -> None:
        self.alone = alone
        self.fees_microusd = sum(contract["cost_microusd"] for contract in bought)
        standing = _standing(bought, scenario.horizon_s / 3600.0)
        data = scenario.resolved
        own = data.get("hardware", {}).get("owned") or []
        self.owned = None if standing is None else [*own, *standing]
        self.scenario = scenario

    def all(self, hours: float) -> list[Otherwise]:
        """Less demand, lower prices, an end half-way."""
        rates = _rates(self.scenario)
        cheaper = {"hardware.discounts": self.scenario.discounts_with(-FALL)}
        half = {"horizon": f"{hours / 2:.17g} h"}
        futures: list[tuple[Any, dict[str, Any] | None]] = [("demand", rates), ("price", cheaper), ("end", half)]
        return [
            {
                "happens": happens,
                "reserved_microusd": self._reserved(changes),
                "on_demand_microusd": self._asked(changes),
            }
            for happens, changes in futures
        ]

    def _reserved(self, changes: Mapping[str, Any] | None) -> int | None:
        if changes is None or self.owned is None:
            return None
        cost = self._asked({**changes, "hardware.owned": self.owned})
        return None if cost is None else cost + self.fees_microusd

    def _asked(self, changes: Mapping[str, Any] | None) -> int | None:
        """What another future costs; None where nothing works, or where it cannot be asked of this scenario."""
        if changes is None:
            return None
        try:
            future = self.alone.with_(changes)
        except InputError:  # deadlines and dates that lie beyond half of a calendar
            return None
        return _cost(future.solve().document)


def _standing(bought: Sequence[Contract], hours: float) -> list[dict[str, Any]] | None:
    """What contracts supply from the begin of the plan to its end, as machines that are owned.

    None where some of it is there for a part of the plan alone: a fleet would hold what it owns for all of it.
    """
    groups: dict[tuple[str, str], list[Contract]] = defaultdict(list)
    for contract in bought:
        groups[contract["shape"], contract["region"]].append(contract)
    found = []
    for (shape, region), contracts in groups.items():
        edges = sorted({0.0, *(min(one[end], hours) for one in contracts for end in ("start_hours", "end_hours"))})
        spans = [(first, last) for first, last in pairwise([*edges, hours]) if last - first > _SHORT_HOURS]
        held = {
            sum(one["count"] for one in contracts if one["start_hours"] < middle < one["end_hours"])
            for middle in ((first + last) / 2 for first, last in spans)
        }
        if len(held) > 1:
            return None
        found.append({"shape": shape, "count": held.pop(), "price": "$0/h", "region": region})
    return found


def _cost(document: PlanDocument) -> int | None:
    return expected_microusd(document, weighed=True)


def _of_cases(scenario: Scenario) -> list[str]:
    """What costs are of where there are several futures."""
    cases, risk = 1 + len(scenario.uncertainty), scenario.risk
    if cases == 1:
        return []
    mean = f"the mean of {cases} cases (uncertainty)"
    if risk is None or not risk.weight:
        return [f"every cost is {mean}"]
    worst = f"the worst {format_percent(1 - risk.cvar)} of them" if risk.cvar < 1 else "the worst of them"
    shares = [format_percent(share) for share in (1 - risk.weight, risk.weight)]
    return [f"every cost is {shares[0]} of {mean} and {shares[1]} of the mean of {worst} (risk)"]


def _not_asked(scenario: Scenario, terms: Sequence[str]) -> list[str]:
    """Which commitments the scenario has that nobody asked about, on both sides of every answer."""
    hardware = scenario.hardware
    have = {"hardware.contracts": {one.price_model for one in hardware.contracts}, "hardware.pricing": hardware.pricing}
    return [
        f"{term} of {key} is on neither side: ask about it too (--term {term})"
        for term in COMMITMENTS
        if term not in terms
        for key in [next((name for name, models in have.items() if term in models), None)]
        if key is not None
    ]


def _rates(scenario: Scenario) -> dict[str, Any] | None:
    """The rates of all fleets, lower; None where one has its rate from a file, or there is no fleet.

    Nor where there are several futures: what may become of demand is in them, and a case that states a rate keeps it.
    """
    if scenario.uncertainty:
        return None
    found: dict[str, Any] = {}
    for fleet in scenario.serving:
        path = f"serving.{fleet.name}"
        if fleet.requests_per_s is not None:
            found[f"{path}.requests"] = f"{fleet.requests_per_s * (1 - FALL):.17g} /s"
        elif fleet.users is not None:
            found[f"{path}.users"] = max(round(fleet.users * (1 - FALL)), 1)
        elif fleet.requests_per_minute is not None:
            found[f"{path}.qpm"] = fleet.requests_per_minute * (1 - FALL)
        else:
            return None
    return found or None
