"""The calendar of a plan as blocks: who runs when, what is bought ahead, how full it is, where data are copied.

Rendered from the document alone; a plan without a calendar gives blocks that draw nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner import units
from planner.report import plan_words as words
from planner.report.blocks import Bar, Block, Grid, Lines, Timeline, columns

Piece = Mapping[str, Any]
_DAY_HOURS, _WEEK_HOURS, _YEAR_HOURS = 24.0, 168.0, 8760.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
KINDS = {
    "commitment_1y": "1-year commitment",
    "commitment_3y": "3-year commitment",
    "block": "capacity block",
    "calendar": "calendar start",
    "flex": "flex start",
    "on_demand": "on demand",
}
_SHORT = {**KINDS, "commitment_1y": "1 year", "commitment_3y": "3 years", "block": "block"}


def schedule_blocks(document: Piece) -> list[Block]:
    """Timeline of the workloads, use of the pools, contracts, copies of data, and what is owned."""
    return [
        timeline(document),
        pool_block(document),
        contract_block(document),
        share_block(document),
        copy_block(document),
        Lines(lines=tuple(spend_lines(document))),
    ]


def timeline(document: Piece) -> Block:
    """One line a job and start: when it runs, when it is done, what is left until its deadline."""
    plan = document.get("schedule")
    jobs = plan["jobs"] if plan else []
    whole = plan["periods"] * plan["period_hours"] if plan else 1.0
    whole = min(whole, document["summary"]["horizon_hours"])
    period = plan["period_hours"] if plan else 0.0
    lines = [([_job_name(job)], _bar(job, whole), _job_cells(job, period)) for job in jobs]
    rows = [line for number, line in enumerate(lines) if line not in lines[:number]]  # rows of a fleet run alike
    notes = [f"periods of {units.format_duration(plan['period_hours'] * 3600)}"] if plan else []
    if plan and plan["begin"]:
        notes.append(f"counted from {plan['begin']}")
    return Timeline(
        title="Schedule",
        before=columns("Job"),
        after=columns(">Start → finish", ">Slack"),
        rows=rows,
        axis=("0", moment(whole)),
        notes=(", ".join(notes),) if rows else (),
    )


def _job_name(job: Piece) -> str:
    many = f" ×{job['jobs']}" if job["jobs"] > 1 else ""
    return f"{job['workload']}{many} · {job['place']}"


def _bar(job: Piece, whole: float) -> Bar:
    spans = tuple((run["start_hours"] / whole, run["end_hours"] / whole) for run in job["runs"])
    deadline = job["deadline_hours"]
    until = whole if deadline is None else deadline
    return Bar(spans=spans, window=(job["release_hours"] / whole, min(1.0, until / whole)))


def _job_cells(job: Piece, period_hours: float) -> list[str]:
    if job["deadline_hours"] is None:
        return ["throughout", ""]
    ends = [_moment_of(job, name, period_hours) for name in ("start", "finish")]
    return [" → ".join(ends), moment(job["slack_hours"])]


def _moment_of(piece: Piece, name: str, period_hours: float) -> str:
    """The date where the plan has one, with the hour where its periods are short; else hours from its begin."""
    date = piece[f"{name}_date"]
    if date is None:
        return moment(piece[f"{name}_hours"])
    if piece[f"{name}_hours"] > _YEAR_HOURS:
        return str(date[:10])
    day = f"{int(date[8:10])} {_MONTHS[int(date[5:7]) - 1]}"
    return day if period_hours >= _DAY_HOURS else f"{day} {date[11:] or '00:00'}"


def moment(hours: float) -> str:
    """Hours after the plan's begin, or a length of time: "18.5 days", "9 weeks"."""
    if abs(hours) >= 8 * _WEEK_HOURS:
        return f"{words.short(hours / _WEEK_HOURS)} weeks"
    if abs(hours) >= 2 * _DAY_HOURS:
        return f"{words.short(hours / _DAY_HOURS)} days"
    return f"{words.short(hours)} h"


def pool_block(document: Piece) -> Block:
    """Nodes of each pool in use, period by period, against what is contracted or owned."""
    plan = document.get("schedule")
    rows = [([use["pool"]], Bar(levels=_levels(use)), _use_cells(use)) for use in (plan["use"] if plan else [])]
    return Timeline(
        title="Nodes of each pool",
        before=columns("Pool"),
        after=columns(">Contracted", ">In use", ">On demand", ">Filled"),
        rows=rows,
        axis=("0", _end(document)),
        notes=("nodes at most, by period; filled: share of the contracted node-hours in use",) if rows else (),
    )


def _end(document: Piece) -> str:
    return moment(document["summary"]["horizon_hours"])


def _levels(use: Piece) -> tuple[float, ...]:
    most = max([*use["used"], 1])
    return tuple(used / most for used in use["used"])


def _use_cells(use: Piece) -> list[str]:
    held, share = max(use["reserved"], default=0), use["used_share"]
    kind = " owned" if use["kind"] == "owned" else ""
    figures = [f"{held:,}{kind}", f"{max(use['used'], default=0):,}", f"{max(use['on_demand'], default=0):,}"]
    return [*figures, "" if share is None else f"{100 * share:.0f} %"]


