"""Why a plan is as it is, and what stands beside it, as blocks and lines: what else could be done, what may happen.

Other decisions, devices of plans nearly as good, what staying costs, the same devices at other sellers; the cases of
an uncertain plan with their costs, and what knowing more would be worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.candidates.ties import NAMES
from planner.plan.parts import workloads_asked
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Items, columns
from planner.units import counted, format_money, format_percent
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.others import (
        DecisionPlan,
        Decisions,
        Elsewhere,
        NearOptimal,
        Previous,
        RowInShort,
        WorkloadInShort,
    )
    from planner.plan.model.plan import Allocation, PlanDocument, Uncertainty


MARKETPLACES = "marketplaces"


def because_lines(document: PlanDocument) -> list[str]:
    """Why all workloads are done as they are; each sentence names its workload when there are several."""
    many = len(document["workloads"]) > 1
    said = [
        f"{workload['name']}: {sentence}" if many else sentence
        for workload in document["workloads"]
        for sentence in workload["because"]
    ]
    return [*_plain_lines(document), *said, *_tie_lines(document, many=many)]


def _tie_lines(document: PlanDocument, *, many: bool) -> Iterator[str]:
    """Workloads of which other ways are as cheap, and what decided; a tie that names alone decide is not told."""
    ties = document.get("ties")
    for row in ties["rows"] if ties is not None else ():
        by = [NAMES[name] for name in row["by"] if name != "offers"]
        if by:
            ways = "1 other way is" if row["others"] == 1 else f"{row['others']} other ways are"
            yield f"{row['workload'] + ': ' if many else ''}a tie: {ways} as cheap; decided by {', '.join(by)}"


def _plain_lines(document: PlanDocument) -> Iterator[str]:
    """How the cheapest plan runs what is run more plainly here.

    Whoever stands on shared nodes bears its part of them: what that is moves with the others' time, and the plan costs
    the same. So of those the whole plan is compared, and who only bears another part is not told of.
    """
    plain = document.get("plain")
    mine = {workload["name"]: workload for workload in document["workloads"]}
    for one in plain["workloads"] if plain else ():
        rows, (least, paid) = (
            mine[one["name"]]["allocations"],
            (one["cost_microusd"], mine[one["name"]]["cost_microusd"]),
        )
        if [_run(row) for row in rows] == [_run(row) for row in one["allocations"]]:
            continue
        if plain is not None and (whole := any("shared" in row for row in (*rows, *one["allocations"]))):
            least, paid = plain["cheapest_microusd"], document["summary"]["cost_microusd"] or 0
        more = "as cheap as" if paid <= least else f"{words.fine_percent(paid / least - 1)} above"
        cost = f"{words.money(document, least)} in all" if whole else words.money(document, least)
        fewer = len({row["offer"] for row in rows})
        if fewer < len({row["offer"] for row in one["allocations"]}):
            on = "offer" if fewer == 1 else "device"
            kinds = ", ".join(f"{row['devices']:,} {row['device']} of {row['provider']}" for row in one["allocations"])
            yield f"{one['name']}: on one {on}, and {more} the {words.cheapest(document)}, {kinds} ({cost})"
            continue
        splits = ", ".join(dict.fromkeys(_split_in_short(row) for row in one["allocations"]))
        best, cheapest = "plan" if whole else "layout", words.cheapest(document)
        yield f"{one['name']}: plainer, and {more} the {cheapest} {best}, {splits} ({cost})"


def _run(row: Allocation | RowInShort) -> tuple[object, ...]:
    """How a row runs, whatever it bears."""
    return row["offer"], row["count"], row["devices"], row.get("replicas"), row["layout"]


def _split_in_short(row: RowInShort) -> str:
    """ "dp4 pp2 vpp4 zero-3"; of a fleet "9 × tp2"."""
    layout = row["layout"]
    shown = [f"{axis}{layout[axis]}" for axis in ("dp", "tp", "pp", "vpp", "cp", "ep") if layout.get(axis, 1) != 1]
    shown += [str(layout[policy]) for policy in ("sharding", "recompute") if layout.get(policy, "none") != "none"]
    split = " ".join(shown) or "one device"
    return f"{row['replicas']} × {split}" if "replicas" in row else f"{split} on {counted(row['devices'], 'device')}"


def elsewhere_lines(document: PlanDocument) -> Iterator[str]:
    """A line of the large clouds, and one of marketplaces that would be cheaper."""
    told = document.get("elsewhere") or []
    clouds = [one for one in told if one["seller"] != MARKETPLACES]
    if clouds:
        here = words.money(document, clouds[0]["here_microusd"])
        costs = "; ".join(_cost(document, one) for one in clouds)
        lacking = next((one["seller"] for one in clouds if one.get("instead")), "")
        best = f"; --set hardware.providers={lacking} finds the best there" if lacking else ""
        cheaper = any((one["dearer"] or 0) < 0 for one in clouds)
        less = " (prices alone: its own machines may take longer)" if cheaper else ""
        yield f" The same devices and hours   {costs}; rented by the hour here {here}{less}{best}"
    for one in told:
        if one["seller"] == MARKETPLACES and one["cost_microusd"] is not None and (one["dearer"] or 0) < 0:
            saved = words.money(document, one["here_microusd"] - one["cost_microusd"])
            sellers = ", ".join(dict.fromkeys(offer.partition(":")[0] for offer in one["offers"]))
            yield (
                f" Marketplaces   would save {saved} on the same devices and hours ({sellers}), and promise no "
                "capacity; hardware.kinds: [hyperscaler, cloud, marketplace] takes them in"
            )


def _cost(document: PlanDocument, one: Elsewhere) -> str:
    if one["cost_microusd"] is None:
        apart = one.get("unjoined", [])
        none = [device for device in one["missing"] if device not in apart]
        told = [f"has no {' and no '.join(none)}"] if none else []
        told += [f"joins its {' and '.join(apart)} by a network that is not known here"] if apart else []
        return f"{one['seller']} {', and '.join(told)}"
    share = f" ({100 * one['dearer']:+.0f} %)" if one["dearer"] is not None else ""
    return f"{one['seller']} {words.money(document, one['cost_microusd'])}{share}"


def uncertain_blocks(document: PlanDocument) -> list[Block]:
    """The cases of a plan; nothing for a plan without."""
    section = document.get("uncertainty")
    if not section:
        return []
    rows = [
        (
            case["name"],
            f"{case['probability'] * 100:.4g}%",
            _money(case["cost_usd"]),
            _money(case["known_beforehand_usd"]),
            _money(case["contracts_of_written_usd"]),
        )
        for case in section["cases"]
    ]
    heads = columns("What may happen", ">Probability", ">Cost", ">Known beforehand", ">Contracts as written")
    return [Grid(columns=heads, rows=rows), Items(title="Over all cases", items=tuple(_sentences(section)))]


def _sentences(section: Uncertainty) -> list[str]:
    lines = [f"expected cost {_money(section['expected_usd'])}"]
    risk = section["risk"]
    level = risk["level"] if risk else 0.95
    if section["at_risk_usd"] is not None:
        worst = f"the worst {format_percent(1 - level)} of what may happen"
        lines.append(f"{worst} costs {_money(section['at_risk_usd'])} on average")
    if section["perfect_information_usd"] is not None:
        lines.append(f"to know beforehand would be worth {_money(section['perfect_information_usd'])}")
    saved = section["stochastic_solution_usd"]
    if saved is not None and saved >= 0:
        lines.append(f"to have thought of all cases saves {_money(saved)} on average")
    elif saved is not None:  # where the bad cases weigh more than their share
        lines.append(f"to have thought of all cases costs {_money(-saved)} on average, for less in the bad ones (risk)")
    else:
        lines.append("the contracts of the scenario as written would leave some case without a plan")
    return lines


def _money(usd: float | None) -> str:
    return "no plan" if usd is None else format_money(round(usd * 1_000_000))


def others_blocks(document: PlanDocument) -> list[Block]:
    """Blocks of what was asked for beside the plan; none when nothing was."""
    others = document.get("others")
    if not others or document["summary"]["cost_microusd"] is None:
        return []
    blocks: list[Block] = []
    if others["previous"]:
        blocks.append(_previous(document, others["previous"]))
    if others["decisions"] and others["decisions"]["plans"]:
        blocks.append(_decisions(document, others["decisions"]))
    if others["near_optimal"]:
        blocks.append(_near_optimal(document, others["near_optimal"]))
    return blocks


def _decisions(document: PlanDocument, found: Decisions) -> Block:
    rows = [
        [str(number), workload["name"] if len(plan["workloads"]) > 1 else "", rented(workload), *cells]
        for number, plan in enumerate(found["plans"], 1)
        for place, workload in enumerate(plan["workloads"])
        for cells in [_totals(document, plan) if place == 0 else ["", "", ""]]
    ]
    notes = ["each gives up at least one device, price model or place of every plan above it"]
    if any(not plan["proven"] for plan in found["plans"]):
        notes = ["not all were solved to their optimum before their time was up: better ones may exist"]
    if found["ended"] == "infeasible" and not _mixes(document):
        notes.append("there is no other one")
    elif found["ended"] == "infeasible":
        notes.append("there is no other one among the ways that were listed; mixes within a job are more than those")
    elif found["ended"]:
        notes.append(f"the search for more ended: {found['ended']}")
    heads = columns("Decision", "Workload", "Rents", ">Devices", ">Cost", ">dearer")
    return Grid(columns=heads, rows=rows, notes=tuple(notes), grouped=True)


def _mixes(document: PlanDocument) -> bool:
    """Whether a job may be trained on several offers at once."""
    return any(job.get("mix_within_job") for job in workloads_asked(document, "training"))


def rented(workload: WorkloadInShort) -> str:
    """What one workload rents: "2 × h100-sxm-80gb ×8 · prov-a us-east"."""
    return " + ".join(words.rented_as(row) for row in workload["allocations"])


def _totals(document: PlanDocument, plan: DecisionPlan) -> list[str]:
    dearer = f"{100 * plan['dearer']:+.1f} %" if plan["dearer"] else "–"
    return [f"{plan['devices']:,}", words.money(document, plan["cost_microusd"]), dearer]


def _near_optimal(document: PlanDocument, found: NearOptimal) -> Block:
    rows = [[row["device"], _count(row["fewest"]), _count(row["most"]), f"{row['best']:,}"] for row in found["devices"]]
    most = words.money(document, found["most_microusd"])
    notes: tuple[str, ...] = (
        f"devices in plans of at most {most}, {_percent(found['share'])} more than the cheapest",
        "the most is what that money allows, needed or not; devices that are not named cannot be in such a plan",
    )
    if _mixes(document):
        notes = (*notes, "of mixes within a job only those count that the search for the cheapest plan listed")
    heads = columns(f"Within {_percent(found['share'])}", ">fewest", ">most", ">cheapest plan")
    return Grid(columns=heads, rows=rows, notes=notes)


def _count(value: int | None) -> str:
    return "not proven" if value is None else f"{value:,}"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


def _previous(document: PlanDocument, found: Previous) -> Block:
    return Items(title="Beside the plan before", items=tuple(_previous_lines(document, found)))


def _previous_lines(document: PlanDocument, found: Previous) -> Iterator[str]:
    nodes = found["changed_nodes"]
    if not nodes:
        yield "nothing changes"
    for row in found["changes"]:
        yield f"{row['workload']}: {row['before']} → {row['after']} × {row['offer']}"
    if found["staying_usd"] and found["cheapest_usd"] is not None:
        cheapest, more = (words.money(document, 1e6 * usd) for usd in (found["cheapest_usd"], found["staying_usd"]))
        yield f"staying costs {more} more than the cheapest plan, {cheapest}"
    elif found["cheapest_microusd"] is not None:
        yield "no plan is cheaper"
    if found["move_usd"] is not None:
        yield f"every node that changes was charged {words.money(document, 1e6 * found['move_usd'])}"
    elif nodes:
        proven = "no plan changes fewer nodes" if found["proven"] else "fewer may do (not proven)"
        yield f"nodes that change: {nodes}; within {_percent(found['share'] or 0.0)} of the least cost {proven}"
