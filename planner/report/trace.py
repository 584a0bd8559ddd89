"""Where every figure of a report comes from: an equation or rule, a fact with source and date, a line of the scenario.

Figures of a plan are those of its totals, of workloads and their allocations (what was chosen, what is predicted, what
is known) and of what is bought ahead; then those of the budget, and of what was solved beside the plan. A row names
the place of its figure in the report document (`path`); what lies below that place is covered by it.

Rules stand behind what no equation of the physics gives: money, time, choice; each has an id and a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from planner.budget.model import Budget
from planner.errors import Place
from planner.plan.model.bought import Contract
from planner.plan.model.plan import Allocation, PlanDocument, TermSource, Workload
from planner.plan.model.rows import Energy
from planner.plan.parts import report_asked, rows_of, workloads_asked
from planner.report.model import Reported, TraceKind, TraceRow

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


Part = Literal["by_workload", "by_provider", "by_category", "lines", "beside"]
_PARTS: tuple[Part, ...] = ("by_workload", "by_provider", "by_category", "lines", "beside")
_MONEY = "micro-USD"


def budget_rows(budget: Budget | None, plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Totals, months, years, and every line with the charge of the plan that it is of.

    Parameters
    ----------
    budget
        Of the report; None = no rows.
    plan
        That the budget is of.
    places
        Path in the scenario -> where it is written; None = a line is told by its path in the plan.
    """
    if budget is None:
        return
    for name, value in budget["totals"].items():
        rule = RESERVE if name == "contingency_microusd" else SUM
        yield ruled(f"budget: {spaced(name)}", f"budget.totals.{name}", rule, value, _MONEY)
    for number, month in enumerate(budget["months"]):
        path, total = f"budget.months[{number}]", month["total_microusd"]
        yield ruled(f"budget: month {month['label']}", path, BY_MONTH, total, _MONEY)
    for number, year in enumerate(budget["fiscal_years"]):
        path, total = f"budget.fiscal_years[{number}]", year["total_microusd"]
        yield ruled(f"budget: fiscal year {year['label']}", path, SUM, total, _MONEY)
    for part in _PARTS:
        yield from _parts(budget, part)
    if budget["cases"]:
        yield ruled("budget: cases", "budget.cases", EXPECTED)
    yield from _options(budget, plan, places)


def _parts(budget: Budget, part: Part) -> Iterator[TraceRow]:
    """Rows of one way to split the money."""
    rule = {"lines": BY_MONTH, "beside": COST}.get(part, SUM)
    rows: Sequence[Mapping[str, object]] = budget[part]
    for number, row in enumerate(rows):
        names = (row.get(key) for key in ("workload", "provider", "item", "category", "what"))
        found = ruled("budget: " + " · ".join(str(name) for name in names if name), f"budget.{part}[{number}]", rule,
                      row["total_microusd"], _MONEY)  # fmt: skip
        found["place"] = f"plan.{row['source']}" if "source" in row else ""
        yield found


