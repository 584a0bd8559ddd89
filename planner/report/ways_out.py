"""The ways out of an infeasible scenario in words: one line each, and the cheapest combination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from planner import units
from planner.plan.parts import limit_name
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, columns
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.others import Change, Combined, Infeasible, WayOut
    from planner.plan.model.plan import PlanDocument

_READ: Mapping[str, Callable[[object], float]] = {
    "s": units.parse_duration,
    "microusd": lambda text: units.parse_money(text, rates=None),
    "microusd/h": lambda text: units.parse_price(text, rates=None),
    "mW": units.parse_power,
    "mg": units.parse_mass,
}


def cost_then(document: PlanDocument, cost_microusd: int) -> str:
    """What a change costs: the cheapest plan with it, and no more than that where something else is minimised first."""
    more = "" if document["summary"]["objective"][0] == "cost" else " or more"
    return words.money(document, cost_microusd) + more


def ways_out(document: PlanDocument, facts: Infeasible) -> list[Block]:
    """What would mend it, each limit alone; then several together, when that loosens more than one."""
    rows = [_row(document, way) for way in facts["ways_out"]]
    heads = columns("Ways out, each alone", "Change", ">Cost then", "How")
    blocks: list[Block] = [Grid(columns=heads, rows=rows)]
    together = facts["combined"]
    if together and (len(together["changes"]) > 1 or not any(way["setting"] for way in facts["ways_out"])):
        blocks.append(_together(document, together))
    return blocks


def _row(document: PlanDocument, way: WayOut) -> list[str]:
    name = limit_name(document, way["limit"])
    if way["to"] is None:
        return [name, "alone not enough" if way["proven"] else "none found", "", ""]
    unproven = "" if way["proven"] else ", not proven least"
    cost = "" if way["cost_microusd"] is None else cost_then(document, way["cost_microusd"])
    return [name, change(way) + unproven, cost, how(way)]


def how(way: Change) -> str:
    """The options of a command line that make a change, in round figures that are enough.

    The document has the exact figure; what is printed of it is rounded up, and a limit that is looser still does.
    """
    texts = way["to_text"].split("; ")
    settings = way["setting"].split("; ")
    shown = texts if len(texts) == len(settings) else settings
    return " ".join(f"--set '{_rounded(setting, text, way['unit'])}'" for setting, text in zip(settings, shown))


def _rounded(setting: str, text: str, unit: str) -> str:
    """A setting with its figure as it is printed, where that is read as no less."""
    path, _, exact = setting.partition("=")
    parse = _READ.get(unit)
    if parse is None:
        return setting
    try:
        return f"{path}={text}" if parse(text) >= parse(exact) else setting
    except units.UnitError:
        return setting


def change(way: Change) -> str:
    """From what to what: "14 → 19 days", "32 → 48 devices", "+ h100-sxm-80gb"."""
    before, after = way["from_text"], way["to_text"]
    if after.startswith("+"):
        return after
    one, other = before.rsplit(" ", 1), after.rsplit(" ", 1)
    if len(one) == len(other) == 2 and one[1].rstrip("s") == other[1].rstrip("s"):
        return f"{one[0]} → {after}"
    return f"{before} → {after}"


def _together(document: PlanDocument, together: Combined) -> Block:
    rows = [[limit_name(document, one["limit"]), change(one), how(one)] for one in together["changes"]]
    proven = "the least loosening in all" if together["proven"] else "not proven least"
    note = f"then {cost_then(document, together['cost_microusd'])}; {number(100 * together['loosening'])} %, {proven}"
    return Grid(columns=columns("Together", "Change", "How"), rows=rows, notes=(note,))
