"""The calendar of a plan as blocks: who runs when, what is bought ahead, how full it is, where data are copied.

Rendered from the document alone; a plan without a calendar gives blocks that draw nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from planner import units
from planner.report import plan_words as words
from planner.report.blocks import Bar, Block, Grid, Lines, Timeline, columns

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract, PoolUseRow, ScheduledJob
    from planner.plan.model.plan import PlanDocument

Share = Literal["used_share", "break_even_share", "last_node_share", "next_node_share"]
_DAY_HOURS, _WEEK_HOURS, _YEAR_HOURS = 24.0, 168.0, 8760.0
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TERMS = {"commitment_1y": "1 year", "commitment_3y": "3 years"}
KINDS = {
    **{kind: f"{term.removesuffix('s').replace(' ', '-')} commitment" for kind, term in TERMS.items()},
    "block": "capacity block",
    "calendar": "calendar start",
    "flex": "flex start",
    "on_demand": "on demand",
}
_SHORT = {**KINDS, **TERMS, "block": "block"}


def schedule_blocks(document: PlanDocument) -> list[Block]:
    """Timeline of the workloads, use of the pools, contracts, copies of data, and what is owned."""
    return [
        timeline(document),
        pool_block(document),
        contract_block(document),
        share_block(document),
        copy_block(document),
        Lines(lines=tuple(spend_lines(document))),
    ]


def timeline(document: PlanDocument) -> Block:
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


def _job_name(job: ScheduledJob) -> str:
    many = f" ×{job['jobs']}" if job["jobs"] > 1 else ""
    return f"{job['workload']}{many} · {job['place']}"


def _bar(job: ScheduledJob, whole: float) -> Bar:
    spans = tuple((run["start_hours"] / whole, run["end_hours"] / whole) for run in job["runs"])
    deadline = job["deadline_hours"]
    until = whole if deadline is None else deadline
    return Bar(spans=spans, window=(job["release_hours"] / whole, min(1.0, until / whole)))


def _job_cells(job: ScheduledJob, period_hours: float) -> list[str]:
    if job["deadline_hours"] is None:
        return ["throughout", ""]
    ends = [
        _moment_of(job["start_date"], job["start_hours"], period_hours),
        _moment_of(job["finish_date"], job["finish_hours"], period_hours),
    ]
    slack = job["slack_hours"]
    return [" → ".join(ends), "" if slack is None else moment(slack)]


def _moment_of(date: str | None, hours: float, period_hours: float) -> str:
    """The date where the plan has one, with the hour where its periods are short; else hours from its begin."""
    if date is None:
        return moment(hours)
    if hours > _YEAR_HOURS:
        return date[:10]
    day = f"{int(date[8:10])} {_MONTHS[int(date[5:7]) - 1]}"
    return day if period_hours >= _DAY_HOURS else f"{day} {date[11:] or '00:00'}"


def moment(hours: float) -> str:
    """Hours after the plan's begin, or a length of time: "18.5 days", "9 weeks"."""
    if abs(hours) >= 8 * _WEEK_HOURS:
        return f"{words.short(hours / _WEEK_HOURS)} weeks"
    if abs(hours) >= 2 * _DAY_HOURS:
        return f"{words.short(hours / _DAY_HOURS)} days"
    return f"{words.short(hours)} h"


def pool_block(document: PlanDocument) -> Block:
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


def _end(document: PlanDocument) -> str:
    return moment(document["summary"]["horizon_hours"])


def _levels(use: PoolUseRow) -> tuple[float, ...]:
    most = max([*use["used"], 1])
    return tuple(used / most for used in use["used"])


def _use_cells(use: PoolUseRow) -> list[str]:
    held, share = max(use["reserved"], default=0), use["used_share"]
    kind = " owned" if use["kind"] == "owned" else ""
    figures = [f"{held:,}{kind}", f"{max(use['used'], default=0):,}", f"{max(use['on_demand'], default=0):,}"]
    return [*figures, "" if share is None else f"{100 * share:.0f} %"]


def contract_block(document: PlanDocument) -> Block:
    """What is bought, for how long, at what fee, how full it is, and what the same nodes would cost by the hour."""
    plan = document.get("schedule")
    period = plan["period_hours"] if plan else 0.0
    rows = [_contract_row(document, chain, period) for chain in chains(document.get("contracts", []))]
    heads = columns("Bought", "Pool", ">Nodes", ">From → to", ">Cost", ">Used", ">Even at", ">Rented")
    return Grid(columns=heads, rows=rows, notes=tuple(_contract_notes(document)), grouped=True)


def chains(contracts: Sequence[Contract]) -> list[list[Contract]]:
    """Purchases that follow each other and differ in nothing but their time, pool by pool."""
    found: list[list[Contract]] = []
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


