"""The words of the first screen: sentences for people who have read nothing else of a plan."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from planner.plan.parts import INSIDE_ONE, NOT_NEEDED, borne_by_jobs, most_at_once, rows_of, spent_on
from planner.plan.proof import is_proven
from planner.plan.reasons import users_told
from planner.report import plan_words as words
from planner.report import serving_words as serving
from planner.report.plan_words import Held
from planner.report.schedule_view import TERMS
from planner.units import counted
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract
    from planner.plan.model.fleet import ServingAllocation, Target
    from planner.plan.model.plan import Allocation, PlanDocument, ServingWorkload, TrainingWorkload, Workload
    from planner.plan.model.rows import TrainingAllocation

_FEW = 3
_SOON_HOURS = 12  # of a run by a deadline in days: 0.04 of a day says little
_LITTLE = 0.1  # of the cost: so much more for one kind of device is worth a word
_MANY_KINDS, _SOME = 3, 0.3  # kinds of devices that hardly anybody runs a fleet on, and what one may cost more then
_AXES = {"dp": "data", "tp": "tensor", "pp": "pipeline", "vpp": "virtual stages", "cp": "context", "ep": "expert"}
_WHOLE = "one device each"  # a layout that splits nothing
_LATENCIES = {"ttft": "first token", "tpot": "a token", "e2e": "whole answer"}


_NAMED = """
    Ada Arc Ascend Cerebras Dual Gaudi Groq Inferentia Jetson Max Orin Pro Quadro Radeon Rubin Ryzen Server Spark Super
    Ti Trainium Ultra PCIe AI AGX DGX GCD LPU NVL RTX RX SXM TPU WSE2 WSE3 NVL72 3e XTX
