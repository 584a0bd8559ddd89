"""Plans held against each other, in every output format: what is rented, what it costs, and what moved it."""

from __future__ import annotations

from collections.abc import Sequence

from planner.analysis.compare.decision import of_one_time
from planner.analysis.compare.document import flat_rows
from planner.analysis.compare.model import Compared, CompareDocument, SideTold
from planner.plan.parts import said_of
from planner.report import compare_cause as causes
from planner.report import compare_words as words
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns, warned

KEY = "Key  + added  - removed  ~ changed"
APART = "contracts are paid apart: what runs under them costs a workload nothing more"
_SHOWN = 12
_OTHERS = 5


def render_comparison(
    document: CompareDocument, form: str, *, full: bool = False, width: int = 100, colour: bool = False
) -> str:
    """A comparison as table, json, csv or md.

    Parameters
    ----------
    document
        The comparison.
    form
        table, json, csv or md.
    full
        Long lists whole, in table and md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        rows = flat_rows(document)
        return csv.render(rows, list(dict.fromkeys(key for row in rows for key in row)))
    blocks = comparison_blocks(document, full=full)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def comparison_blocks(document: CompareDocument, *, full: bool = False) -> list[Block]:
    """Everything worth reading: an overview of three sides or more, then each beside the first."""
    blocks: list[Block] = [_overview(document)] if len(document["comparisons"]) > 1 else []
    for one in document["comparisons"]:
        blocks += _pair(document, one, full)
    return blocks


def _overview(document: CompareDocument) -> Block:
    """One line a side: its total, and how far that is from the first."""
    first, currency = document["sides"][0], document["summary"]["currency"]
    rows = [[first["name"], words.amount(first["cost_usd"], currency), "", "", words.devices(first), "the first"]]
    for side, one in zip(document["sides"][1:], document["comparisons"]):
        total = one["money"][-1]
        rows.append(
            [
                side["name"],
                words.amount(side["cost_usd"], currency),
                words.difference(total, currency),
                words.percent(total["difference"]),
                words.devices(side),
                words.verdict(one) if side["cost_usd"] is not None else f"no plan: {side['reason']}",
            ]
        )
    return Grid(columns=columns("Plan", ">Total", ">Difference", ">Change", ">Devices", "Decision"), rows=rows)


def _pair(document: CompareDocument, one: Compared, full: bool) -> list[Block]:
    currency = document["summary"]["currency"]
    sides = {side["name"]: side for side in document["sides"]}
    pair = (sides[one["old"]], sides[one["new"]])
    return [
        Lines(lines=(f"{one['old']} → {one['new']}", *_answer(one, pair)), strong_first=True),
        _table(one, currency, pair),
        _because(one, currency),
        _break_even(one, currency),
        _warned(pair, full),
        _inputs(one, full),
        _touching(one, full),
        _how(one),
        _resolved(one),
    ]


def _answer(one: Compared, pair: Sequence[SideTold]) -> list[str]:
    """What changed in one line, or which of the two has no plan."""
    missing = [f"{side['name']} has no plan: {side['reason']}" for side in pair if side["cost_usd"] is None]
    return missing or [words.verdict(one)]


def _warned(pair: Sequence[SideTold], full: bool) -> Block:
    """What one of two plans warns of and the other does not, or all of it."""
    if not full and any(side["cost_usd"] is None for side in pair):
        return warned([])
    both = [set(side["warnings"]) for side in pair]
    shared = set() if full else both[0] & both[1]
    return warned(said_of([(side["name"], [text for text in side["warnings"] if text not in shared]) for side in pair]))


def _likely(pair: Sequence[SideTold], currency: str) -> str:
    """The ranges of both totals, which err alike where both rest on one estimate; "" where one is not known."""
    bands = [side["cost_band"] for side in pair if side["cost_band"]]
    if len(bands) < 2 or any(band["p10"] == band["p90"] for band in bands):
        return ""
    old, new = (" to ".join(words.amount(band[at], currency) for at in ("p10", "p90")) for band in bands)
    return f"likely {old} → {new} (p10 to p90)"


def _table(one: Compared, currency: str, pair: Sequence[SideTold]) -> Block:
    rows = [
        [
            f"{row['sign']} {row['name']}",
            words.plan_cell(row),
            *words.money_cells(row, currency, words.period(one, row)),
        ]
        for row in one["workloads"]
    ]
    for part, found in (("contracts", one["contracts"]), ("copies", one["copies"])):
        rows += [[f"{row['sign']} {part}", words.bought_cell(row), "", "", ""] for row in found]
    rows += [
        ["~ owned", f"{row['old']} → {row['new']} × {row['offer'].split(':')[-1]} in use", "", "", ""]
        for row in one["owned"]
    ]
    rows += [
        [words.part(row["part"], one), "", *words.money_cells(row, currency, "")]
        for row in one["money"]
        if row["part"] == "total" or len(one["money"]) > 2
    ]
    moved = one["money"][-1]["difference_microusd"]
    notes = [KEY, *([likely] if moved and (likely := _likely(pair, currency)) else [])]
    if any(row["part"] == "contracts" for row in one["money"]):
        notes.append(APART)
    spans = one["horizon_hours"]
    if not of_one_time(one):
        each = " and ".join(f"{words.span(spans[side])} in {one[side]}" for side in ("old", "new"))
        notes.append(f"Serving is paid for {each}: the totals are of different times")
    heads = columns("Workload", "Plan", ">Cost", ">Difference", ">Change")
    return Grid(columns=heads, rows=rows, notes=tuple(notes))


def _because(one: Compared, currency: str) -> Block:
    """The cause, one bullet a change."""
    cause = one["cause"]
    if not cause["looked_for"]:
        told = () if one["same"] else (f"not looked for: {cause['reason']}",)
        return Items(title="Because", items=told)
    lines = [*causes.cause_lines(cause, one, currency)]
    others = cause["others"][:_OTHERS]
    lines += [causes.other_line(row, currency) for row in others]
    more = len(cause["others"]) - len(others)
    lines += [f"and {more} more changes move the cost or the decision"] if more > 0 else []
    lines += [causes.again_line(row, currency) for row in cause["sides"]]
    return Items(title="Because", items=tuple(lines))


def _break_even(one: Compared, currency: str) -> Block:
    cause = one["cause"]
    lines: list[str] = []
    if cause["looked_for"]:
        lines = [line for row in cause["found"] if (line := causes.flip_line(row, one, currency))]
        lines += causes.runner_up_lines(cause["runner_up"], one, currency)
    return Items(title="Break-even", items=tuple(lines))


def _inputs(one: Compared, full: bool) -> Block:
    inputs = one["inputs"]
    lines = [words.key_line(row) for row in inputs["scenario"]]
    hidden = 0 if full else max(0, len(lines) - _SHOWN)
    lines = lines[: len(lines) - hidden] + ([f"and {hidden} more keys (-v shows them all)"] if hidden else [])
    lines += [] if inputs["scenario"] else ["scenario: same"]
    for name in ("settings", "case"):
        if not inputs[name]["same"]:
            lines.append(f"{name}: {words.value(inputs[name]['old'])} → {words.value(inputs[name]['new'])}")
    lines.append(words.catalog_line(inputs["catalog"]))
    lines += [
        f"{name}: {inputs[name]['old'] or 'unknown'} → {inputs[name]['new'] or 'unknown'}"
        for name in ("planner", "solver", "modelling")
        if not inputs[name]["same"]
    ]
    return Items(title="Inputs that changed", items=tuple(lines))


def _touching(one: Compared, full: bool) -> Block:
    """Facts and prices that changed and that a plan uses."""
    found = one["inputs"]["catalog"]["touching"]
    shown = found if full else found[:_SHOWN]
    rows = [
        (row["id"], row["field"], words.value(row["old"]), words.value(row["new"]), words.percent(row["change"]),
         row["new_source"])
        for row in shown
    ]  # fmt: skip
    more = len(found) - len(shown)
    notes = (f"and {more} more (-v shows them all)",) if more else ()
    heads = columns("Of what a plan uses", "Field", ">Old", ">New", ">Change", "Source")
    return Grid(columns=heads, rows=rows, notes=notes, folded=True)


def _how(one: Compared) -> Block:
    """How the workloads that changed run, before and after."""
    rows = [words.how_cells(row) for row in one["workloads"] if row["changed"] != "nothing"]
    return Grid(columns=columns("Workload", ">Devices", "Layout", "Finish / load"), rows=rows, folded=True)


def _resolved(one: Compared) -> Block:
    """What it took to find the cause."""
    cause = one["cause"]
    return Lines(lines=tuple(causes.resolved_lines(cause)) if cause["looked_for"] else (), folded=True)
