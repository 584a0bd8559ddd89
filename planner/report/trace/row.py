"""One row of the trace, and the words that it is written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner.errors import Place
from planner.plan.asked import workloads_asked
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Workload
from planner.report import accounting as rules
from planner.report.model import TraceKind, TraceRow

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
    return traced(figure, path, "equation", value=value, unit=unit, ids=rule, source=rules.RULES[rule])


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
