"""A plan document in any format, the first screen among them: the one door that commands use.

The screen says what to do, what it costs, how sure that is, what to type next: at most `MOST_LINES` lines of 80 columns
for four workloads, a line more for each after. Everything that is left out is counted, and the last lines say how to
see it. Rendered from the document alone, as the whole view is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.plan.parts import limit_name, rows_of
from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report import screen_words as said
from planner.report import serving_words as serving
from planner.report.alternatives_view import others_blocks, uncertain_blocks
from planner.report.blocks import MORE_ADVICE, Advice, Block, Cards, Lines, Said
from planner.report.escape import terminal
from planner.report.next_words import asking, change, cost_then, how, next_steps
from planner.report.plan_view import plan_blocks, plan_title, some_sections
from planner.units import counted

if TYPE_CHECKING:
    from planner.plan.model.others import Infeasible, WayOut
    from planner.plan.model.plan import PlanDocument


MOST_LINES, MOST_LINES_INFEASIBLE, MOST_LINES_OF_MANY = 30, 25, 60
WIDTH = 80
_IN_FULL = 4  # workloads with lines of their own
_SHOWN_WARNINGS, _SHOWN_WAYS, _SHOWN_DETAILS = 3, 3, 2
_FEW = 2  # workloads, of which all lines are shown before a third warning is
# lines of a workload, warnings and pieces of advice, where there is no room for more
_LESS_AND_LESS_OF_FEW = ((2, 3, 9), (2, 2, 9), (2, 1, 9), (2, 1, 1))
_LESS_AND_LESS = ((2, 3, 9), (1, 3, 9), (1, 2, 9), (1, 1, 9), (1, 1, 1), (1, 1, 0), (1, 0, 0))
_IN_THE_WAY = (  # of warnings
    *("--set '", " positions of ", "did you mean ", " counts, ", " cases of the uncertainty", " stands on no spot"),
)
_LOADS = re.compile(r"serving\[\d+\]\.(qpm|requests|users)")


def screen_blocks(
    document: PlanDocument,
    *,
    saved: str = "",
    launch: str = "",
    elapsed_s: float | None = None,
    advice: Sequence[Advice] = (),
    warnings: int = _SHOWN_WARNINGS,
    lines: int = _SHOWN_DETAILS,
) -> list[Block]:
    """The first screen, most important first.

    Parameters
    ----------
    saved, launch
        The plan's file and the format that launches it; "" where there is none.
    elapsed_s
        How long it took.  [s]
    advice
        What would save money: its worth, and the command.
    warnings
        How many are told; the others are counted.
    lines
        Of a workload's block, at most, below what it runs on.
    """
    blocks = answer_blocks(document, elapsed_s, lines)
    if document["infeasible"]:
        return [*blocks, _in_the_way(document, document["infeasible"]), _last(document, saved, launch)]
    blocks += [
        *_asked_for(document),
        _remarks(document, warnings),
        advised(advice, most_lines=1 if _crowded(document) else 2),
    ]
    return [*blocks, _last(document, saved, launch)]


def answer_blocks(document: PlanDocument, elapsed_s: float | None = None, lines: int = _SHOWN_DETAILS) -> list[Block]:
    """The answer itself: title, decision, money, how sure that is, a card a workload; or the ways out."""
    title = Lines(lines=(plan_title(document),), strong_first=True)
    if document["infeasible"]:
        decided = Lines(lines=(said.decided(document),), strong_first=True)
        return [title, decided, ways_out_said(document, document["infeasible"])]
    answer = [said.decided(document), said.money_line(document), said.sure_line(document, elapsed_s)]
    return [
        title,
        Lines(lines=tuple(filter(None, answer)), strong_first=True),
        workload_cards(document, lines),
        _shared(document),
    ]


def quiet_line(document: PlanDocument) -> str:
    """Total, range and status, in one line."""
    cost, likely = document["summary"]["cost_microusd"], said.likely(document, " (likely ", ")")
    total = f"{words.money(document, cost)}{likely}, " if cost is not None else ""
    return total + words.proof(document, None)


def render_screen(
    document: PlanDocument,
    *,
    width: int = 80,
    colour: bool = False,
    saved: str = "",
    launch: str = "",
    elapsed_s: float | None = None,
    advice: Sequence[Advice] = (),
) -> str:
    """The first screen for a terminal; it is never wider than 80 columns.

    Parameters
    ----------
    document
        The plan.
    width
        Of the terminal; the screen has 80 columns whatever it is.  [characters]
    colour
        With escape codes for a terminal.
    saved, launch
        The plan's file and the format that launches it; "" where there is none.
    elapsed_s
        How long it took; None = not told.  [s]
    advice
        What would save money: its worth, and the command.
    """
    most = MOST_LINES + max(0, len(document["workloads"]) - _IN_FULL)
    drawn = ""
    few = sum(bool(rows_of(workload)) for workload in document["workloads"]) <= _FEW
    told: dict[str, Any] = {"saved": saved, "launch": launch, "elapsed_s": elapsed_s}
    for lines, warnings, pieces in _LESS_AND_LESS_OF_FEW if few else _LESS_AND_LESS:  # what is left out is counted
        kept = advice if len(advice) <= pieces else [*advice[:pieces], MORE_ADVICE]
        blocks = screen_blocks(document, **told, advice=kept, warnings=warnings, lines=lines)
        drawn = text.draw(blocks, width=min(width, WIDTH), style=text.Style(colour))
        if drawn.count("\n") <= most:
            break
    return drawn


def workload_cards(document: PlanDocument, lines: int = _SHOWN_DETAILS) -> Cards:
    """What each workload runs on, where, when and for how much, and so many lines more; a line each of many."""
    found = [workload for workload in document["workloads"] if rows_of(workload)]
    whole = len(found) <= _IN_FULL
    rows = []
    for workload in found:
        name, cost = workload["name"], said.cost_of(document, workload)
        if whole:
            cells = [name, said.hardware(workload), said.places(workload), cost]
            rows.append((cells, said.details(workload)[:lines]))
        else:
            rows.append(([_cut(name, 24), _cut(said.hardware(workload), 28), said.in_short(workload), cost], []))
    return Cards(rows=rows)


def _shared(document: PlanDocument) -> Block:
    """Nodes that fleets share: they are in no workload's line."""
    line = said.shared_line(document)
    return Lines(lines=(f"  {line}",) if line else ())


