"""The words and figures of a plan: one cell or sentence from one piece of the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from planner import units
from planner.candidates.program import SHARE
from planner.plan.parts import currency_of, spent_on
from planner.plan.proof import is_proven

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.others import Conflict, Limit, Plain, Reason, Rejected
    from planner.plan.model.plan import Allocation, Alternative, PlanDocument, Workload
    from planner.plan.model.rows import TrainingAllocation

_ONE = re.compile(r"(?<![0-9.,])1 (device|node|shape|provider)s\b")
_BAR = 24
_MONTH_HOURS = 730

LEGEND = (
    "dp data, tp tensor, pp pipeline, vpp virtual stages, cp context, ep expert parallel; "
    "mb micro-batch × passes of a step"
)
REASONS = {
    "memory": "too little memory",
    "deadline": "over the deadline",
    "network-unknown": "network between nodes unknown",
    "fabric": "network not made for a replica over several machines",
    "host-network": "parts of a host, whose network they share",
    "pipeline": "a pipeline where tensor parallelism does",
    "blocks": "the engine does not load weights in blocks or groups so (fewer ranks, layout: ep or weights: fp8 do)",
    "drafts": "the engine drafts no tokens so in a pipeline (another engine, or speculative left out, does without)",
    "unmoved": "the engine moves no cache between replicas that are split so and the other pool",
    "mix-network": "network unknown, so it joins no other offer in one job",
    "failures": "fails faster than it restarts",
    "host-memory": "too little host memory for what is offloaded",
    "host-memory-unknown": "host memory unknown",
    "spot": "spot, where no fleet stands without max_spot_share",
    "precision": "format not supported",
    "framework": "framework does not run there",
    "unlaunched": "nothing that plan export writes for runs it there (a name in hardware.allow)",
    "power-unknown": "power unknown",
    "unadvised": "ZeRO-2 and ZeRO-3 under a pipeline, which few trainers allow: pin pp and sharding; a short sequence "
    "and experts both split on few devices: pin cp",
    "no-program": "no program that trains this model splits it so",
    "dominated": "another way is no worse in anything",
    "slower": "on as many devices another layout is faster",
    "not-allowed": "not in hardware.allow",
    "price-model": "other price model (hardware.pricing)",
    "region": "other region (hardware.regions)",
    "place": "not in the regions of the workload",
    "quota": "over a quota or limit",
    "suspect-price": "suspect price (--allow-suspect)",
    "recalled-price": "recalled price (hardware.allow_recalled)",
    "provider": "other provider (hardware.providers, exclude)",
    "kind": "other kind of provider (hardware.kinds)",
    "marketplace": "marketplace, promises nothing (hardware.kinds)",
    "carbon-unknown": "carbon unknown",
    "latency": "misses a latency target even when idle",
    "too-slow": "too slow to plan with",
    "shape-unknown": "only the model's size is known",
    "bandwidth-unknown": "memory bandwidth unknown",
    "unpublished": "only its vendor serves on it, and nothing is published",
    "not-run": "the engine runs no such device or format",
    "no-kernels": "no kernels for floats of so few bits in the engine",
    "residency": "its data may not go there",
    "egress-unknown": "cost of moving its data there unknown",
    "storage-unknown": "cost of keeping its data there unknown",
    "not-for-training": "no device to train on",
    "not-for-serving": "no device to serve on",
    "too-dear": "dearer than any plan may be",
}


class Placed(TypedDict):
    """What is rented somewhere."""

    provider: str
    region: str
    zone: str
    price_model: str


class Rented(Placed):
    """What any row that rents something tells of it."""

    device: str
    shape: str
    devices_per_shape: int


class Held(Rented):
    """What any row that holds nodes tells of them."""

    count: int
    devices: int


class Priced(Placed):
    """What has a price by the hour, and where that is from."""

    shape: str
    price_microusd_per_hour: int
    price_as_of: str
    price_status: str
    price_source: str


def money(document: PlanDocument, microusd: float) -> str:
    """Money in the scenario's currency."""
    return units.format_money(round(microusd), currency=currency_of(document))