"""
_SPELLED = {word.lower(): word for word in _NAMED.split()}
_MODEL = re.compile(r"[a-z]{0,4}[0-9]{1,5}[a-z]{0,2}")  # "h100", "mi300x", "910b"
_MEMORY = re.compile(r"([0-9]+)gb")
_SERIES = re.compile(r"(gaudi|inferentia|trainium)([0-9]+)")


def device_name(device: str) -> str:
    """A device as its maker writes it, from its id: "H100 SXM 80 GB"; the id where it does not read like one.

    Examples
    --------
    >>> device_name("rtx-4070-ti-super"), device_name("tpu-v5p"), device_name("trainium2"), device_name("our-card")
    ('RTX 4070 Ti Super', 'TPU v5p', 'Trainium 2', 'our-card')
    """
    parts = [_spelled(part, device.startswith("tpu-")) for part in device.split("-")]
    return " ".join(part for part in parts if part) if all(parts) else device


def _spelled(part: str, of_tpu: bool) -> str:
    """A part of an id; "" where it is no word of a maker."""
    if memory := _MEMORY.fullmatch(part):
        return f"{memory[1]} GB"
    if series := _SERIES.fullmatch(part):
        return f"{series[1].capitalize()} {series[2]}"
    if part in _SPELLED:
        return _SPELLED[part]
    if _MODEL.fullmatch(part):
        return part if of_tpu else part.upper()
    return ""


def decided(document: PlanDocument) -> str:
    """What to do, in one sentence of plain words."""
    rows = [(workload, row) for workload in document["workloads"] for row in rows_of(workload)]
    if document["infeasible"]:
        sure = "that is proven" if is_proven(document) else f"so says {words.solver_of(document)}: it is not proven"
        return f"Nothing meets every limit: {sure}."
    if not rows:
        return f"There is no plan: {words.proof(document, None)}."
    contracts = _ahead_of_use(document)
    shared = document.get("shared_nodes", [])
    own = [(row, workload["name"]) for workload, row in rows if "shared" not in row and not follows(row)]
    held: list[tuple[Held, str]] = [
        *own,
        *((one, listed([user["workload"] for user in one["users"]])) for one in shared),
    ]
    alike: dict[tuple[Any, ...], list[Held]] = {}  # what runs for one workload is had together
    for one, name in held:
        what = _verb(one), name, one["devices_per_shape"], _device_of(one), _switch(one)
        alike.setdefault(what, []).append(one)
    if len(alike) <= _FEW and not contracts and not document.get("schedule"):
        verbs = [verb for verb, *_ in alike]
        parts = [
            f"{'' if place and verb == verbs[place - 1] else verb + ' '}{_held(document, some)} for {name}"
            for place, ((verb, name, *_), some) in enumerate(alike.items())
        ]
        sentence = listed(parts)
        return f"{sentence[0].upper()}{sentence[1:]}."
    return _many(document, rows) + (f" Buy {_ahead(contracts)} ahead." if contracts else "")


def _ahead_of_use(document: PlanDocument) -> list[Contract]:
    """Contracts that are due whether they are used or not: nodes on demand that fill up a pool are none of them."""
    return [one for one in document.get("contracts") or () if one["kind"] != "on_demand"]


def _ahead(contracts: Sequence[Contract]) -> str:
    """What is bought: nodes, whose and for how long; how many contracts where they are more than a few."""
    if len(contracts) > _FEW:
        return counted(len(contracts), "contract")
    terms = [TERMS.get(one["kind"]) or words.lasting(one["term_hours"]) for one in contracts]
    return listed([
        f"{one['count']:,} × {one['shape']} in {one['region']} for {term}" for one, term in zip(contracts, terms)
    ])  # fmt: skip


def follows(row: object) -> bool:
    """Whether a row is the second part of a job that changes machines: it is told with the first."""
    return isinstance(row, dict) and "switch" in row and row["switch"]["part"] > 1


def _held(document: PlanDocument, rows: Sequence[Held]) -> str:
    """What is rented; of a job that changes machines one after the other: "2 nodes ... spot for 41 h, then ..."."""
    name = _switch(rows[0])
    if not name:
        return hardware_of(rows[0], sum(row["count"] for row in rows))
    told = [
        f"{hardware_of(one)} on {one['price_model'].removeprefix('on_')} for {words.lasting(one['hours'])}"
        for workload in document["workloads"]
        for one in rows_of(workload)
        if _switch(one) == name
    ]
    return f"{', then '.join(told[:2])},"


def _switch(row: object) -> str:
    """The name of the switch that a row is a part of."""
    return str(row["switch"]["name"]) if isinstance(row, dict) and "switch" in row else ""


def listed(parts: Sequence[str]) -> str:
    """Parts with "and" before the last."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _verb(row: Held) -> str:
    return "use" if row["price_model"] == "owned" or row.get("funding") == "reserved" else "rent"


def _device_of(row: Held) -> str:
    """The device of a row, or the slice of it: "A100 SXM 80 GB MIG 1g.10gb" is a seventh of one."""
    return device_name(row["device"]) + words.slice_of(row)


def hardware_of(row: Held, count: int | None = None) -> str:
    """ "2 nodes of 8 H100 SXM 80 GB", or "5 GH200 96 GB" where a node has one; as many as given, or as the row has."""
    size, name, count = row["devices_per_shape"], _device_of(row), row["count"] if count is None else count
    return f"{counted(count, 'node')} of {size} {name}" if size > 1 else f"{count:,} {name}"


def _many(document: PlanDocument, rows: Sequence[tuple[Workload, Allocation]]) -> str:
    kinds = list(dict.fromkeys(_device_of(row) for _, row in rows))
    turns = document.get("schedule") or document.get("contracts")
    unnamed = "" if turns else "owned"  # what is owned is told apart there
    places = list(dict.fromkeys(row["provider"] for _, row in rows if row["provider"] not in ("", unnamed)))
    what = listed(kinds) if len(kinds) <= _FEW else f"{len(kinds)} kinds of devices"
    where = f" at {listed(places) if len(places) <= _FEW else f'{len(places)} providers'}" if places else ""
    works = counted(len(document["workloads"]), "workload")
    if turns:  # machines are used in turn: counts do not add up
        names = [workload["name"] for workload in document["workloads"]]
        works = listed(names) if len(names) <= _FEW else works
        most = f"at most {most_at_once([row for _, row in rows]):,} "
        return f"Run {works} on {most}{what if len(kinds) == 1 else f'devices, {what},'}{where}."
    return f"{_rented_and_used(document, rows)}, {what},{where} for {works}."


