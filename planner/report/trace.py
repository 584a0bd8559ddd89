"""Where every figure of a report comes from: an equation or rule, a fact with source and date, a line of the scenario.

A row names the place of its figure in the report document (`path`); what lies below that place is covered by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner.errors import Place
from planner.report import accounting as rules

Document = dict[str, Any]
Piece = Mapping[str, Any]
Places = Mapping[str, Place]
KINDS = ("equation", "fact", "scenario", "assumption")

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
    "share_kept": "",
    "step_time_ratio": "",
    "mean_output_tokens": "tokens",
    "usd_per_million_output_tokens_mean": "USD",
    "usd_per_million_output_tokens_full": "USD",
}
_KNOWN = {
    "peak_flop_per_s": "FLOP/s",
    "power_w": "W",
    "carbon_kg": "kg",
    "devices_per_shape": "devices",
    "devices_per_replica": "devices",
}
_ERRS = {"held_hours": "h", "error_band": ""}


def trace_of(report: Piece, places: Places | None = None) -> list[Document]:
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
        *_summary(plan),
        *(row for w, workload in enumerate(plan["workloads"]) for row in _workload(workload, w, places)),
        *_bought(plan),
        *_budget(report["budget"], plan),
        *_solved(report),
        *_facts(plan),
        *_scenario(plan, places),
        *_assumptions(plan),
    ]


def _row(
    figure: str,
    path: str,
    kind: str,
    *,
    value: Any = None,
    unit: str = "",
    ids: str = "",
    source: str = "",
    as_of: str = "",
    status: str = "",
    place: str = "",
) -> Document:
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


def _ruled(figure: str, path: str, rule: str, value: Any = None, unit: str = "") -> Document:
    return _row(figure, path, "equation", value=value, unit=unit, ids=rule, source=rules.RULES[rule])


def _summary(plan: Piece) -> Iterator[Document]:
    told = {
        "cost_microusd": rules.SUM,
        "cost_usd": rules.SUM,
        "training_usd": rules.SUM,
        "serving_usd": rules.SUM,
        "devices": rules.SUM,
        "device_hours": rules.HOURS,
        "bound_microusd": rules.PROVEN,
        "bound_usd": rules.PROVEN,
        "gap": rules.PROVEN,
        "margins": rules.SOLVED,
    }
    summary = plan["summary"]
    for name, rule in told.items():
        yield _ruled(f"total: {_spaced(name)}", f"plan.summary.{name}", rule, summary[name], _unit(name))
    yield _row(
        "total: error band",
        "plan.summary.cost_band",
        "equation",
        ids="EQ-BAND-1",
        source="bands of the rows, quantile by quantile",
        unit="USD",
    )
    yield _row(
        "horizon",
        "plan.summary.horizon_hours",
        "scenario" if "horizon" in plan["scenario"] else "assumption",
        value=summary["horizon_hours"],
        unit="h",
        place="scenario.horizon",
    )
    for number, limit in enumerate(plan["limits"]):
        yield _row(
            f"limit: {limit['label'] or limit['name']}",
            f"plan.limits[{number}]",
            "scenario",
            value=limit["bound"],
            unit=limit["unit"],
            place=f"scenario.{limit['name']}",
        )


def _workload(workload: Piece, w: int, places: Places | None) -> Iterator[Document]:
    path, name = f"plan.workloads[{w}]", workload["name"]
    ids = " ".join(workload["equations"])
    for key in ("cost_microusd", "cost_usd"):
        yield _ruled(f"{name}: {_spaced(key)}", f"{path}.{key}", rules.SUM, workload[key], _unit(key))
    model = _row(
        f"{name}: parameters of {workload['model']}",
        f"{path}.parameters",
        "fact",
        value=workload["parameters"],
        source=f"architecture of {workload['model']}",
        status="derived",
    )
    yield model
    yield {**model, "path": f"{path}.active_parameters", "value": workload["active_parameters"]}
    yield _row(f"{name}: error band", f"{path}.error_band", "equation", ids="EQ-BAND-1")
    yield _row(f"{name}: demand", f"{path}.demand", "scenario", place=_place(places, name, workload["kind"]))
    yield _row(
        f"{name}: copies asked for",
        f"{path}.count",
        "scenario",
        value=workload["count"],
        place=_place(places, name, workload["kind"]),
    )
    for key in ("fleet", "alternatives", "cross_check", "under_way"):
        yield _row(f"{name}: {_spaced(key)}", f"{path}.{key}", "equation", ids=ids)
    for a, row in enumerate(workload["allocations"]):
        yield from _allocation(workload, row, f"{path}.allocations[{a}]", places)


def _place(places: Places | None, name: str, kind: str) -> str:
    """Where a workload is written."""
    for path, place in (places or {}).items():
        if path.startswith(kind) and path.endswith(".name") and place.text and name in place.text:
            return f"{place.file}:{place.line}"
    return f"scenario.{kind}.{name}"


def _allocation(workload: Piece, row: Piece, path: str, places: Places | None) -> Iterator[Document]:
    who, ids = f"{workload['name']} on {row['offer']}", _time_equations(workload, row)
    told = {"source": row["price_source"], "as_of": row["price_as_of"], "status": row["price_status"]}
    yield _row(
        f"{who}: price of a node",
        f"{path}.price_microusd_per_hour",
        "fact",
        unit="micro-USD/h",
        value=row["price_microusd_per_hour"],
        **told,
    )
    for key in ("cost_microusd", "cost_usd"):
        yield _ruled(f"{who}: {_spaced(key)}", f"{path}.{key}", rules.COST, row[key], _unit(key))
    yield _ruled(f"{who}: device-hours", f"{path}.device_hours", rules.HOURS, row["device_hours"], "h")
    for key, unit in _CHOSEN.items():
        if key in row:
            yield _ruled(f"{who}: {_spaced(key)}", f"{path}.{key}", rules.CHOSEN, row[key], unit)
    for key, unit in _PREDICTED.items():
        if key in row:
            source = row.get("mfu_source", "") if key in ("mfu", "hours") else ""
            yield _row(
                f"{who}: {_spaced(key)}", f"{path}.{key}", "equation", value=row[key], unit=unit, ids=ids, source=source
            )
    for key, unit in _ERRS.items():
        if row.get(key) is not None:
            yield _row(
                f"{who}: {_spaced(key)}",
                f"{path}.{key}",
                "equation",
                value=row[key],
                unit=unit,
                ids="EQ-BAND-1",
                source=_band_source(row),
            )
    for key, unit in _KNOWN.items():
        if row.get(key) is not None:
            yield _row(
                f"{who}: {_spaced(key)}",
                f"{path}.{key}",
                "fact",
                value=row[key],
                unit=unit,
                source=f"facts of {row['device']} and {row['shape']}, below",
                as_of=row["price_as_of"],
            )
    asked = _place(places, workload["name"], workload["kind"])
    for key in ("deadline_hours", "jobs"):
        if key in row:
            yield _row(f"{who}: {_spaced(key)}", f"{path}.{key}", "scenario", value=row[key], place=asked)
    yield from _terms(workload, row, who, path)


def _time_equations(workload: Piece, row: Piece) -> str:
    """Ids behind the time of a row: of the terms that are not zero, or else of all the workload."""
    terms = {**(row.get("time_terms_s") or {}), **(row.get("decode_terms_s") or {})}
    known = workload["term_sources"]["time"]
    found = dict.fromkeys(known[name]["equation"] for name, value in terms.items() if value and name in known)
    return " ".join(found or workload["equations"])


def _band_source(row: Piece) -> str:
    band = row.get("error_band") or {}
    time = band.get("time") or {}
    rows = f", {time['rows']} measured rows of {time['sources']} sources" if time else ""
    return f"{band['tier']} tier, {band['family']} {band['constants']}{rows}" if band else ""


def _terms(workload: Piece, row: Piece, who: str, path: str) -> Iterator[Document]:
    """Each part of memory and time with the equation that gives it."""
    kinds = {"memory": ("memory.terms_bytes", "B"), "time": ("time_terms_s", "s")}
    for kind, (below, unit) in kinds.items():
        values = row["memory"]["terms_bytes"] if kind == "memory" else row.get("time_terms_s") or {}
        known = workload["term_sources"][kind]
        for name, value in values.items():
            found = known.get(name, {"equation": " ".join(workload["equations"]), "source": ""})
            yield _row(
                f"{who}: {kind} of {_spaced(name)}",
                f"{path}.{below}.{name}",
                "equation",
                value=value,
                unit=unit,
                ids=found["equation"],
                source=found["source"],
            )
    for name in ("needed_bytes", "usable_bytes", "free_bytes"):
        yield _row(
            f"{who}: memory {_spaced(name)}",
            f"{path}.memory.{name}",
            "equation",
            value=row["memory"][name],
            unit="B",
            ids=" ".join(dict.fromkeys(one["equation"] for one in workload["term_sources"]["memory"].values()))
            or rules.SUM,
        )


def _bought(plan: Piece) -> Iterator[Document]:
    for number, contract in enumerate(plan.get("contracts") or ()):
        path, who = f"plan.contracts[{number}]", f"contract {contract['offer']}"
        told = {
            "source": contract["price_source"],
            "as_of": contract["price_as_of"],
            "status": contract["price_status"],
        }
        yield _row(
            f"{who}: price of a node",
            f"{path}.price_microusd_per_hour",
            "fact",
            unit="micro-USD/h",
            value=contract["price_microusd_per_hour"],
            **told,
        )
        yield _ruled(f"{who}: nodes and time", path, rules.CHOSEN, contract["count"], "nodes")
        for key in ("cost_microusd", "fee_microusd", "full_microusd", "prorated_microusd"):
            yield _ruled(f"{who}: {_spaced(key)}", f"{path}.{key}", rules.COST, contract[key], "micro-USD")
    for number, copy in enumerate(plan.get("copies") or ()):
        yield _ruled(
            f"copy of {copy['data']}", f"plan.copies[{number}]", rules.COST, copy["cost_microusd"], "micro-USD"
        )
    if plan.get("schedule"):
        yield _ruled("schedule", "plan.schedule", rules.CHOSEN)
        yield _ruled("shares of pools", "plan.schedule.shares", rules.SHARED)
    if plan.get("spend"):
        yield _ruled("spend", "plan.spend", rules.SUM)
    for number, owned in enumerate(plan.get("owned") or ()):
        yield _row(f"owned {owned['shape']}", f"plan.owned[{number}]", "scenario", place="scenario.hardware.owned")
    if plan.get("uncertainty"):
        yield _ruled("cases", "plan.uncertainty", rules.EXPECTED)


def _budget(budget: Piece | None, plan: Piece) -> Iterator[Document]:
    if budget is None:
        return
    for name, value in budget["totals"].items():
        rule = rules.RESERVE if name == "contingency_microusd" else rules.SUM
        yield _ruled(f"budget: {_spaced(name)}", f"budget.totals.{name}", rule, value, "micro-USD")
    for part, noun in (("months", "month"), ("fiscal_years", "fiscal year")):
        for number, row in enumerate(budget[part]):
            value = row["total_microusd"]
            rule = rules.BY_MONTH if part == "months" else rules.SUM
            yield _ruled(f"budget: {noun} {row['label']}", f"budget.{part}[{number}]", rule, value, "micro-USD")
    for part in ("by_workload", "by_provider", "by_category", "lines"):
        for number, row in enumerate(budget[part]):
            rule = rules.BY_MONTH if part == "lines" else rules.SUM
            yield {
                **_ruled(
                    f"budget: {_line_name(row)}", f"budget.{part}[{number}]", rule, row["total_microusd"], "micro-USD"
                ),
                "place": f"plan.{row['source']}" if part == "lines" else "",
            }
    for number, row in enumerate(budget["beside"]):
        yield {
            **_ruled(
                f"budget: {row['what']}", f"budget.beside[{number}]", rules.COST, row["total_microusd"], "micro-USD"
            ),
            "place": f"plan.{row['source']}",
        }
    if budget["cases"]:
        yield _ruled("budget: cases", "budget.cases", rules.EXPECTED)
    yield from _options(budget, plan)


def _options(budget: Piece, plan: Piece) -> Iterator[Document]:
    written = plan["scenario"].get("report") or {}
    for name in ("contingency", "fiscal_year_start"):
        kind, place = ("scenario", f"scenario.report.{name}") if name in written else ("assumption", "")
        yield _row(f"budget: {_spaced(name)}", f"budget.{name}", kind, value=budget[name], place=place)
    for name in ("horizon_hours", "month_hours"):
        yield _row(f"budget: {_spaced(name)}", f"budget.{name}", "assumption", value=budget[name], unit="h")


def _line_name(row: Piece) -> str:
    return " · ".join(str(row[key]) for key in ("workload", "provider", "item", "category") if row.get(key))


def _solved(report: Piece) -> Iterator[Document]:
    for name, figure in (("margins", "margins"), ("frontier", "frontier"), ("tradeoffs", "trade-offs")):
        if report.get(name):
            yield _ruled(figure, name, rules.SOLVED)


def _facts(plan: Piece) -> Iterator[Document]:
    for number, fact in enumerate(plan["provenance"]["facts"]):
        yield _row(
            f"{fact['subject']}: {fact['fact']}",
            f"plan.provenance.facts[{number}]",
            "fact",
            value=fact["value"],
            source=fact["source"],
            as_of=fact["as_of"],
            status=fact["status"],
        )


def _scenario(plan: Piece, places: Places | None) -> Iterator[Document]:
    """Every value that the scenario gives."""
    for path, value in leaves(plan["scenario"]):
        place = (places or {}).get(path)
        where = f"{place.file}:{place.line}" if place is not None and place.line else f"scenario.{path}"
        yield _row(path, f"plan.scenario.{path}", "scenario", value=value, place=where)


def _assumptions(plan: Piece) -> Iterator[Document]:
    for number, sentence in enumerate(plan["assumed"]):
        yield _row(sentence, f"plan.assumed[{number}]", "assumption")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of everything that is no mapping and no list: "training[0].deadline"."""
    items: Iterable[tuple[str, Any]]
    if isinstance(value, Mapping):
        items = ((f"{path}.{key}" if path else str(key), one) for key, one in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = ((f"{path}[{number}]", one) for number, one in enumerate(value))
    else:
        yield path, value
        return
    for below, one in items:
        yield from leaves(one, below)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _unit(name: str) -> str:
    for ending, unit in (("_microusd", "micro-USD"), ("_usd", "USD"), ("_hours", "h")):
        if name.endswith(ending):
            return unit
    return ""