def above_the_cheapest(document: PlanDocument) -> bool:
    """Whether a plainer plan is proposed that costs more than the cheapest, which the certificate is of."""
    plain = document.get("plain")
    return plain is not None and document["summary"]["cost_microusd"] != plain["cheapest_microusd"]


def proof(document: PlanDocument, elapsed_s: float | None) -> str:
    """What was proven: "optimal, proven (gap 0.00 %, 1.4 s)", where the certificate reaches that claim."""
    summary, status = document["summary"], document["status"]
    seconds = f", {elapsed_s:.1f} s" if elapsed_s is not None else ""
    proven, solver = is_proven(document), solver_of(document)
    if status == "optimal" and above_the_cheapest(document):
        sure = f"plain; the cheapest is proven (gap 0.00 %{seconds})"
        return sure if proven else f"plain; the cheapest is optimal by {solver}; {certified(document)}{seconds}"
    if status == "optimal":
        share = document["ties"]["tolerance"] if "ties" in document else SHARE
        within = f" within the tie tolerance of {100 * share:g} %" if share > SHARE else ""
        sure = f"optimal{within}, proven (gap 0.00 %{seconds})"
        return sure if proven else f"optimal by {solver}; {certified(document)}{seconds}"
    if status == "feasible":
        gap = "gap unknown" if summary["gap"] is None else f"gap {100 * summary['gap']:.2f} %"
        return f"feasible, not proven cheapest ({gap}{seconds})"
    if status == "infeasible":
        sure = f"(proven{seconds})" if proven else f"(by {solver}, not proven{seconds})"
        return f"nothing meets every limit of '{document['name']}' {sure}"
    return f"{status}: the solver ended without a plan{seconds}"


def solver_of(document: PlanDocument) -> str:
    """Name of the solver without its version."""
    return str(document["provenance"]["solver"]).split(" ")[0] or "the solver"


def certified(document: PlanDocument) -> str:
    """How much of what a solver says the certificate proves."""
    gap = document["summary"]["gap"]
    if gap is None or document["certificate"] is None:
        return "it carries no certificate"
    if gap == 0:
        return "its certificate proves the least cost alone"
    return f"its certificate proves within {100 * gap:.2f} %"


def horizon(document: PlanDocument) -> str:
    """How long serving is paid for, in words."""
    return lasting(document["summary"]["horizon_hours"])


def lasting(hours: float) -> str:
    """A time in words, whole months as such."""
    months = hours / _MONTH_HOURS
    if months >= 1 and abs(months - round(months)) < 1e-9:
        return f"{round(months)} month" + ("s" if round(months) > 1 else "")
    return units.format_duration(hours * 3600)


def totals(document: PlanDocument) -> list[str]:
    """The total with its period; training and serving apart; the bound of the certificate when there is a gap."""
    summary = document["summary"]
    if summary["cost_microusd"] is None:
        return []
    plain = document.get("plain")
    kinds = {workload["kind"] for workload in document["workloads"]}
    lasting = "serving" in kinds or document.get("contracts")
    period = f" for {horizon(document)} horizon" if lasting else " one-off"
    lines = [f"total  {money(document, summary['cost_microusd'])}{period}"]
    if len(kinds) > 1:
        spent = spent_on(document["workloads"], document)
        told = {"training": "one-off", "serving": f"for {horizon(document)}"}
        told |= {"unused": "of contracts"} if spent["unused"] else {}
        lines.append(" · ".join(f"{kind} {money(document, spent[kind])} {words}" for kind, words in told.items()))
    lines += [] if plain is None or not plain["workloads"] else [_above(document, plain)]
    lines += _ahead(document)
    lines += [
        f"budget {money(document, _micro(limit, limit['bound']))} · {_percent(1 - limit['used'] / limit['bound'])} free"
        for limit in document["limits"]
        if limit["name"] == "limits.budget" and limit["bound"]
    ]
    if summary["gap"] and summary["bound_microusd"] is not None:
        lines.append(f"none costs less than {money(document, summary['bound_microusd'])}")
    return lines