def _asked_for(document: PlanDocument) -> list[Block]:
    """What the command line or the scenario asked for beside the plan: it is never left out."""
    simulated = serving.simulation_block(document)
    return [*uncertain_blocks(document), *others_blocks(document), simulated]


def _cut(words_: str, most: int) -> str:
    return words_ if text.cells(words_) <= most else words_[: most - 1] + "…"


def _remarks(document: PlanDocument, most: int) -> Block:
    """Warnings that matter, and how many more there are."""
    found = said.matters(document)
    shown = [(one,) for one in found[:most]]
    if len(found) > most:
        more = counted(len(found) - most, "more warning")
        shown.append((f"{more}: --show warnings",))
    return Said(mark="!", rows=shown, tone="fair", most_lines=1 if _crowded(document) else 2)


def _crowded(document: PlanDocument) -> bool:
    """Whether workloads with lines of their own leave a sentence one line."""
    return 2 < len(document["workloads"]) <= _IN_FULL


def advised(advice: Sequence[Advice], most_lines: int = 2) -> Block:
    """What would save money, with the command that does; how much stands at a sentence's end."""
    return Said(mark=">", rows=list(advice), tone="good", most_lines=most_lines)


def _enough(facts: Infeasible) -> list[WayOut]:
    """Changes each of which alone is enough, the cheapest first; the last that is shown is a fleet asked for less."""
    alone = sorted(
        (way for way in facts["ways_out"] if way["to"] is not None),
        key=lambda way: (way["cost_microusd"] is None, way["cost_microusd"] or 0),
    )
    less = [way for way in alone if _LOADS.fullmatch(way["limit"])]
    others = [way for way in alone if way not in less]
    first = others[: _SHOWN_WAYS - bool(less)]
    return [*first, *less, *others[len(first) :]]


def ways_out_said(document: PlanDocument, facts: Infeasible) -> Said:
    """The cheapest change that is enough, then the others; several changes together where none is enough alone."""
    alone = _enough(facts)
    rows = []
    for way in alone[:_SHOWN_WAYS]:
        cost = "" if way["cost_microusd"] is None else f", then {cost_then(document, way['cost_microusd'])}"
        sure = "" if way["proven"] else " (not proven the least)"
        rows.append(
            (f"{limit_name(document, way['limit'])}: {change(way)}{cost}{sure}", f"{asking(document)} {how(way)}")
        )
    together = facts["combined"]
    if together and not alone:
        texts = [f"{limit_name(document, one['limit'])}: {change(one)}" for one in together["changes"]]
        cost = f", then {cost_then(document, together['cost_microusd'])}"
        command = " ".join([asking(document), *(how(one) for one in together["changes"])])
        rows.append(("; ".join(texts) + cost, command))
    return Said(mark=">", rows=rows, tone="good", most_lines=2)


