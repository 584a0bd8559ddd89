"""What it costs to be safe: the margins that a scenario takes, and what they cost together.

Margins interact: a fleet that is sized for its peak at 80 % load, with a spare, rounded up to whole shapes, may lose
one of them and need as many nodes as before. So the cost of all of them together is found by solving again without
any, and costs of single ones are never added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.budget.model import MarginName, MarginsCost
from planner.carriers import dataclass
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

ONE_BY_ONE = "each margin alone is solved without it, the others kept: the sum need not be what all cost together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """One way of being safe, over all workloads that take it."""

    name: MarginName
    taken: str  # in words: "2 (assistant)"
    without: str  # what it is set to: "p50"
    settings: tuple[str, ...]  # --set texts that switch it off


def margins_taken(scenario: Scenario) -> list[Margin]:
    """The margins of a scenario that are more than nothing."""
    found = [_confidence(scenario), _peaks(scenario), _loads(scenario), _spares(scenario)]
    return [margin for margin in found if margin.settings]


def _confidence(scenario: Scenario) -> Margin:
    workloads: list[tuple[str, TrainingJob | ServingFleet]] = [
        *((f"training[{i}]", job) for i, job in enumerate(scenario.training)),
        *((f"serving[{i}]", fleet) for i, fleet in enumerate(scenario.serving) if fleet.rates is None),
    ]
    taken = {path: one for path, one in workloads if one.confidence_share > 0.5}
    return Margin(
        name="confidence",
        taken=_words({one.name: f"{one.confidence_share:.0%}" for one in taken.values()}),
        without="p50: as likely too slow as not",
        settings=tuple(f"{path}.confidence=p50" for path in taken),
    )


def _peaks(scenario: Scenario) -> Margin:
    taken = {i: one for i, one in enumerate(scenario.serving) if one.peak_factor > 1 and not one.load_profile}
    taken = {i: one for i, one in taken.items() if one.trace is None}
    return Margin(
        name="peak_factor",
        taken=_words({one.name: f"{one.peak_factor:g}" for one in taken.values()}),
        without="1: every hour like the mean one",
        settings=tuple(f"serving[{i}].peak_factor=1" for i in taken),
    )


def _loads(scenario: Scenario) -> Margin:
    taken = {i: one for i, one in enumerate(scenario.serving) if one.target_load < 1}
    return Margin(
        name="target_load",
        taken=_words({one.name: f"{one.target_load:.0%}" for one in taken.values()}),
        without="100 %: replicas full at the peak",
        settings=tuple(f"serving[{i}].target_load=1" for i in taken),
    )


def _spares(scenario: Scenario) -> Margin:
    """Spare replicas as many as are asked for, or as an availability needs."""
    taken = {i: one for i, one in enumerate(scenario.serving) if one.spare_replicas or one.availability is not None}
    settings: list[str] = []
    for i, fleet in taken.items():
        settings += [f"serving[{i}].availability=null"] if fleet.availability is not None else []
        settings += [f"serving[{i}].spare_replicas=0"] if fleet.spare_replicas else []
    return Margin(
        name="spares",
        taken=_words({one.name: _spare_words(one) for one in taken.values()}),
        without="none",
        settings=tuple(settings),
    )


def _words(values: Mapping[str, str]) -> str:
    """What each workload takes, those that take the same together: "90% (5 workloads)"."""
    by_value: dict[str, list[str]] = {}
    for name, value in values.items():
        by_value.setdefault(value, []).append(name)
    told = {
        value: ", ".join(names) if len(names) < 4 else f"{len(names)} workloads" for value, names in by_value.items()
    }
    return ", ".join(f"{value} ({names})" for value, names in told.items())


def _spare_words(fleet: ServingFleet) -> str:
    return f"{fleet.spare_replicas}" if fleet.availability is None else f"for {fleet.availability:.3%}"


def why_not_solved(scenario: Scenario, each: bool) -> str:
    """A sentence that says why margins are not worked out for a scenario; empty when they can be.

    `each`: each margin alone is asked for, and so is the time that this takes.
    """
    if scenario.uncertainty:
        return "what margins cost is not worked out for a plan of several futures: solve each case alone to see it"
    if scenario.scheduled and not each:
        return (
            "what margins cost takes a calendar (periods, contracts) as long again as its plan: --margins works it out"
        )
    if scenario.objective[0] != "cost":
        return f"what margins cost is not worked out for a plan that is made for {scenario.objective[0]}, not for cost"
    return ""


def margins_document(
    taken: Sequence[Margin],
    cost_microusd: int | None,
    without_microusd: int | None,
    each: Mapping[MarginName, int | None] | None,
    why_not: str = "",
) -> MarginsCost:
    """What margins cost, as plain data.

    Parameters
    ----------
    taken
        The margins of the scenario.
    cost_microusd
        Of the plan with all of them.  [micro-USD]
    without_microusd
        Of the plan with none of them; None when it was not worked out.  [micro-USD]
    each
        Of the plan without the one margin, by its name; None when not asked for.  [micro-USD]
    why_not
        Why nothing was worked out.
    """
    return {
        "taken": [{"name": one.name, "taken": one.taken, "without": one.without} for one in taken],
        "cost_microusd": cost_microusd,
        "without_microusd": without_microusd,
        "together_microusd": _less(cost_microusd, without_microusd),
        "each": None
        if each is None
        else [
            {"name": name, "without_microusd": cost, "saves_microusd": _less(cost_microusd, cost)}
            for name, cost in each.items()
        ],
        "notes": [why_not] if why_not else [ONE_BY_ONE] if each else [],
    }


def _less(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other