def _above(document: PlanDocument, plain: Plain) -> str:
    """How much a plain plan costs more than the cheapest."""
    paid = document["summary"]["cost_microusd"] or 0
    if paid <= plain["cheapest_microusd"]:
        return "as cheap as the cheapest plan"
    least = money(document, plain["cheapest_microusd"])
    return f"{fine_percent(plain['above'])} above the {cheapest(document)}, {least}"


def cheapest(document: PlanDocument) -> str:
    """What a plainer plan is told beside: the cheapest one, and whether that it is so has been proven."""
    return "proven cheapest" if document["status"] == "optimal" and is_proven(document) else "cheapest found"


def fine_percent(share: float) -> str:
    """A small share: 0.6 %, 0.04 %."""
    return f"{100 * share:.2g} %" if share < 0.1 else _percent(share)


def _ahead(document: PlanDocument) -> list[str]:
    """What is bought for all workloads together: contracts, and copies of data."""
    bought = {"contracts": document.get("contracts") or (), "copies of data": document.get("copies") or ()}
    parts = [
        f"{name} {money(document, sum(row['cost_microusd'] for row in rows))}" for name, rows in bought.items() if rows
    ]
    return ["of it " + " · ".join(parts)] if parts else []


def _micro(limit: Limit, value: float) -> float:
    return value if "micro" in limit["unit"].lower() else value * 1e6


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if abs(share) >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def as_priced(contract: Contract) -> Priced:
    """A contract as what has a price."""
    return {
        "provider": contract["provider"],
        "region": contract["region"],
        "zone": contract["zone"],
        "shape": contract["shape"],
        "price_model": contract["kind"],
        "price_microusd_per_hour": contract["price_microusd_per_hour"],
        "price_as_of": contract["price_as_of"],
        "price_status": contract["price_status"],
        "price_source": contract["price_source"],
    }


def place_of(row: Placed) -> str:
    """Provider and place of an allocation: "prov-a us-east"."""
    if row["price_model"] == "owned":
        return "owned" if row["region"] in ("", "owned") else f"owned {row['region']}"
    return f"{row['provider']} {row['zone'] or row['region']}".strip()


def offer_of(row: Rented) -> str:
    """What is rented and where: "h100-sxm-80gb ×8 · prov-a us-east"."""
    model = "" if row["price_model"] in ("on_demand", "owned", "given") else f" · {row['price_model']}"
    part = "shared" in row and "jobs" in row  # of a node, of which the row does not say how many devices it has
    many = f" ×{row['devices_per_shape']}" if row["devices_per_shape"] > 1 and not part else ""
    return f"{row['device']}{slice_of(row)}{many} · {place_of(row)}{model}"


def slice_of(row: Rented) -> str:
    """What of a device a row has, where that is a slice of one: " MIG 1g.10gb"; "" of whole ones."""
    return " MIG " + row["shape"].rpartition("-")[2] if row["shape"].startswith("mig/") else ""


def rented_as(row: Held) -> str:
    """How much of what is rented: "2 × h100 ×8 · prov-a us-east", "3 devices of shared h100 ×8 · ..."."""
    if "shared" in row:
        return f"{row['devices']:,} device{'s' * (row['devices'] > 1)} of shared {offer_of(row)}"
    return f"{row['count']:,} × {offer_of(row)}"


