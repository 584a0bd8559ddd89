"""Plans held against each other, in every output format: what is rented, what it costs, and what moved it.

What moved a decision is told with its break-even price, the runner-up, and what it took to find them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.analysis.compare.decision import of_one_time
from planner.analysis.compare.document import flat_rows
from planner.analysis.compare.model import (
    Again,
    CauseFound,
    ChangeRow,
    Compared,
    CompareDocument,
    RunnerUp,
    Said,
    SideTold,
)
from planner.plan.parts import said_of
from planner.report import compare_words as words
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns, warned
from planner.report.compare_words import amount, percent, price, signed, value

LEVELS = {"what": "what is rented", "where": "where it is rented", "how": "the layout", "cost": "the cost"}
_SHOWN_OF_A_SET = 8  # changes of a set that are told one by one


def changed(row: ChangeRow, currency: str) -> str:
    """One change in words: "the price of OFFER, $2.58 → $7.74 /h (+200 %)"."""
    if row["kind"] == "price":
        size = f" of {row['devices_per_shape']} devices" if (row["devices_per_shape"] or 1) > 1 else ""
        share = f" ({percent(row['new'] / row['old'] - 1)})" if row["old"] else ""
        old, new = (price(row[name], currency) for name in ("old", "new"))
        return f"the price of {row['id']}, {old} → {new} /h{size}{share}"
    if row["kind"] == "added":
        return f"the new offer {row['id']} at {price(row['new'], currency)} /h"
    if row["kind"] == "removed":
        return f"the offer {row['id']}, which is gone (it was {price(row['old'], currency)} /h)"
    if row["kind"] == "scenario" and isinstance(row["old"], Mapping | None) != isinstance(row["new"], Mapping | None):
        return f"{row['name']}: {value(row['old'])} → {value(row['new'])}"
    if isinstance(row["old"], Mapping) or isinstance(row["new"], Mapping):
        return f"the workload {row['name']}, " + ("added" if row["old"] is None else "removed")
    return f"{row['name']}: {value(row['old'])} → {value(row['new'])}"


def cause_lines(cause: CauseFound, one: Compared, currency: str) -> Iterator[str]:
    """What moved the decision, or the cost, or that nothing did.

    Parameters
    ----------
    cause
        What was found to have moved it.
    one
        The comparison that it is of, for the names of its plans.
    currency
        Code of the currency, as USD.
    """
    found, level = cause["found"], LEVELS.get(cause["level"], "")
    if cause["verdict"] == "none":
        yield "none of what changed moves the decision or the cost"
    elif cause["verdict"] == "single":
        each = " (each of these does)" if len(found) > 1 else ""
        for row in found[:_SHOWN_OF_A_SET]:
            does = f"this alone moves {level}{_by(row['alone'], currency, cause['level'])}"
            yield f"{changed(row, currency)}: {does}{each}{_needed(row, cause, one)}"
    elif cause["verdict"] == "together":
        does = "accounts for it" if cause["level"] == "cost" else f"moves {level} as it moved"
        yield f"no single change {does}; these {len(found)} together do" + (
            "" if cause["proven"] else " (perhaps fewer)"
        )
        for row in found[:_SHOWN_OF_A_SET]:
            yield f"{changed(row, currency)}: alone{_partly(row, currency)}"
        if len(found) > _SHOWN_OF_A_SET:
            yield f"and {len(found) - _SHOWN_OF_A_SET} more (-o json lists them)"
    else:
        yield "too many questions would have to be solved again to say which change did it"


def _by(said: Said | None, currency: str, level: str) -> str:
    if said is None or not said["moved_usd"]:
        return ""
    return f"{' and the cost' * (level != 'cost')} by {signed(said['moved_usd'], currency)}"


def _needed(row: ChangeRow, cause: CauseFound, one: Compared) -> str:
    """What B would be without a change."""
    without = row["without"]
    if cause["level"] == "cost" or without is None or without["decision"] == "unknown":
        return ""
    if without["decision"] == "old":
        return f"; without it {one['new']} would decide as {one['old']}"
    if without["decision"] == "new":
        return f"; {one['new']} would decide so without it too"
    return f"; without it {one['new']} would decide otherwise"


def _partly(row: ChangeRow, currency: str) -> str:
    """What one of several changes does alone."""
    said = row["alone"]
    if said is None or said["decision"] == "unknown":
        return " it makes no sense" + (f" ({said['problem']})" if said and said["problem"] else "")
    whose = " and ".join(name or "contracts" for name in said["workloads"])
    decides = (
        f" it moves {whose}"
        if whose
        else " it moves no decision"
        if said["decision"] in ("old", "same")
        else " it leads elsewhere"
    )
    verb = "" if decides.startswith(" it moves ") else "moves "
    cost = f", and {verb}the cost by {signed(said['moved_usd'], currency)}" if said["moved_usd"] else ""
    return decides + cost


def other_line(row: ChangeRow, currency: str) -> str:
    """A change that does something, but is not the cause.

    Parameters
    ----------
    row
        The change.
    currency
        Code of the currency, as USD.
    """
    said = row["alone"]
    if said is not None and (said["moved_usd"] or said["decision"] not in ("old", "same")):
        return f"also {changed(row, currency)}: alone{_partly(row, currency)}"
    moved = row["without"]["moved_usd"] if row["without"] else None
    return f"also {changed(row, currency)}: it counts once the rest has changed" + (
        f", {signed(-moved, currency)}" if moved else ""
    )


def again_line(row: Again, currency: str) -> str:
    """A plan that this planner would not make."""
    again = "finds no plan" if row["again_usd"] is None else f"finds {amount(row['again_usd'], currency)}"
    cost = amount(row["plan_usd"], currency)
    return f"the plan of {row['name']} costs {cost}; this planner {again} for the same question"


def flip_line(row: ChangeRow, one: Compared, currency: str) -> str:
    """The price at which the decision flips back; "" where none is known.

    Parameters
    ----------
    row
        A change that moved the decision.
    one
        The comparison that it is of, for the names of its plans.
    currency
        Code of the currency, as USD.
    """
    flip = row["break_even"]
    if flip is None:
        return ""
    each = (
        f" ({price(flip['price_usd_per_device_hour'], currency)} /device-h)"
        if (row["devices_per_shape"] or 1) > 1
        else ""
    )
    proof = "" if flip["proven"] else " (not proven)"
    return (
        f"{row['id']}: the decision of {one['new']} holds {flip['holds']} "
        f"{price(flip['price_usd_per_hour'], currency)} /h{each}, all else as in {one['new']}{proof}"
    )


def runner_up_lines(found: RunnerUp | None, one: Compared, currency: str) -> Iterator[str]:
    """The next best decision, and at what price it would win.

    Parameters
    ----------
    found
        The next best decision; None = none is known, and there are no lines.
    one
        The comparison that it is of, for the names of its plans.
    currency
        Code of the currency, as USD.
    """
    if found is None:
        return
    decides = " and ".join(f"{row['count']} × {row['offer']} for {row['workload']}" for row in found["decides"])
    yield f"runner-up of {one['new']}: {decides or 'another split'}, {signed(found['dearer_usd'], currency)}"
    for row in found["prices"]:
        if row["break_even_usd_per_hour"] is not None:
            yield (
                f"it would win with {row['offer']} at {price(row['break_even_usd_per_hour'], currency)} /h "
                f"(now {price(row['price_usd_per_hour'], currency)})"
            )


def resolved_lines(cause: CauseFound) -> Iterator[str]:
    """What it took to find the cause."""
    done = cause["resolved"]
    if cause["verdict"] == "none":
        return
    many = f"{cause['changes']:,} change" + ("s" if cause["changes"] != 1 else "")
    spared = [
        (done["unusable"], "are of offers that no workload can run on"),
        (done["not_dearer"], "can only make dearer what the best plan does not use"),
    ]
    told = "; ".join(f"{count:,} {words}" for count, words in spared if count)
    groups = f"{cause['groups']:,} group" + ("s" if cause["groups"] != 1 else "")
    solved = f"{done['solves']:,} questions solved again, ways listed {done['listings']}×"
    yield f"Cause: {many} in {groups}, {solved}" + (f"; without solving: {told}" if told else "")
    if not cause["proven"]:
        yield "Stopped at the most questions that are solved: what is told may not be all"


KEY = "Key  + added  - removed  ~ changed"
APART = "contracts are paid apart: what runs under them costs a workload nothing more"
EXPECTED = "a total of several futures is the mean of what their cases cost; what stands above is of the one as written"
_SHOWN_LINES = 12
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
        return csv.render(rows, csv.columns_of(rows))
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
    if any(row["part"] == "cases" for row in one["money"]):
        notes.append(EXPECTED)
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
    lines = [*cause_lines(cause, one, currency)]
    others = cause["others"][:_OTHERS]
    lines += [other_line(row, currency) for row in others]
    more = len(cause["others"]) - len(others)
    lines += [f"and {more} more changes move the cost or the decision"] if more > 0 else []
    lines += [again_line(row, currency) for row in cause["sides"]]
    return Items(title="Because", items=tuple(lines))


def _break_even(one: Compared, currency: str) -> Block:
    cause = one["cause"]
    lines: list[str] = []
    if cause["looked_for"]:
        lines = [line for row in cause["found"] if (line := flip_line(row, one, currency))]
        lines += runner_up_lines(cause["runner_up"], one, currency)
    return Items(title="Break-even", items=tuple(lines))


def _inputs(one: Compared, full: bool) -> Block:
    inputs = one["inputs"]
    lines = [words.key_line(row) for row in inputs["scenario"]]
    hidden = 0 if full else max(0, len(lines) - _SHOWN_LINES)
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
    shown = found if full else found[:_SHOWN_LINES]
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
    return Lines(lines=tuple(resolved_lines(cause)) if cause["looked_for"] else (), folded=True)
