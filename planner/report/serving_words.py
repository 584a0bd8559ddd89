"""The words of a fleet's figures: latencies against targets, what predicts them, prices beside an API, routing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from planner import units
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, columns
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.fleet import Availability, Point, ServingAllocation, ServingTier
    from planner.plan.model.plan import PlanDocument, ServingWorkload
    from planner.plan.model.rows import MeasuredError

Latency = Literal["ttft_s", "tpot_s", "e2e_s"]
Quantile = Literal["p50", "p95"]
_SIMULATED: tuple[tuple[Latency, Quantile], ...] = (
    ("ttft_s", "p50"),
    ("ttft_s", "p95"),
    ("tpot_s", "p95"),
    ("e2e_s", "p95"),
)
SHOWN_CLASSES = 3  # of which all are shown beside a plan
_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}


def seconds(value: float | None) -> str:
    """A latency in the unit that suits it; "endless" where a replica cannot follow."""
    if value is None:
        return "endless"
    return f"{1e3 * value:.3g} ms" if value < 0.9995 else f"{number(value)} s"


def target_name(name: str) -> str:
    """A target as people say it: "TTFT p95"."""
    metric, _, percentile = name.partition("_")
    return f"{_NAMES.get(metric, metric)} {percentile}"


def pointed(document: PlanDocument) -> list[tuple[ServingWorkload, ServingAllocation, Point]]:
    """Workloads and rows whose latencies are predicted, with them."""
    fleets = [workload for workload in document["workloads"] if workload["kind"] == "serving"]
    return [(fleet, row, point) for fleet in fleets for row in fleet["allocations"] if (point := row["point"])]


def goes_on(point: Point) -> bool:
    """Whether answers have tokens after the first, which alone have a time per token."""
    return point["output_tokens"] > 1


def token_price(workload: ServingWorkload, usd_per_million_output: float) -> tuple[str, str]:
    """What a million tokens cost, and which: those that a fleet reads, where it writes just one of each request.

    Parameters
    ----------
    workload
        Says how long prompts and answers are.
    usd_per_million_output
        Its cost, shared out over the tokens of answers.
    """
    read, written = workload["demand"]["input_tokens"], workload["demand"]["output_tokens"]
    if not read or not written or written > 1:
        return f"{usd_per_million_output:,.2f}", "output"
    usd = usd_per_million_output * written / read
    return (f"{usd:,.2f}" if usd >= 1 else number(usd, 2)), "input"


def latency_block(document: PlanDocument) -> Grid:
    """Each row at the peak that is planned for it: latencies, and what is left of each target."""
    lines = [tuple(line) for workload, row, point in pointed(document) for line in _latency_rows(workload, row, point)]
    rows = [list(line) for line in dict.fromkeys(lines)]
    heads = columns("Latency at peak", "Device", "", ">predicted", ">at confidence", ">target", ">left")
    return Grid(columns=heads, rows=rows, notes=tuple(_known(document)) if rows else (), grouped=True)


def _latency_rows(workload: ServingWorkload, row: ServingAllocation, point: Point) -> Iterator[list[str]]:
    head = [workload["name"], row["device"]]
    for target in point["targets"]:
        left = "" if target["margin"] is None else f"{100 * target['margin']:.0f} %"
        figures = (target["predicted_s"], target["at_confidence_s"], target["target_s"])
        yield [*head, target_name(target["name"]), *map(seconds, figures), left]
    if not point["targets"]:
        told = (("ttft", point["ttft_s"]), ("tpot", point["tpot_s"]))
        for metric, latency in told if goes_on(point) else told[:1]:
            yield [*head, target_name(f"{metric}_p95"), seconds(latency["p95"]), "", "none", ""]


def class_block(document: PlanDocument, full: bool = True) -> Grid:
    """Each class of requests at its own percentiles, with what the spread allows; of many those that are worst off."""
    rows = [
        [workload["name"], row["device"], *line]
        for workload, row, point in pointed(document)
        for line in class_rows(point, full)
    ]
    heads = columns("Each class at peak", "Device", "Requests", "", ">at confidence", ">at most")
    more = not full and any(len(point.get("classes", [])) > SHOWN_CLASSES for _, _, point in pointed(document))
    notes = ("the worst class of each target; plan explain has all",) if more else ()
    return Grid(columns=heads, rows=[list(line) for line in dict.fromkeys(map(tuple, rows))], notes=notes, grouped=True)


def class_rows(point: Point, full: bool = True) -> Iterator[list[str]]:
    """Class, target, what it may take at the confidence asked for, and the most it may."""
    classes = point.get("classes", [])
    for place, target in enumerate(point["targets"]):
        each = [(one["name"], one["targets"][place]) for one in classes]
        if not full and len(classes) > SHOWN_CLASSES:
            each = [max(each, key=lambda pair: pair[1]["at_confidence_s"] or math.inf)]
        for name, held in each:
            figures = (held["at_confidence_s"], held["most_s"])
            yield [name, target_name(target["name"]), *map(seconds, figures)]


def _known(document: PlanDocument) -> Iterator[str]:
    """What predicts, with the error that it showed."""
    yield from dict.fromkeys(tier_words(row["tier"]) for _, row, _ in pointed(document))


def tier_words(tier: ServingTier) -> str:
    """ "analytic tier, vllm on hopper 1f2e3d4c (calibrated): TPOT off by 9 % in the median on 120 rows"."""
    head = f"{tier['tier']} tier, {tier['engine']} on {tier['family']}"
    head += f", constants {tier['constants'].removeprefix('calibrated ')}" if tier["constants"] else ""
    of = f" from {tier['inherited_from']}" if tier["inherited_from"] else ""
    errors = [
        f"{name} off by {100 * band['median_error']:.2g} % in the median, {band['p10']:.2f} to {band['p90']:.2f} times "
        f"as predicted (p10 to p90), {_seen(band)}"
        for name, band in (("TTFT", tier["ttft"]), ("TPOT", tier["tpot"]), ("throughput", tier.get("throughput")))
        if band
    ]
    return f"{head} ({tier['tag']}{of})" + (": " + "; ".join(errors) if errors else "")


def _seen(band: MeasuredError) -> str:
    """On how many rows a band rests."""
    if not band["rows"]:
        return "as others lead to expect: it was measured on no such row"
    return f"{band['rows']} rows of {band['sources']} campaigns"


def simulation_block(document: PlanDocument) -> Block:
    """What a simulation of the replicas showed, beside the formulas."""
    stated = {(workload["name"], row["offer"]): point for workload, row, point in pointed(document)}
    rows = [
        [one["workload"], one["device"], target_name(metric.replace("_s", f"_{key}")), seconds(one[metric][key]),
         seconds(stated[one["workload"], one["offer"]][metric][key])]
        for one in document.get("simulation") or ()
        for metric, key in _SIMULATED
    ]  # fmt: skip
    rows += [
        [one["workload"], one["device"], f"requests/s of {one['users']:,} users", number(one['requests_per_s'], 4),
         number(stated[one['workload'], one['offer']]['requests_per_s'], 4)]
        for one in document.get("simulation") or ()
        if "users" in one
    ]  # fmt: skip
    heads = columns("Simulated", "Device", "", ">simulation", ">formulas")
    lines = [list(line) for line in dict.fromkeys(tuple(row) for row in rows)]
    return Grid(columns=heads, rows=lines, grouped=True)


def price_lines(document: PlanDocument, workload: ServingWorkload) -> Iterator[str]:
    """What a million output tokens cost, beside an API's price."""
    fleet = workload["fleet"]
    if not fleet or not workload["allocations"]:
        return
    mean, full = fleet["usd_per_million_output_tokens_mean"], fleet["usd_per_million_output_tokens_full"]
    if mean is None or full is None:  # lengths that nobody gave
        return
    if any(row.get("funding") == "reserved" for row in workload["allocations"]):
        return  # what its nodes cost stands under the contracts
    if users := fleet.get("users"):
        yield (
            f" Users  {workload['name']} {users['users']:,.0f} at the peak, who think for "
            f"{units.format_duration(users['think_time_s'])} and are answered in {seconds(users['response_s'])} on "
            f"average: {number(users['requests_per_s'], 4)} requests/s"
        )
    (at_mean, kind), (at_full, _) = (token_price(workload, each) for each in (mean, full))
    yield f" $ per 1M {kind} tokens  {workload['name']} {at_mean} at mean load, {at_full} at full load"
    api = fleet["api"]
    if not api:
        return
    cost = words.money(document, 1e6 * api["cost_usd"])
    cheaper = "dearer" if 1e6 * api["cost_usd"] > workload["cost_microusd"] else "cheaper"
    yield (
        f" API at {api['price']}  {workload['name']} {api['usd_per_million_output_tokens']:,.2f} per 1M output tokens, "
        f"{cost} for the same requests: {cheaper}; even at "
        f"{number(api['break_even_requests_per_s'] or 0.0)} requests/s on average"
    )