def _rented_and_used(document: PlanDocument, rows: Sequence[tuple[Workload, Allocation]]) -> str:
    """ "Rent 25 devices and use 8 of your own": what is owned is not rented."""
    all_of_it = document["summary"]["devices"] or 0
    own = sum(row["devices"] for _, row in rows if row["price_model"] == "owned" and "shared" not in row)
    own += sum(
        one["count"] * one["devices_per_shape"]
        for one in document.get("shared_nodes", ())
        if one["price_model"] == "owned"
    )
    rented = f"Rent {all_of_it - own:,} devices"
    if not own:
        return rented
    return f"Use {own:,} devices of your own" if own >= all_of_it else f"{rented} and use {own:,} of your own"


def money_line(document: PlanDocument) -> str:
    """Total, its range, and what of it recurs."""
    cost = document["summary"]["cost_microusd"]
    if cost is None:
        return ""
    lasting, *split = money_parts(document)
    split += [emitted] if (emitted := words.carbon_of(document)) else []
    sunk = sum(owned["sunk_microusd"] for owned in document.get("owned") or ())
    split += [f"{words.money(document, sunk)} sunk, beside it"] if sunk else []
    total = f"{words.money(document, cost)} {lasting}".strip()
    return " · ".join([total + likely(document, "   likely "), *split])


def money_parts(document: PlanDocument) -> list[str]:
    """What time all of the total is for, "a month", or ""; then what of it recurs."""
    split = list(_split(document))
    return split if split and split[0].startswith(("once", "a month", "for ")) else ["", *split]


def likely(document: PlanDocument, head: str = "likely ", tail: str = "") -> str:
    """The range from p10 to p90; nothing where none is known.

    Parameters
    ----------
    document
        The plan.
    head, tail
        What stands before the range and after it.
    """
    band = document["summary"].get("cost_band")
    low, high = (words.money(document, 1e6 * band[name]) for name in ("p10", "p90")) if band else ("", "")
    return "" if low == high else f"{head}{low} to {high}{tail}"


def _split(document: PlanDocument) -> Iterator[str]:
    kinds = {workload["kind"] for workload in document["workloads"]}
    spent = spent_on(document["workloads"], document)
    lasting = words.horizon(document)
    ahead = sum(contract["cost_microusd"] for contract in _ahead_of_use(document))
    if kinds == {"training"}:
        yield "once" if not ahead else f"for {lasting}"
    elif lasting == "1 month" and not ahead:
        borne = borne_by_jobs(document["workloads"])
        once, monthly = spent["training"] - borne, spent["serving"] + borne
        apart = "training" in kinds and (once or not borne)
        yield from [f"{words.money(document, once)} once"] if apart else []
        yield f"{words.money(document, monthly)} a month" if apart else "a month"
        yield from [f"{words.money(document, borne)} of it borne by jobs on shared nodes"] if borne else []
    else:
        yield f"for {lasting}"
    if ahead:
        yield f"{words.money(document, ahead)} of it committed"
    filled = sum(one["cost_microusd"] for one in document.get("contracts") or () if one["kind"] == "on_demand")
    if filled:  # no workload's line has them
        yield f"{words.money(document, filled)} of it whole periods on demand"
    if copied := sum(copy["cost_microusd"] for copy in document.get("copies") or ()):  # no workload's line has them
        yield f"{words.money(document, copied)} of it copies of data"
    after = sum(one["full_microusd"] - one["cost_microusd"] for one in _ahead_of_use(document) if one["prorated"])
    if after > 0:  # whoever signs owes it, whatever counts here
        yield f"{words.money(document, after)} more owed beyond the horizon"