def _options(budget: Budget, plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """How the budget was asked for, and what it takes for granted."""
    written = report_asked(plan)
    for name in ("contingency", "fiscal_year_start"):
        place = where(places, f"report.{name}") if name in written else ""
        kind: TraceKind = "scenario" if place else "assumption"
        yield traced(f"budget: {spaced(name)}", f"budget.{name}", kind, value=budget[name], place=place)
    for span in ("horizon_hours", "month_hours"):
        yield traced(f"budget: {spaced(span)}", f"budget.{span}", "assumption", value=budget[span], unit="h")


def solved_rows(report: Reported) -> Iterator[TraceRow]:
    """Margins, frontier and trade-offs: other plans, each solved."""
    for name, figure in (("margins", "margins"), ("frontier", "frontier"), ("tradeoffs", "trade-offs")):
        if report.get(name):
            yield ruled(figure, name, SOLVED)


# how the cells of an allocation come about: kind and unit; those with an id of their own are traced one by one
_CHOSEN = {
    "count": "nodes",
    "devices": "devices",
    "replicas": "replicas",
    "layout": "",
    "level": "",
    "start_hours": "h",
    "end_hours": "h",
    "finish_hours": "h",
}
_PREDICTED = {
    "hours": "h",
    "binds": "",
    "mfu": "",
    "work": "",
    "rule_hours": "h",
    "run": "",
    "mix": "",
    "runs": "h",
    "load_at_peak": "",
    "replica_requests_per_s": "1/s",
    "planned_requests_per_s": "1/s",
    "bucket_requests_per_s": "1/s",
    "routed_requests_per_s": "1/s",
    "tpot_s": "s",
    "prefill_s": "s",
    "decode_terms_s": "s",
    "point": "",
    "batch": "sequences",
    "replicas_needed": "replicas",
    "tier": "",
    "output_tokens_per_s_per_replica": "tokens/s",
    "step_time_ratio": "",
    "mean_output_tokens": "tokens",
    "usd_per_million_output_tokens_mean": "USD",
    "usd_per_million_output_tokens_full": "USD",
}
_KNOWN = {  # unit, and the fact of a device behind it
    "peak_flop_per_s": ("FLOP/s", "peak_flop_per_s"),
    "power_w": ("W", "tdp_w"),
    "devices_per_shape": ("devices", ""),
    "devices_per_replica": ("devices", ""),
}
_ERRS = {"held_hours": "h", "error_band": ""}


def allocation_rows(
    plan: PlanDocument, workload: Workload, row: Allocation, path: str, asked: str
) -> Iterator[TraceRow]:
    """Every figure of one allocation.

    Parameters
    ----------
    path
        Of the allocation in the report document.
    asked
        Where the scenario asks for the workload.
    """
    who, cells = f"{workload['name']} on {row['offer']}", _cells(row)
    yield from _money(row, who, path)
    for key, unit in _CHOSEN.items():
        if key in cells:
            yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", CHOSEN, cells[key], unit)
    yield from _predicted(workload, row, who, path)
    for key, (unit, fact) in _KNOWN.items():
        if cells.get(key) is not None:
            origin = _origin(plan, row, fact)
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "fact", value=cells[key], unit=unit, **origin)
    for key in Energy.__annotations__:
        if cells.get(key) is not None and key not in (*_KNOWN, "carbon_kg"):
            yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", MACHINES, cells[key], unit_of(key))
    for key in ("deadline_hours", "jobs"):
        if key in cells:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "scenario", value=cells[key], place=asked)
    yield from _terms(workload, row, who, path)


def _cells(row: Allocation) -> Mapping[str, object]:
    return row


def _money(row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """Price, cost, device-hours and what they emit."""
    price = row["price_microusd_per_hour"]
    yield traced(f"{who}: price of a node", f"{path}.price_microusd_per_hour", "fact", value=price,
                 unit="micro-USD/h", source=row["price_source"], as_of=row["price_as_of"],
                 status=row["price_status"])  # fmt: skip
    for key in ("cost_microusd", "cost_usd"):
        yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", COST, row[key], unit_of(key))
    if "billed_hours" in row:
        hours = row["billed_hours"]
        yield traced(f"{who}: billed hours", f"{path}.billed_hours", "equation", value=hours, unit="h", ids="EQ-BILL-1")
    yield ruled(f"{who}: device-hours", f"{path}.device_hours", HOURS, row["device_hours"], "h")
    yield ruled(f"{who}: carbon", f"{path}.carbon_kg", CARBON, row["carbon_kg"], "kg")


def _predicted(workload: Workload, row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """What equations say of speed and load, and how far they may be off."""
    ids, cells = _time_equations(workload, row), _cells(row)
    for key, unit in _PREDICTED.items():
        if key in cells:
            source = str(cells.get("mfu_source", "")) if key in ("mfu", "hours") else ""
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=cells[key], unit=unit, ids=ids,
                         source=source)  # fmt: skip
    for key, unit in _ERRS.items():
        if cells.get(key) is not None:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=cells[key], unit=unit,
                         ids="EQ-BAND-1", source=_band_source(row))  # fmt: skip


def _time_equations(workload: Workload, row: Allocation) -> str:
    """Ids behind the time of a row: of the terms that are not zero, or else of all the workload."""
    terms = row["time_terms_s"] if "time_terms_s" in row else row["decode_terms_s"]
    known = workload["term_sources"]["time"]
    found = dict.fromkeys(known[name]["equation"] for name, value in terms.items() if value and name in known)
    return " ".join(found or workload["equations"]) or GIVEN