def routing_block(document: PlanDocument) -> Block:
    """Which share of the requests of each class goes where, when there are several classes and places."""
    rows = []
    for workload in document["workloads"]:
        if workload["kind"] == "training" or len(workload["allocations"]) < 2 or len(workload["fleet"]["buckets"]) < 2:
            continue
        for place, bucket in enumerate(workload["fleet"]["buckets"]):
            rows.append([workload["name"], bucket["name"], f"{100 * bucket['share']:.1f} %", _split(workload, place)])
    return Grid(columns=columns("Routing", "Requests", ">share", "go to"), rows=rows, grouped=True, folded=True)


def _split(workload: ServingWorkload, bucket: int) -> str:
    sent = [(row["routed_requests_per_s"][bucket], row) for row in workload["allocations"]]
    whole = sum(rate for rate, _ in sent)
    parts = [f"{words.offer_of(row)} {100 * rate / whole:.0f} %" for rate, row in sent if whole and rate > 1e-9 * whole]
    return ", ".join(parts)


def availability_line(workload: ServingWorkload) -> str:
    """How often spares are enough."""
    fleet = workload["fleet"]
    found = fleet["availability"]
    if not found or found["asked"] is None:
        return ""
    return (
        f" Availability  {workload['name']} {nines(found['time_within_spares'])} % of the time with "
        f"{fleet['spare_replicas']} spare replicas ({nines(found['asked'])} % asked for; one replica is up "
        f"{nines(found['replica'])} %, replaced in {units.format_duration(found['repair_s'])}{taken_away(found)})"
    )


def nines(share: float) -> str:
    """A share of the time in percent, with as many digits as tell it from all of the time.

    Examples
    --------
    >>> nines(0.99), nines(0.9999), nines(0.99999912), nines(1 - 1e-12)
    ('99', '99.99', '99.99991', 'more than 99.999999')
    """
    left = 100 * (1 - share)
    if left < 1e-6:
        return "more than 99.999999"
    return f"{100 * share:.{max(3, math.ceil(-math.log10(left)))}f}".rstrip("0").rstrip(".")


def taken_away(found: Availability) -> str:
    """How often what replicas on spot stand on is taken away; empty where none are."""
    spot = found.get("spot")
    if not spot:
        return ""
    every = units.format_duration(1.0 / spot["interruptions_per_s"])
    return (
        f"; {spot['replicas']} stand on spot, where a machine is taken away every {every} and is "
        f"back in {units.format_duration(spot['away_s'])}"
    )