def sure_line(document: PlanDocument, elapsed_s: float | None) -> str:
    """How sure it is that nothing is better, and how old the prices are."""
    seconds = "" if elapsed_s is None else f"solved in {elapsed_s:.1f} s"
    plain, status = document.get("plain"), document["status"]
    best = {"cost": "cheapest", "time": "soonest", "carbon": "lowest in carbon"}.get(
        document["summary"]["objective"][0], "best"
    )
    if is_proven(document) and status == "optimal" and not words.above_the_cheapest(document):
        sure = f"proven the {best}"
    elif is_proven(document) and status == "optimal" and plain:
        least = words.money(document, plain["cheapest_microusd"])
        above = 100 * plain["above"]
        more = "less than 0.01" if above < 0.01 else f"{above:.2g}"
        sure = f"plainer than the proven cheapest ({least}), {more} % above it"
    else:
        sure = words.proof(document, None)
    days = words.price_days(document)
    return " · ".join(filter(None, (sure, f"prices of {days}" if days else "", seconds)))


def cost_of(document: PlanDocument, workload: Workload) -> str:
    """What a workload pays for by itself."""
    if workload["allocations"] and all(row.get("funding") == "reserved" for row in workload["allocations"]):
        return words.paid_together(document, workload["allocations"])
    recurs = workload["kind"] == "serving"
    per = f" /{words.horizon(document).removeprefix('1 ')}" if recurs else ""
    return words.money(document, workload["cost_microusd"]) + per


def hardware(workload: Workload) -> str:
    """What a workload runs on: "2 × 8 H100 SXM 80 GB"; of several kinds the first ones."""
    rows = rows_of(workload)
    if not any("shared" in row for row in rows):
        then = {_switch(row): f", then {_nodes(row)} on demand" for row in rows if follows(row)}
        counts: Counter[tuple[Any, ...]] = Counter()  # what runs at the same time is had together
        for row in rows:
            if not follows(row):
                what = row["devices_per_shape"], _device_of(row), then.get(_switch(row), "")
                counts[(*what, row["start_hours"], row["end_hours"])] += row["count"]
        names = [(_times(count, size), device, after) for (size, device, after, *_), count in counts.items()]
        return more_of([f"{times} {device}{after}" for times, device, after in names])
    amounts: dict[str, list[str]] = {}  # "1 × 8 + 4 H100 SXM 80 GB": a node of its own, devices of shared ones
    singles = Counter[str]()  # devices that are nodes by themselves
    for row in sorted(rows, key=lambda row: "shared" in row):
        texts = amounts.setdefault(_device_of(row), [])
        if "shared" in row:
            texts.append(f"{row['devices']:,}")
        elif row["devices_per_shape"] > 1:
            texts.append(_nodes(row))
        else:
            singles[_device_of(row)] += row["count"]
    for device, count in singles.items():
        amounts[device].insert(0, f"{count:,}" if amounts[device] else _times(count, 1))
    return more_of([f"{' + '.join(texts)} {device}" for device, texts in amounts.items()])


def _nodes(row: Held) -> str:
    return _times(row["count"], row["devices_per_shape"])


def _times(count: int, size: int) -> str:
    """ "2 × 8", or "2 ×" where a node has one device."""
    return f"{count:,} × {size}" if size > 1 else f"{count:,} ×"


def shared_line(document: PlanDocument) -> str:
    """Nodes that fleets share, and how much of them nobody uses; "" where none are."""
    shared = document.get("shared_nodes", [])
    idle = sum(one["devices"] - one["used_devices"] for one in shared)
    nodes = listed([hardware_of(one) for one in shared]) if shared else ""
    return f"shared: {nodes}, {counted(idle, 'device')} idle" if shared else ""