def shared_lines(document: PlanDocument) -> list[str]:
    """Nodes that fleets share: whose they are, how much stands idle, and what the loss of one takes."""
    lines = []
    for nodes in document.get("shared_nodes", []):
        users = ", ".join(f"{user['workload']} {user['devices']:,}" for user in nodes["users"])
        lost = ", ".join(f"{user['lost_with_a_node']:,} of {user['workload']}" for user in nodes["users"])
        jobs = {one["name"] for one in document["workloads"] if one["kind"] == "training"}
        what = "replicas or jobs" if any(user["workload"] in jobs for user in nodes["users"]) else "replicas"
        lines += [
            f" Shared  {nodes['count']:,} × {offer_of(nodes)}, {money(document, nodes['cost_microusd'])}"
            f"{_per_horizon(document)}: {nodes['used_devices']:,} of {nodes['devices']:,} devices in use ({users})",
            f"         the loss of one of them takes up to so many {what}: {lost}",
        ]
    return lines


def allocation_row(document: PlanDocument, workload: Workload, row: Allocation) -> list[str]:
    """One line of the answer.

    Parameters
    ----------
    document
        The plan, for its currency and horizon.
    workload
        That the row is of.
    row
        What is rented for it on one offer.
    """
    jobs = f" ×{row['jobs']}" if "jobs" in row and workload["count"] > 1 else ""
    return [
        workload["name"] + jobs,
        offer_of(row),
        "shared" if "shared" in row else f"{row['count']:,}",
        f"{row['devices']:,}",
        layout_of(row) if "jobs" in row else replicas_of(row),
        finish_of(row) if "jobs" in row else _load_of(document, row),
        _cost_of(document, row),
    ]


def paid_together(document: PlanDocument, rows: Iterable[Allocation]) -> str:
    """How rows on nodes of pools are paid for, which nobody pays for alone: no contract where all are on demand."""
    ahead = {one["pool"] for one in document.get("contracts") or () if one["kind"] != "on_demand"}
    return "under contract" if any(row.get("reserved_pool") in ahead for row in rows) else "whole periods"


def _cost_of(document: PlanDocument, row: Allocation) -> str:
    """What a row costs by itself; nodes of a pool are paid for together."""
    if row.get("funding") == "reserved":
        return paid_together(document, [row])
    return money(document, row["cost_microusd"]) + ("" if "jobs" in row else _per_horizon(document))


def _load_of(document: PlanDocument, row: ServingAllocation) -> str:
    """How full replicas are at the peak, and how much of the time they run."""
    share = row["hours"] / document["summary"]["horizon_hours"]
    runs = "" if share > 1 - 1e-9 else f", runs {_percent(share)} of the time"
    return f"{_percent(row['load_at_peak'])} at peak{runs}"


def _per_horizon(document: PlanDocument) -> str:
    text = horizon(document)
    return f" /{text.removeprefix('1 ')}"


def layout_of(row: TrainingAllocation) -> str:
    """The split of a training job: "dp16 tp2 zero-3 full mb1×30"."""
    layout = row["layout"]
    parts = [f"dp{layout['dp']}"]
    parts += [f"{axis}{layout[axis]}" for axis in ("tp", "pp", "vpp", "cp", "ep") if layout[axis] > 1]
    parts += [layout[policy] for policy in ("sharding", "recompute") if layout[policy] != "none"]
    many = f"×{layout['micro_batches']}" if layout["micro_batches"] > 1 else ""
    share = [f"· {_percent(row['mix']['share'])} of the batch"] if "mix" in row else []
    return " ".join([*parts, f"mb{layout['micro_batch']}{many}", *share])


def replicas_of(row: ServingAllocation) -> str:
    """The replicas of a fleet: "3 + 1 spare × tp4"."""
    layout, spare = row["layout"], row["replicas"] - row["replicas_needed"]
    split = " ".join(f"{axis}{layout[axis]}" for axis in ("tp", "pp", "dp", "ep", "cp") if layout[axis] > 1)
    count = f"{row['replicas_needed']}" + (f" + {spare} spare" if spare > 0 else "")
    role = "" if row["role"] == "whole" else f" {row['role']}"
    return f"{count}{role} × {split or 'tp1'}"


