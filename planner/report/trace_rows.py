"""Rows of the trace: a figure with its place and the equation, the fact or the rule that it is from, in words.

Rules stand behind what no equation of the physics gives: money, time, choice; each has an id and a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner.errors import Place
from planner.plan.model.plan import PlanDocument, Workload
from planner.plan.parts import workloads_asked
from planner.report.model import TraceKind, TraceRow

COST, SUM, BY_MONTH, SHARED, RESERVE, HOURS, EXPECTED, GIVEN, CARBON, MACHINES, CHOSEN, PROVEN, SOLVED = (
    "ACC-1", "ACC-2", "ACC-3", "ACC-4", "ACC-5", "ACC-6", "ACC-7", "ACC-8", "ACC-9", "ACC-10",
    "OPT-1", "OPT-2", "OPT-3",
)  # fmt: skip

RULES = {
    COST: "nodes × hours paid for × price, hours in whole steps of a bill or to ten significant digits; rounded once, "
    "half to even, to micro-dollars",
    SUM: "a sum of integer micro-dollars",
    BY_MONTH: "spread evenly over the hours that fall into a month; the running total is rounded down",
    SHARED: "a pool's cost shared by the node-hours of those who run on it",
    RESERVE: "the contingency's share of the total, rounded half to even; beside the total, never in it",
    HOURS: "devices × hours that they are held",
    EXPECTED: "the mean over all cases by their probability",
    GIVEN: "worked out from rates or times that the scenario gives",
    CARBON: "power drawn, rated where its owner says nothing, × hours × the carbon of the grid of the place",
    MACHINES: "facts of the machines of the row, and the hours that they run",
    CHOSEN: "chosen by the integer program as cheapest within every limit, and verified apart from it",
    PROVEN: "a lower bound that the certificate of the plan proves without a solver",
    SOLVED: "the difference of two plans, each solved to its optimum",
}


Places = Mapping[str, Place]


def traced(
    figure: str,
    path: str,
    kind: TraceKind,
    *,
    value: object = None,
    unit: str = "",
    ids: str = "",
    source: str = "",
    as_of: str = "",
    status: str = "",
    place: str = "",
) -> TraceRow:
    """One row of the trace.

    Parameters
    ----------
    figure
        In words.
    path
        Its place in the report document; what lies below it is covered, too.
    kind
        equation, fact, scenario or assumption.
    value
        What stands there; anything but a number or a text is left out.
    unit
        Of the value; "" = none.
    ids
        Equations or rules that give it, with blanks between them.
    source, as_of, status
        Provenance of a fact, or the words of a rule; "" = none.
    place
        Where the scenario says it, or a path in the plan; "" = nowhere.
    """
    return {
        "figure": figure,
        "path": path,
        "value": value if isinstance(value, int | float | str) else None,
        "unit": unit,
        "kind": kind,
        "id": ids,
        "source": source,
        "as_of": as_of,
        "status": status,
        "place": place,
    }


def ruled(figure: str, path: str, rule: str, value: object = None, unit: str = "") -> TraceRow:
    """A figure that a rule of money or choice gives.

    Parameters
    ----------
    figure
        In words.
    path
        Its place in the report document; what lies below it is covered, too.
    rule
        Id of a rule, of `accounting.RULES`.
    value
        What stands there; anything but a number or a text is left out.
    unit
        Of the value; "" = none.
    """
    return traced(figure, path, "equation", value=value, unit=unit, ids=rule, source=RULES[rule])


def where(places: Places | None, path: str) -> str:
    """Where a value of the scenario is written: file and line, or its path in the plan where no file is at hand."""
    place = (places or {}).get(path)
    return f"{place.file}:{place.line}" if place is not None and place.line else f"scenario.{path}"


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Path and value of everything that is no mapping and no list: "training[0].deadline"."""
    items: Iterable[tuple[str, object]]
    if isinstance(value, Mapping):
        items = ((f"{path}.{key}" if path else str(key), one) for key, one in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = ((f"{path}[{number}]", one) for number, one in enumerate(value))
    else:
        yield path, value
        return
    for below, one in items:
        yield from leaves(one, below)


def spaced(name: str) -> str:
    """A name as words."""
    return name.replace("_", " ")


def unit_of(name: str) -> str:
    """What a figure of that name is counted in."""
    endings = {
        "_microusd": "micro-USD",
        "_usd": "USD",
        "_hours": "h",
        "_bytes": "B",
        "_bytes_per_s": "B/s",
        "_w": "W",
        "_kg": "kg",
    }
    for ending, unit in endings.items():
        if name.endswith(ending):
            return unit
    return ""


def asked_at(plan: PlanDocument, workload: Workload, places: Places | None) -> str:
    """Where the scenario asks for a workload.

    Parameters
    ----------
    plan
        The plan, for the scenario in it.
    workload
        Of the plan.
    places
        Path in the scenario -> where it is written; None = a line is told by its path in the plan.
    """
    names = [one.get("name") for one in workloads_asked(plan, workload["kind"])]
    if workload["name"] not in names:
        return f"scenario.{workload['kind']}"
    return where(places, f"{workload['kind']}[{names.index(workload['name'])}].name")
