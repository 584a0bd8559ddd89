"""Why one row of a fleet is as it is: the replica at its load, a decode step term by term, latencies, memory, errors.

Every figure is a cell of the plan document; only shares are worked out here.
"""

from __future__ import annotations

from typing import Final

from planner.plan.model.fleet import Point, ServingAllocation
from planner.plan.model.workloads import ServingWorkload
from planner.report import serving_words as serving
from planner.report.blocks import Block, Grid, Items, columns
from planner.report.explain_training import memory_terms, terms_grid
from planner.units import format_number as number

_PERCENTILES: Final = ("mean", "p50", "p90", "p95", "p99")


def serving_blocks(workload: ServingWorkload, row: ServingAllocation) -> list[Block]:
    """The blocks of one row."""
    sources = workload["term_sources"]["time"]
    point = row["point"]
    title = "Time of one decode step" + (f" of {number(point['sequences'])} sequences" if point else "")
    step = [terms_grid(title, row["decode_terms_s"], serving.seconds, sources)] if row["decode_terms_s"] else []
    predicted = [_load(row, point), _latencies(point), _classes(point)] if point else []
    if not row["memory"]["terms_bytes"]:  # rates given: nothing else is known
        return predicted
    return [*predicted, *step, memory_terms(workload, row), _known(row)]


def rate_line(row: ServingAllocation) -> str:
    """What a replica takes at most."""
    batch = "" if row["batch"] is None else f", batch {number(row['batch'], 4, apart=True)}"
    made = row["output_tokens_per_s_per_replica"]
    tokens = "" if made is None else f" and {number(made, 4, apart=True)} tokens/s"
    rate = number(row["replica_requests_per_s"], 4)
    return f" Rate    {rate} requests/s{tokens} a replica{batch}; bound by {row['binds']}"


def _load(row: ServingAllocation, point: Point) -> Block:
    """One replica at the peak that is planned for it."""
    rows = [
        ["requests", f"{number(point['requests_per_s'], 4)} /s",
         f"of {number(point['capacity_requests_per_s'], 4)} /s within every target; sized by {point['sized_by']}"],
        ["tokens of a request",
         " + ".join(number(point[name], 4, apart=True) for name in ("input_tokens", "output_tokens")),
         f"{number(point['output_tokens_per_s'], 4, apart=True)} output tokens/s"],
        ["running sequences", number(point['sequences']),
         f"of {number(point['batch_limit'], 4, apart=True)} that {point['batch_limit_by'].replace('_', ' ')} allows"],
        ["prefill", f"{100 * point['prefill_share']:.3g} %",
         f"of the engine's time; {serving.seconds(point['prefill_s'])} each"],
    ]  # fmt: skip
    if "users" in point:
        most = f"of {number(row['replica_users'], 4, apart=True)} that it may serve; what they send as often as not:"
        rows.insert(0, ["users", number(point["users"], 4, apart=True), most])
    return Grid(columns=columns("One replica at peak", ">", ""), rows=rows)


def _latencies(point: Point) -> Block:
    later = [("time per output token", point["tpot_s"])] if serving.goes_on(point) else []
    named = [("time to first token", point["ttft_s"]), *later, ("whole request", point["e2e_s"])]
    rows = [[name, *(serving.seconds(latency[part]) for part in _PERCENTILES)] for name, latency in named]
    spaced = f"99 % of single tokens come within {serving.seconds(point['itl_p99_s'])} of the one before"
    notes = [spaced] if later else []
    for target in point["targets"]:
        figures = (target["at_confidence_s"], target["target_s"])
        stated, limit = (serving.seconds(value) for value in figures)
        notes.append(f"{serving.target_name(target['name'])}: {stated} of {limit} at the confidence asked for")
    return Grid(columns=columns("Latency", *(f">{name}" for name in _PERCENTILES)), rows=rows, notes=tuple(notes))


def _classes(point: Point) -> Block:
    """Each class of requests at its own percentiles: a line a class, a column a target."""
    classes = point.get("classes", [])
    first = classes[0]["targets"] if classes else []
    named = [f">{serving.target_name(one['name'])}, at most {serving.seconds(one['most_s'])}" for one in first]
    rows = [
        [one["name"], *(serving.seconds(target["at_confidence_s"]) for target in one["targets"])] for one in classes
    ]
    return Grid(columns=columns("Each class, at confidence", *named), rows=rows if named else [])


def _known(row: ServingAllocation) -> Block:
    """What predicts, with the error that it showed."""
    return Items(title="Known error", items=(serving.tier_words(row["tier"]),) if row["point"] else ())