def finish_of(row: TrainingAllocation) -> str:
    """When a job is done, of the time it has: "17.9 of 30 days"; of a first part when the job changes machines."""
    if "switch" in row and row["switch"]["part"] == 1:
        size, unit = (24, "days") if row["deadline_hours"] >= 48 else (1, "h")
        return f"until {short(row['finish_hours'] / size)} {unit}, then:"
    return of_deadline(row["finish_hours"], row["deadline_hours"])


def carbon_of(document: PlanDocument) -> str:
    """What a plan emits, where carbon is an objective: "777 kg CO2e"; else ""."""
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    if "carbon" not in document["summary"]["objective"] or not rows:
        return ""
    emitted_kg = sum(row["carbon_kg"] or 0.0 for row in rows)
    return f"{emitted_kg:,.0f} kg CO2e" if emitted_kg < 10_000 else f"{emitted_kg / 1000:,.0f} t CO2e"


def of_deadline(finish: float, deadline: float) -> str:
    """Hours of the hours there are, in the unit that suits them: "17.9 of 30 days"."""
    size, unit = (24, "days") if (deadline or finish) >= 48 else (1, "h")
    limit = f" of {short(deadline / size)}" if deadline else ""
    return f"{short(finish / size)}{limit} {unit}"


def short(number: float) -> str:
    """Three significant digits, no exponent, no trailing zeros."""
    digits = max(0, 3 - len(f"{abs(number):.0f}"))
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def memory_row(workload: Workload, row: Allocation) -> list[str]:
    """Memory of the fullest device of an allocation."""
    memory = row["memory"]
    largest = max(memory["terms_bytes"].items(), key=lambda term: term[1], default=("", 0.0))
    return [
        workload["name"],
        row["device"],
        units.format_bytes(memory["needed_bytes"]),
        units.format_bytes(memory["usable_bytes"]),
        units.format_bytes(memory["free_bytes"]),
        f"{spaced(largest[0])} {units.format_bytes(largest[1])}" if largest[0] else "",
    ]


def price_row(document: PlanDocument, row: Priced) -> list[str]:
    """Where a price comes from."""
    currency = currency_of(document)
    rate = units.format_money(row["price_microusd_per_hour"], exact=True, currency=currency)
    as_of = row["price_as_of"] + ("" if row["price_status"] == "seen" else f" ({row['price_status']})")
    return [row["shape"], place_of(row), f"{rate} /h", row["price_model"], as_of, row["price_source"]]


def one_of(label: str) -> str:
    """A limit as it is called in plan files, which have a plural of one: "at most 1 shapes of all"."""
    return _ONE.sub(r"1 \1", label)


def limit_row(document: PlanDocument, limit: Limit) -> list[str]:
    """A joint limit with a bar of how much of it is used."""
    share = limit["used"] / limit["bound"] if limit["bound"] else 0.0
    filled = min(_BAR, max(0, round(_BAR * share)))
    binding = "  binding" if limit["binding"] else ""
    used, bound = (_amount(document, limit, limit[key]) for key in ("used", "bound"))
    return [
        one_of(limit["label"] or limit["name"]),
        used,
        bound,
        "█" * filled + "░" * (_BAR - filled),
        _percent(share) + binding,
    ]


def _amount(document: PlanDocument, limit: Limit, value: float) -> str:
    unit = limit["unit"]
    if unit.lower() in ("usd", "$", "microusd", "usd/h", "microusd/h"):
        return money(document, _micro(limit, value)) + (" /h" if unit.lower().endswith("/h") else "")
    noun = unit.removesuffix("s") if value == 1 else unit
    return f"{value:,.6g} {noun}".strip()


def merged(document: PlanDocument, sentences: list[str]) -> tuple[str, ...]:
    """Sentences of the form "workload: text"; those that several workloads share are said once."""
    names = {workload["name"] for workload in document["workloads"]}
    said: dict[str, list[str]] = {}
    for sentence in sentences:
        name, colon, text = sentence.partition(": ")
        owner, text = (name, text) if colon and name in names else ("", sentence)
        said.setdefault(text, []).append(owner)
    return tuple(", ".join(owners) + ": " + text if owners[0] else text for text, owners in said.items())