def places(workload: Workload) -> str:
    """Where a workload runs, and what of it is spot, which may be taken away."""
    return more_of([words.place_of(row) + " spot" * (row["price_model"] == "spot") for row in rows_of(workload)])


def more_of(parts: Sequence[str], shown: int = 2) -> str:
    """The first parts, and how many more there are."""
    parts = list(dict.fromkeys(parts))
    left = f" and {len(parts) - shown} more" if len(parts) > shown else ""
    return ", ".join(parts[:shown]) + left


def details(workload: Workload) -> list[str]:
    """One or two lines: when it is done and how it is split; how it serves against its targets."""
    if not workload["allocations"]:
        return []
    if workload["kind"] == "training":
        return [_trained(workload)]
    return [line for line in (_served(workload), _latency(workload)) if line]


def in_short(workload: Workload) -> str:
    """One piece: when it is done, or how full it is."""
    if not workload["allocations"]:
        return ""
    if workload["kind"] == "training":
        return words.finish_of(max(workload["allocations"], key=lambda row: row["finish_hours"]))
    return f"{100 * max(row['load_at_peak'] for row in workload['allocations']):.0f} % at peak"


def _trained(workload: TrainingWorkload) -> str:
    row = max(workload["allocations"], key=lambda row: row["finish_hours"])
    band = workload.get("error_band")
    jobs = f"{workload['count']} jobs · " if workload["count"] > 1 else ""
    done = words.finish_of(row)
    begun = any(one["start_hours"] or one["runs"] for one in workload["allocations"])
    if band and "hours" in band and not begun:
        low, high = band["hours"]["p10"], band["hours"]["p90"]
        days, unit = (24, "days") if row["deadline_hours"] >= 48 else (1, "h")
        asked = f"{words.short(row['deadline_hours'] / days)} {unit}"
        soon = days > 1 and high < _SOON_HOURS
        told = [words.short(end if soon else end / days) for end in (low, high)]
        done = f"{' to '.join(dict.fromkeys(told))}{' h' * soon} of {asked}"  # a share of the peak that was stated: one
    return f"{jobs}done in {done} · {split_in_words(row)}"


def split_in_words(row: TrainingAllocation | ServingAllocation) -> str:
    """A layout: "data parallel 16, ZeRO-2"."""
    layout = dict[str, Any](row["layout"])
    shown = [(axis, layout[axis]) for axis in _AXES if layout.get(axis, 1) > 1]
    parts = [f"{_AXES[axis]}{' parallel' if not place and axis != 'vpp' else ''} {many}"
             for place, (axis, many) in enumerate(shown)]  # fmt: skip
    sharding, recompute = str(layout.get("sharding", "none")), str(layout.get("recompute", "none"))
    parts += [sharding.replace("zero-", "ZeRO-")] if sharding != "none" else []
    parts += [f"{recompute} recompute"] if recompute != "none" else []
    return ", ".join(parts) or _WHOLE


def _served(workload: ServingWorkload) -> str:
    rows = workload["allocations"]
    needed, spare = (sum(row[name] for row in rows) for name in ("replicas_needed", "replicas"))
    spare -= needed
    replicas = counted(needed, "replica") + (f" and {spare} spare" if spare > 0 else "")
    splits = _splits(rows)
    served = workload["fleet"].get("users")
    users = f"{users_told(served['users'])}, {number(served['requests_per_s'])} requests/s · " if served else ""
    return f"{users}{replicas} · {splits} · {in_short(workload)}"