def share_block(document: PlanDocument) -> Block:
    """What each workload bears of the pools that it runs on."""
    plan = document.get("schedule")
    rows = [
        [share["workload"], share["pool"], f"{share['node_hours']:,.0f}", words.money(document, share["cost_microusd"])]
        for share in (plan["shares"] if plan else ())
    ]
    heads = columns("Shared by node-hours", "Pool", ">Node-hours", ">Bears")
    return Grid(columns=heads, rows=rows, grouped=True)


def _contract_row(document: PlanDocument, chain: Sequence[Contract], period_hours: float) -> list[str]:
    first, last = chain[0], chain[-1]
    shares = mean_of(chain, "used_share"), mean_of(chain, "break_even_share")
    rented = [one["on_demand_microusd"] for one in chain if one["on_demand_microusd"] is not None]
    many = f"{len(chain)} × " if len(chain) > 1 else ""
    kind = str(_SHORT.get(first["kind"], first["kind"]))
    cost = words.money(document, sum(one["cost_microusd"] for one in chain))
    begin = _moment_of(first["start_date"], first["start_hours"], period_hours)
    end = _moment_of(last["end_date"], last["end_hours"], period_hours)
    return [
        many + kind,
        first["pool"],
        f"{first['count']:,}",
        f"{begin} → {end}",
        cost,
        *("" if share is None else f"{100 * share:.0f} %" for share in shares),
        words.money(document, sum(rented)) if rented else "",
    ]


def mean_of(chain: Sequence[Contract], name: Share) -> float | None:
    """Of purchases that last for different times, by their time."""
    known = [(share, one["end_hours"] - one["start_hours"]) for one in chain if (share := one[name]) is not None]
    hours = sum(length for _, length in known)
    return sum(share * length for share, length in known) / hours if hours and len(known) == len(chain) else None


def _contract_notes(document: PlanDocument) -> Iterator[str]:
    contracts = document.get("contracts", [])
    if any(contract["break_even_share"] is not None for contract in contracts):
        yield "even at: share of the time above which a node is cheaper so than the same one on demand there"
        yield "rented: the hours in use of the same nodes on demand; without contracts a plan may rent cheaper ones"
    beyond = [contract for contract in contracts if contract["full_microusd"] != contract["prorated_microusd"]]
    for kind in dict.fromkeys(contract["kind"] for contract in beyond):
        mine = [contract for contract in beyond if contract["kind"] == kind]
        full, part = (
            words.money(document, sum(contract[name] for contract in mine))
            for name in ("full_microusd", "prorated_microusd")
        )
        counted = "the part within the horizon" if mine[0]["prorated"] else "the whole fee"
        yield f"{KINDS.get(kind, kind)}: {full} for the whole term, {part} within the horizon; {counted} counts"


def copy_block(document: PlanDocument) -> Block:
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


def spend_lines(document: PlanDocument) -> Iterator[str]:
    """What is spent whatever happens, what only when it runs, and what was spent before."""
    spend = document.get("spend")
    if spend and spend["committed_microusd"]:
        committed, variable = (
            words.money(document, spend[name]) for name in ("committed_microusd", "variable_microusd")
        )
        yield f" Spend  {committed} committed, used or not · {variable} variable"
    yield from _owned_hours(document)
    for owned in document.get("owned") or ():
        sunk = words.money(document, owned["sunk_microusd"])
        yield f" Sunk  {owned['count']:,} × {owned['shape']}: {sunk}, beside the total"


def _owned_hours(document: PlanDocument) -> Iterator[str]:
    """What capital, power and staff are of an hour of owned machines, and of what is spent on them."""
    for row in document.get("owned_hours") or ():
        parts = {
            "capital": (row["capital_microusd_per_hour"], row["capital_microusd"]),
            "power": (row["power_microusd_per_hour"], row["power_microusd"]),
            "staff": (row["staff_microusd_per_hour"], row["staff_microusd"]),
        }
        hour = " + ".join(f"{_hourly(hourly)} {part}" for part, (hourly, _) in parts.items() if hourly)
        spent = ", ".join(f"{words.money(document, cost)} {part}" for part, (hourly, cost) in parts.items() if hourly)
        whole, device = _hourly(row["price_microusd_per_hour"]), _hourly(1e6 * row["price_usd_per_device_hour"])
        per_device = f" ({device} a device-hour)" if row["devices_per_shape"] > 1 else ""
        text = f" Owned  {row['shape']}: {whole} an hour{per_device} = {hour or 'nothing'}"
        if row["cost_microusd"]:
            text += f"; of {words.money(document, row['cost_microusd'])} here {spent}"
        yield text


def _hourly(microusd: float) -> str:
    """Money of an hour, to a hundredth of a cent: "$9.24", "$0.1248"."""
    whole, _, part = f"{microusd / 1e6:,.4f}".partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"