def alternative_row(document: PlanDocument, workload: Workload, other: Alternative) -> list[str]:
    """The best way on another device, and how much dearer it is.

    Parameters
    ----------
    document
        The plan, for its currency.
    workload
        As it was decided, for its cost.
    other
        The way on the other device.
    """
    reserved = any(row.get("funding") == "reserved" for row in workload["allocations"])
    cost = 0 if reserved else workload["cost_microusd"]  # contracts are not this workload's alone
    dearer = f"{100 * (other['cost_microusd'] / cost - 1):+.1f} %" if cost else ""
    return [
        workload["name"],
        other["device"],
        f"{other['count']:,}",
        f"{other['devices']:,}",
        f"{other['hours']:,.0f}",
        money(document, other["cost_microusd"]),
        dearer,
        ", ".join(filter(None, [other["note"], "tie" if other.get("tie") else ""])),
    ]


def single_kind(document: PlanDocument) -> list[str]:
    """What the best plan on one kind of device would cost."""
    best = document["single_kind"]
    if not best:
        return []
    kinds = {row["device"] for workload in document["workloads"] for row in workload["allocations"]}
    cost = money(document, best["cost_microusd"])
    if kinds == {best["device"]}:
        return [f" One kind of device   {best['device']} alone is this plan"]
    return [
        f" One kind of device   the best with one kind alone is {best['device']}: {cost} ({_dearer(best['dearer'])})"
    ]


def _dearer(share: float) -> str:
    return "costs the same" if share == 0 else f"{100 * share:+.1f} %"


def rejected_row(name: str, entry: Reason) -> list[str]:
    """One reason why ways were dropped."""
    reason = REASONS.get(entry["reason"], spaced(entry["reason"]))
    return [name, f"{entry['count']:,} {entry['what']}", reason, entry["nearest"]]


def missed(line: str) -> str:
    """Why ways are not there, "505 offers: not-allowed" or "memory: needs 3 GB less", in words."""
    head, colon, rest = line.partition(": ")
    return f"{REASONS.get(head, head)}{colon}{REASONS.get(rest, rest)}"


def counted(entries: Sequence[Reason]) -> str:
    """Several reasons in one line: "204 offers (not in hardware.allow), 9 offers (...)"."""
    return ", ".join(
        f"{units.counted(entry['count'], entry['what'].removesuffix('s'))} ({why})"
        for entry in entries
        for why in [REASONS.get(entry["reason"], spaced(entry["reason"]))]
    )


def conflict_row(member: Conflict) -> list[str]:
    """A member of a conflict: a limit, or a workload that must run."""
    asks = "must run" if member["label"] == member["name"] else one_of(member["label"])
    return [member["name"], asks, member["place"]]


def searched(name: str, ledger: Rejected, others: Sequence[Reason] = ()) -> str:
    """How much was looked at, and the reasons that have no line of their own.

    Parameters
    ----------
    name
        Of the workload.
    ledger
        What was looked at for it, and what is left.
    others
        Reasons that have no line of their own; empty = none.
    """
    seen = f"{units.counted(ledger['offers_seen'], 'offer')} and {units.counted(ledger['layouts_seen'], 'layout')} seen"
    also = f"; also dropped {counted(others)}" if others else ""
    return f"{name}: {seen}, {units.counted(ledger['columns'], 'way')} left to choose from{also}"


def spaced(identifier: str) -> str:
    """An identifier as words."""
    return identifier.replace("_", " ").replace("-", " ")


def price_days(document: PlanDocument) -> str:
    """The oldest and the newest day of the prices that a plan rests on; empty when none has a date."""
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    days = {row["price_as_of"] for row in (*rows, *document["contracts"])} - {""}
    return " to ".join(dict.fromkeys((min(days), max(days)))) if days else ""