def _splits(rows: Sequence[ServingAllocation]) -> str:
    """How replicas are split; of several ways, or in pools of their own, how many each: two layouts read as one."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["role"], Counter())[split_in_words(row)] += row["replicas"]
    whole = counts.get("whole", Counter())
    if len(whole) == 1:
        return next(iter(whole))
    if whole:
        return more_of([f"{count:,} {'of' if split == _WHOLE else 'with'} {split}" for split, count in whole.items()])
    return ", ".join(f"{pool.total():,} {role} with {' or '.join(pool)}" for role, pool in counts.items())


def _longest(latencies_s: Sequence[float | None]) -> float | None:
    """The greatest; None is endless."""
    some = [one for one in latencies_s if one is not None]
    return max(some) if len(some) == len(latencies_s) else None


def _latency(workload: ServingWorkload) -> str:
    """Each target where it is kept worst: pools have a target each, and rows of one fleet differ."""
    points = [row["point"] for row in workload["allocations"] if row["point"]]
    parts = []
    worst: dict[str, Target] = {}
    for target in (one for point in points for one in point["targets"]):
        held = worst.setdefault(target["name"], target)
        if (target["at_confidence_s"] or math.inf) > (held["at_confidence_s"] or math.inf):
            worst[target["name"]] = target
    for name, target in worst.items():
        metric, _, percentile = name.partition("_")
        kept = f"{serving.seconds(target['at_confidence_s'])} of {serving.seconds(target['target_s'])}"
        parts.append(f"{_LATENCIES.get(metric, metric)} {kept} ({percentile})")
    if points and not worst:
        firsts, others = ([point[name]["p95"] for point in points] for name in ("ttft_s", "tpot_s"))
        first, each = serving.seconds(_longest(firsts)), serving.seconds(_longest(others))
        parts.append(f"first token {first}{f', a token {each}' if any(map(serving.goes_on, points)) else ''} (p95)")
    price = workload["fleet"]["usd_per_million_output_tokens_mean"] if workload["fleet"] else None
    if price is not None and not any(row.get("funding") == "reserved" for row in workload["allocations"]):
        usd, kind = serving.token_price(workload, price)
        parts.append(f"${usd} per 1M {kind} tokens")
    return " · ".join(parts)


_UNWEIGHED = re.compile(r"where (power|carbon|power or carbon) counts, ")  # offers: the answer may be times as dear


# Of warnings that a plan cannot be had, served or paid as it stands: parts of their sentences, the gravest first
_GRAVE = (
    *("no engine takes them", "no program that plan export writes for runs it", "that one may expect: "),
    *("nobody promises that", "holds for the predicted cost; at", "latency targets are not checked"),
    *("no spare is counted for them", "are idle for", "whose network cards they share"),
)


def matters(document: PlanDocument) -> list[str]:
    """Warnings: offers never weighed, what is owned and idle, then of workloads; a fleet without a target is one, too.

    Of a group that is used in part the rest is told; last where nothing is rented beside it. What may leave the plan
    without machines, money or users comes before what moves its cost, that of the dearest workload first.
    """
    owned = [
        (f"owned {one['name']}: {one['text']}", not one["used"])
        for one in document.get("named", [])  # plans of earlier releases have none
        if one["place"].startswith("hardware.owned") and not (one["used"] and "; " not in one["text"])
    ]
    owned.sort(key=lambda one: not one[1])
    spare = [text for text, _ in owned if text.endswith(NOT_NEEDED)]
    idle = [text for text, _ in owned if text not in spare]
    found = words.merged(document, document["warnings"])
    names = tuple(f"{workload['name']}" for workload in document["workloads"])
    without = [
        f"{workload['name']} has no latency target: size by one with slo: {{ttft_p95: 1 s}}"
        for workload in document["workloads"]
        if workload["kind"] == "serving" and workload["allocations"] and not workload["demand"]["targets_s"]
    ]
    unweighed = [text for text in found if _UNWEIGHED.match(text)]
    grave = [text for text in found if text not in unweighed and any(one in text for one in _GRAVE)]
    grave.sort(key=lambda text: next(rank for rank, one in enumerate(_GRAVE) if one in text))
    paid = sorted(document["workloads"], key=lambda one: -one["cost_microusd"])
    told = [text for text in found if text.startswith(names) and text not in grave]
    told.sort(key=lambda text: next((n for n, one in enumerate(paid) if text.startswith(one["name"])), len(paid)))
    rest = [text for text in found if text not in (*told, *unweighed, *grave)]
    rest.sort(key=lambda text: text.startswith(INSIDE_ONE))
    first = [*unweighed, *_apis(document), *grave]
    return [*first, *idle, *_one_kind(document), *told, *_together(without), *rest, *spare]


def _apis(document: PlanDocument) -> Iterator[str]:
    """Fleets whose requests an API, whose price was given, would answer for less."""
    for workload in document["workloads"]:
        fleet = workload["fleet"] if workload["kind"] == "serving" and workload["allocations"] else None
        api = fleet["api"] if fleet else None
        if not api or any(row.get("funding") == "reserved" for row in workload["allocations"]):
            continue
        paid, asked = workload["cost_microusd"], round(1e6 * api["cost_usd"])
        if asked < paid:
            yield (
                f"{workload['name']}: {100 * (1 - asked / paid):.2g} % less by the API at {api['price']}, "
                f"{words.money(document, asked)} for the same requests"
            )


def _one_kind(document: PlanDocument) -> list[str]:
    """What one kind of device would cost, where workloads are on several and they save little: of all, or of each."""
    best = document["single_kind"]
    several = [workload for workload in document["workloads"] if len({row["device"] for row in rows_of(workload)}) > 1]
    if best is None or not several:
        return []
    if best["dearer"] > _LITTLE:  # as workloads differ, mostly: each by itself may do with one
        return [text for workload in several if (text := _kind_of_one(document, workload))]
    names, cost = more_of([one["name"] for one in several]), words.money(document, best["cost_microusd"])
    return [
        f"{names}: on several kinds of devices; {device_name(best['device'])} alone costs {cost} "
        f"({100 * best['dearer']:+.2g} %): --set hardware.allow={best['device']}"
    ]


def _kind_of_one(document: PlanDocument, workload: Workload) -> str:
    """What one kind of device would cost a workload by itself, where that is little more, or it is on three or more."""
    paid, kinds = workload["cost_microusd"], {row["device"] for row in rows_of(workload)}
    ways = [one for one in workload["alternatives"] if one["cost_microusd"] >= paid]
    dearer = ways[0]["cost_microusd"] / paid - 1.0 if ways and paid else math.inf
    if dearer > (_LITTLE if len(kinds) < _MANY_KINDS else _SOME):
        return ""
    alone = f"{device_name(ways[0]['device'])} alone costs {words.money(document, ways[0]['cost_microusd'])}"
    way = f": --set hardware.allow={ways[0]['device']}" if len(document["workloads"]) == 1 else ""
    return f"{workload['name']}: on {len(kinds)} kinds of devices; {alone} ({100 * dearer:+.2g} %){way}"


def _together(without: list[str]) -> list[str]:
    if len(without) < 2:
        return without
    names = [text.partition(" has no ")[0] for text in without]
    return [f"{more_of(names)} have no latency target: size by one with slo: {{ttft_p95: 1 s}}"]


def assumptions(document: PlanDocument) -> str:
    """How many there are, and how much of the time the one takes that can be counted: failures."""
    count = len(words.merged(document, document["assumed"]))
    if not count:
        return ""
    lost = [
        (
            1 - row["run"]["goodput"],
            row["time_terms_s"].get("scale_loss", 0.0) / (3600.0 * row["hours"]),
            workload["name"],
        )
        for workload in document["workloads"]
        if workload["kind"] == "training" and any("failures as" in text for text in document["assumed"])
        for row in workload["allocations"]
        if row["run"] and row["run"]["modelled"] and not follows(row)
    ]
    share, scale, name = max(lost, default=(0.0, 0.0, ""))
    parts = [("running on several hosts", scale), ("failures as Llama 3's", share - scale)]
    told = [f"{what} {100 * part:.0f} %" for what, part in parts if part >= 0.005]
    most = f"; of {name}'s time {', '.join(told)}" if share >= 0.01 and told else ""
    return f"{counted(count, 'assumption')}{most}"