def contract_block(document: Piece) -> Block:
    """What is bought, for how long, at what fee, how full it is, and what it saves against renting by the hour."""
    period = (document.get("schedule") or {}).get("period_hours", 0.0)
    rows = [_contract_row(document, chain, period) for chain in chains(document.get("contracts", []))]
    heads = columns("Bought", "Pool", ">Nodes", ">From → to", ">Cost", ">Used", ">Even at", ">Saves")
    return Grid(columns=heads, rows=rows, notes=tuple(_contract_notes(document)), grouped=True)


def chains(contracts: Sequence[Piece]) -> list[list[Piece]]:
    """Purchases that follow each other and differ in nothing but their time, pool by pool."""
    found: list[list[Piece]] = []
    for contract in sorted(contracts, key=lambda one: (one["pool"], one["kind"], one["offer"], one["first_period"])):
        last = found[-1][-1] if found else None
        same = last is not None and all(
            last[name] == contract[name] for name in ("offer", "pool", "count", "fee_microusd")
        )
        if same and last is not None and last["end_period"] == contract["first_period"]:
            found[-1].append(contract)
        else:
            found.append([contract])
    return found


def share_block(document: Piece) -> Block:
    """What each workload bears of the pools that it runs on."""
    rows = [
        [share["workload"], share["pool"], f"{share['node_hours']:,.0f}", words.money(document, share["cost_microusd"])]
        for share in (document.get("schedule") or {}).get("shares", [])
    ]
    heads = columns("Shared by node-hours", "Pool", ">Node-hours", ">Bears")
    return Grid(columns=heads, rows=rows, grouped=True)


def _contract_row(document: Piece, chain: Sequence[Piece], period_hours: float) -> list[str]:
    first, last = chain[0], chain[-1]
    shares = {name: mean_of(chain, name) for name in ("used_share", "break_even_share")}
    saved = [one["saved_microusd"] for one in chain if one["saved_microusd"] is not None]
    many = f"{len(chain)} × " if len(chain) > 1 else ""
    kind = str(_SHORT.get(first["kind"], first["kind"]))
    cost = words.money(document, sum(one["cost_microusd"] for one in chain))
    return [
        many + kind,
        first["pool"],
        f"{first['count']:,}",
        f"{_moment_of(first, 'start', period_hours)} → {_moment_of(last, 'end', period_hours)}",
        cost,
        *("" if share is None else f"{100 * share:.0f} %" for share in shares.values()),
        words.money(document, sum(saved)) if saved else "",
    ]


def mean_of(chain: Sequence[Piece], name: str) -> float | None:
    """Of purchases that last for different times, by their time."""
    if any(one[name] is None for one in chain):
        return None
    hours = sum(one["end_hours"] - one["start_hours"] for one in chain)
    return sum(one[name] * (one["end_hours"] - one["start_hours"]) for one in chain) / hours if hours else None


def _contract_notes(document: Piece) -> Iterator[str]:
    contracts = document.get("contracts", [])
    if any(contract["break_even_share"] is not None for contract in contracts):
        yield "even at: share of the time above which a node is cheaper so than on demand"
    beyond = [contract for contract in contracts if contract["full_microusd"] != contract["prorated_microusd"]]
    for kind in dict.fromkeys(contract["kind"] for contract in beyond):
        mine = [contract for contract in beyond if contract["kind"] == kind]
        full, part = (
            words.money(document, sum(contract[f"{name}_microusd"] for contract in mine))
            for name in ("full", "prorated")
        )
        counted = "the part within the horizon" if mine[0]["prorated"] else "the whole fee"
        yield f"{KINDS.get(kind, kind)}: {full} for the whole term, {part} within the horizon; {counted} counts"


def copy_block(document: Piece) -> Block:
    """Data sets that are copied to where they are trained on."""
    rows = [
        [
            copy["data"],
            copy["from"],
            f"{copy['provider']} {copy['region']}",
            units.format_bytes(copy["size_bytes"]),
            words.money(document, copy["egress_microusd"]),
            words.money(document, copy["storage_microusd"]),
            words.money(document, copy["cost_microusd"]),
        ]
        for copy in document.get("copies", [])
    ]
    heads = columns("Copies of data", "From", "To", ">Size", ">Egress", ">Storage", ">Cost")
    return Grid(columns=heads, rows=rows, grouped=True)


def spend_lines(document: Piece) -> Iterator[str]:
    """What is spent whatever happens, what only when it runs, and what was spent before."""
    spend = document.get("spend")
    if spend and spend["committed_microusd"]:
        parts = {name: words.money(document, spend[f"{name}_microusd"]) for name in ("committed", "variable")}
        yield f" Spend  {parts['committed']} committed, used or not · {parts['variable']} variable"
    for owned in document.get("owned") or ():
        sunk = words.money(document, owned["sunk_microusd"])
        yield f" Sunk  {owned['count']:,} × {owned['shape']}: {sunk}, beside the total"