def _band_source(row: Allocation) -> str:
    """What a band was measured on."""
    if "error_band" not in row:
        return ""
    band, time = row["error_band"], row["error_band"]["time"]
    rows = f", {time['rows']} measured rows of {time['sources']} sources" if time else ""
    return f"{band['tier']} tier, {band['family']} {band['constants']}{rows}"


def _origin(plan: PlanDocument, row: Allocation, fact: str) -> dict[str, str]:
    """Source, date and status of a fact of a row's device; what follows from its shape is derived."""
    for one in plan["provenance"]["facts"]:
        if fact and one["subject"] == row["device"] and one["fact"].startswith(fact):
            return {"source": one["source"], "as_of": one["as_of"], "status": one["status"]}
    return {"source": f"catalog: {row['device']}, {row['shape']}", "as_of": "", "status": "derived"}


def _terms(workload: Workload, row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """Each part of memory and time with the equation that gives it."""
    sources = workload["term_sources"]
    parts = [("memory", "memory.terms_bytes", "B", row["memory"]["terms_bytes"], sources["memory"])]
    if "time_terms_s" in row:
        parts.append(("time", "time_terms_s", "s", row["time_terms_s"], sources["time"]))
    unknown: TermSource = {"equation": " ".join(workload["equations"]), "source": ""}
    for kind, below, unit, values, known in parts:
        for name, value in values.items():
            found = known.get(name, unknown)
            yield traced(f"{who}: {kind} of {spaced(name)}", f"{path}.{below}.{name}", "equation", value=value,
                         unit=unit, ids=found["equation"], source=found["source"])  # fmt: skip
    ids = " ".join(dict.fromkeys(one["equation"] for one in sources["memory"].values()))
    for size in ("needed_bytes", "usable_bytes", "free_bytes"):
        value = row["memory"][size]
        yield traced(f"{who}: memory {spaced(size)}", f"{path}.memory.{size}", "equation", value=value, unit="B",
                     ids=ids or GIVEN)  # fmt: skip


Total = Literal[
    "cost_microusd", "cost_usd", "training_usd", "serving_usd", "unused_usd", "devices", "device_hours",
    "bound_microusd", "bound_usd", "gap", "margins",
]  # fmt: skip
_BAND = "EQ-BAND-1"
_TOTALS: dict[Total, str] = {
    "cost_microusd": SUM,
    "cost_usd": SUM,
    "training_usd": SUM,
    "serving_usd": SUM,
    "unused_usd": SUM,
    "devices": SUM,
    "device_hours": HOURS,
    "bound_microusd": PROVEN,
    "bound_usd": PROVEN,
    "gap": PROVEN,
    "margins": SOLVED,
}


def summary_rows(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Totals, horizon and limits."""
    summary = plan["summary"]
    for name, rule in _TOTALS.items():
        if name in summary:
            yield ruled(f"total: {spaced(name)}", f"plan.summary.{name}", rule, summary[name], unit_of(name))
    yield traced("total: error band", "plan.summary.cost_band", "equation", ids=_BAND, unit="USD")
    given = "horizon" in plan["scenario"]
    yield traced(
        "horizon",
        "plan.summary.horizon_hours",
        "scenario" if given else "assumption",
        value=summary["horizon_hours"],
        unit="h",
        place=where(places, "horizon") if given else "",
    )
    for number, limit in enumerate(plan["limits"]):
        yield traced(f"limit: {limit['label'] or limit['name']}", f"plan.limits[{number}]", "scenario",
                     value=limit["bound"], unit=limit["unit"], place=where(places, limit["name"]))  # fmt: skip


def workload_rows(plan: PlanDocument, number: int, places: Places | None) -> Iterator[TraceRow]:
    """One workload and all its allocations.

    Parameters
    ----------
    plan
        The plan.
    number
        Of the workload in it, from zero.
    places
        Path in the scenario -> where it is written; None = a line is told by its path in the plan.
    """
    workload = plan["workloads"][number]
    path, name, ids = f"plan.workloads[{number}]", workload["name"], " ".join(workload["equations"])
    for key in ("cost_microusd", "cost_usd"):
        yield ruled(f"{name}: {spaced(key)}", f"{path}.{key}", SUM, workload[key], unit_of(key))
    for size in ("parameters", "active_parameters"):
        source = f"architecture of {workload['model']}"
        yield traced(f"{name}: {spaced(size)}", f"{path}.{size}", "fact", value=workload[size], source=source,
                     status="derived")  # fmt: skip
    asked = asked_at(plan, workload, places)
    for given in ("demand", "count"):
        yield traced(f"{name}: {spaced(given)}", f"{path}.{given}", "scenario", value=workload[given], place=asked)
    yield traced(f"{name}: error band", f"{path}.error_band", "equation", ids=_BAND)
    for key in ("fleet", "alternatives", "cross_check", "under_way"):
        yield traced(f"{name}: {spaced(key)}", f"{path}.{key}", "equation", ids=ids)
    for place, row in enumerate(rows_of(workload)):
        yield from allocation_rows(plan, workload, row, f"{path}.allocations[{place}]", asked)


def bought_rows(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Contracts, copies of data, the schedule, what is owned, what may happen."""
    for number, contract in enumerate(plan.get("contracts") or ()):
        yield from _contract(contract, f"plan.contracts[{number}]")
    for number, copy in enumerate(plan.get("copies") or ()):
        path, cost = f"plan.copies[{number}]", copy["cost_microusd"]
        yield ruled(f"copy of {copy['data']}", path, COST, cost, "micro-USD")
    for number, owned in enumerate(plan.get("owned") or ()):
        place = where(places, "hardware.owned")
        yield traced(f"owned {owned['shape']}", f"plan.owned[{number}]", "scenario", place=place)
    for number, hour in enumerate(plan.get("owned_hours") or ()):
        path = f"plan.owned_hours[{number}]"
        yield traced(f"an hour of {hour['shape']}", path, "equation", ids="EQ-OWN-1 EQ-OWN-2", unit="micro-USD/h",
                     value=hour["price_microusd_per_hour"], place=where(places, hour["place"]))  # fmt: skip
    parts = {
        "schedule": CHOSEN,
        "schedule.shares": SHARED,
        "spend": SUM,
        "uncertainty": EXPECTED,
    }
    for part, rule in parts.items():
        if plan.get(part.partition(".")[0]):
            yield ruled(part.replace(".", ": "), f"plan.{part}", rule)


def _contract(contract: Contract, path: str) -> Iterator[TraceRow]:
    who = f"contract {contract['offer']}"
    price = contract["price_microusd_per_hour"]
    yield traced(f"{who}: price of a node", f"{path}.price_microusd_per_hour", "fact", value=price,
                 unit="micro-USD/h", source=contract["price_source"], as_of=contract["price_as_of"],
                 status=contract["price_status"])  # fmt: skip
    yield ruled(f"{who}: nodes and time", path, CHOSEN, contract["count"], "nodes")
    for key in ("cost_microusd", "fee_microusd", "full_microusd", "prorated_microusd"):
        yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", COST, contract[key], "micro-USD")


KINDS = ("equation", "fact", "scenario", "assumption")


def trace_of(report: Reported, places: Places | None = None) -> list[TraceRow]:
    """Rows for every figure of a report.

    Parameters
    ----------
    report
        A report document without its trace.
    places
        Path in the scenario -> where it is written; without, a scenario line is told by its path in the plan.
    """
    plan = report["plan"]
    return [
        *summary_rows(plan, places),
        *(row for number in range(len(plan["workloads"])) for row in workload_rows(plan, number, places)),
        *bought_rows(plan, places),
        *budget_rows(report["budget"], plan, places),
        *solved_rows(report),
        *_facts(plan),
        *_scenario(plan, places),
        *_assumptions(plan),
    ]


def _facts(plan: PlanDocument) -> Iterator[TraceRow]:
    for number, fact in enumerate(plan["provenance"]["facts"]):
        figure, path = f"{fact['subject']}: {fact['fact']}", f"plan.provenance.facts[{number}]"
        yield traced(figure, path, "fact", value=fact["value"], source=fact["source"], as_of=fact["as_of"],
                     status=fact["status"])  # fmt: skip


def _scenario(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Every value that the scenario gives."""
    for path, value in leaves(plan["scenario"]):
        yield traced(path, f"plan.scenario.{path}", "scenario", value=value, place=where(places, path))


def _assumptions(plan: PlanDocument) -> Iterator[TraceRow]:
    for number, sentence in enumerate(plan["assumed"]):
        yield traced(sentence, f"plan.assumed[{number}]", "assumption")