def _in_the_way(document: PlanDocument, facts: Infeasible) -> Said:
    """What is in conflict, and what else was tried."""
    alone = _enough(facts)
    left = len(facts["ways_out"]) - min(len(alone), _SHOWN_WAYS)
    conflict = [
        limit_name(document, one["name"])
        + (f" ({words.one_of(one['label'])})" if one["label"] != one["name"] else " must run")
        for one in facts["conflict"]
    ]
    notes = [(f"{name}: {_missed(reasons)}",) for name, reasons in facts["workloads"].items() if reasons]
    if conflict:
        head = "cannot hold together" + (", though any fewer of these can" if facts["minimal"] else "")
        head = head if len(conflict) > 1 else "cannot be met even by itself"
        notes.append((f"{head}: {'; '.join(conflict)}",))
    # What was not weighed, and how it would be; requests that no machine would take; and what may be misspelt
    # No limit is in conflict where machines that are owned come too late or leave too soon: they are told, too
    told = _IN_THE_WAY if any(one["label"] != one["name"] for one in facts["conflict"]) else (*_IN_THE_WAY, "owned ")
    notes += [(one,) for one in said.matters(document) if any(word in one for word in told)]
    more = [f"{counted(left, 'other limit')} tried"] if left else []
    more += ["changes of several together"] if facts["combined"] and alone else []
    if more:
        notes.append((f"{' and '.join(more)}: with -v",))
    return Said(mark="!", rows=notes[:4], tone="bad", most_lines=3)


def _missed(reasons: Sequence[str]) -> str:
    """What came nearest; where filters leave nothing, what each of them takes, the last first."""
    few = [words.missed(reason) for reason in reasons[:3]]
    return f"nothing is left to rent: {'; '.join(few)}" if re.match(r"[\d,]+ offers?: ", reasons[0]) else few[0]


def _last(document: PlanDocument, saved: str, launch: str) -> Block:
    """What stands behind it, and what to type next."""
    whole = asking(document, "solve", "-v")
    lines = [f"{said.assumptions(document)}; all of it: {whole}".removeprefix("; ")]
    if not saved:
        return Lines(lines=tuple(lines), commands=True)
    planned = any(rows_of(workload) for workload in document["workloads"])
    following = next_steps(document, saved, launch, planned=planned)
    following.append(asking(document, "live"))
    first, *others = following
    told = (*lines, f"Saved {saved}", f"Next: {first}", *(f"      {line}" for line in others))
    return Lines(lines=told, commands=True)


def render_table(
    document: PlanDocument,
    *,
    width: int = 100,
    colour: bool = False,
    saved: str = "",
    launch: str = "",
    elapsed_s: float | None = None,
    full: bool = False,
    advice: Sequence[Advice] = (),
) -> str:
    """A plan document for a terminal of `width` columns (80 to 120).

    Parameters
    ----------
    document
        The plan.
    width
        Kept within 80 to 120.  [characters]
    colour
        With escape codes for a terminal.
    saved, launch
        The plan's file and the format that launches it; "" where there is none.
    elapsed_s
        How long it took; None = not told.  [s]
    full
        Long lists whole.
    advice
        What would save money: its worth, and the command.
    """
    blocks = plan_blocks(document, saved=saved, launch=launch, elapsed_s=elapsed_s, full=full, advice=advice)
    return text.draw(blocks, width=width, style=text.Style(colour))


def render_plan(document: PlanDocument, form: str, **view: Any) -> str:
    """A plan document as table, json, csv or md; `view` (width, colour, saved ...) is for the table."""
    if form == "json":
        return json.render(document)
    if form == "csv":
        return csv.render_plan(document)
    if form == "md":
        blocks = plan_blocks(document, full=bool(view.get("full")), advice=view.get("advice", ()))
        return markdown.draw(blocks, summary="Prices, assumptions, checks")
    return render_table(document, **view)


def render_first(document: PlanDocument, form: str, **view: Any) -> str:
    """The first screen of a plan as table or md; `view` is that of the screen, with width and colour of the table."""
    if form == "md":
        return markdown.draw(screen_blocks(document, **{k: v for k, v in view.items() if k not in ("width", "colour")}))
    return render_screen(document, **view)


def render_sections(
    document: PlanDocument,
    names: Sequence[str],
    form: str,
    *,
    width: int = 100,
    colour: bool = False,
    full: bool = False,
) -> str:
    """Some sections of a plan as table or md; names are those of `plan_view.SECTIONS`.

    Parameters
    ----------
    document
        The plan.
    names
        In the order in which they are shown.
    form
        table or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    full
        Long lists whole.
    """
    blocks = some_sections(document, names, full)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def quiet(document: PlanDocument) -> str:
    """Total, range and status in one line."""
    return terminal(quiet_line(document)) + "\n"
