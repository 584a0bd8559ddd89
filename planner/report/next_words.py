"""What to do next, in words: commands to type, and the ways out of a scenario that no plan meets.

A command asks the very question of the document that it is told of. Every option on which the answer depends is in the
document, so that what is said of a plan does not hang on who made it: the command line, the library, or a file from
last year. Ways out have a line each, with the cheapest combination.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from planner import units
from planner.candidates.program import SHARE
from planner.catalog.reading import is_date
from planner.plan.parts import limit_name
from planner.plan.plan_files import needs_outside, outside
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, columns
from planner.scenario.shipped import name_here
from planner.units import format_number as number

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import FrontierDocument
    from planner.plan.model.others import Change, Combined, Infeasible, WayOut
    from planner.plan.model.plan import PlanDocument


AGAIN = "again.plan.json"
Flag = tuple[str, str]  # an option and its value; "" of one that has none
OUTSIDE: Flag = ("--allow-outside", "")


def asking(document: PlanDocument, verb: str = "solve", *more: str) -> str:
    """The command that asks the same question, with more options: "plan solve llama --set ...".

    Parameters
    ----------
    document
        The plan.
    verb
        solve, report or live: options that it does not have are left out.
    more
        Words that follow.
    """
    flags = [*_question(document, document.get("settings", ()))]
    flags += [flag for flag, verbs in _precision(document) if verb in verbs]
    flags += [OUTSIDE] if needs_outside(document) else []
    return shlex.join(["plan", verb, name_here(document["scenario_file"]), *_words(flags), *more])


def asking_at_loosest(document: FrontierDocument) -> str:
    """The `plan solve` of a frontier's question at the loosest limit."""
    flags = _question(document, document["sweep"].get("loosest", ()))
    return shlex.join(["plan", "solve", name_here(document["scenario_file"]), *_words(flags)])


def asking_report(document: PlanDocument, *more: str) -> str:
    """What makes a report of the same plan: `plan report` alone where it has all the options that takes."""
    if all("report" in verbs for _, verbs in _precision(document)):
        return asking(document, "report", *more)
    return f"{asking(document, 'solve', '--out', AGAIN)} && {of_plan(document, AGAIN, 'report', *more)}"


def of_plan(document: PlanDocument, saved: str, verb: str, *more: str, form: str = "") -> str:
    """A command of a plan file: "plan export vllm .plan/llama.plan.json".

    The catalog and the prices that a plan names are read again where they lie in the working folder; else the command
    names them.
    """
    flags = _catalog(document)
    files = [value for name, value in flags if name != "--price" and not is_date(value)]
    again = _words(flags) if any(map(outside, files)) else []
    again += _words([OUTSIDE]) if needs_outside(document, from_here=True) else []
    return shlex.join(["plan", verb, *([form] if form else []), saved, *more, *again])


def next_steps(document: PlanDocument, saved: str, launch: str = "", *, planned: bool) -> list[str]:
    """What to type next of a plan that was saved.

    Parameters
    ----------
    document
        The plan.
    saved
        Its file.
    launch
        The format that launches it; "" where there is none.
    planned
        Whether anything is rented or used.
    """
    if not planned:
        return [of_plan(document, saved, "explain", "--rejected")]
    steps = [of_plan(document, saved, "explain"), of_plan(document, saved, "report", "-o", "html")]
    return [*steps, *([of_plan(document, saved, "export", form=launch)] if launch else [])]


def _question(document: PlanDocument | FrontierDocument, settings: Iterable[str]) -> list[Flag]:
    flags: list[Flag] = [("--case", document["case"])] if document["case"] else []
    return [*flags, *(("--set", setting) for setting in settings), *_catalog(document)]


def _words(flags: list[Flag]) -> list[str]:
    return [str(word) for flag in flags for word in flag if word]


def _catalog(document: PlanDocument | FrontierDocument) -> list[Flag]:
    """Which catalog, at which prices: as they were named on the command line."""
    catalog = document["provenance"]["catalog"]
    folder = catalog.get("hardware", "")
    own = [flag.partition(" ") for flag in catalog.get("own_prices", ())]
    return [*([("--hardware", folder)] if folder else []), *((name, value) for name, _, value in own)]


def _precision(document: PlanDocument) -> Iterator[tuple[Flag, tuple[str, ...]]]:
    """What else the answer depends on, or was asked for beside it, and which commands have the option."""
    certificate, ties, others = document["certificate"], document.get("ties"), document.get("others")
    if certificate is not None and certificate["allow_suspect"]:
        yield ("--allow-suspect", ""), ("solve", "report", "live")
    if gap := document["provenance"]["gap_asked"]:
        yield ("--gap", _share(gap)), ("solve", "report")
    if ties is not None and ties["tolerance"] != SHARE:
        yield ("--tie-tolerance", _share(ties["tolerance"])), ("solve", "live")
    if document.get("simulation") is not None:
        yield ("--simulate", ""), ("solve",)
    if others is None:
        return
    near, previous = others["near_optimal"], others["previous"]
    if others["decisions"]:
        yield ("--best", str(others["decisions"]["asked"])), ("solve",)
    if within := near["share"] if near else previous and previous["share"]:
        yield ("--within", _share(within)), ("solve",)
    if previous and "file" in previous:
        yield ("--previous", previous["file"]), ("solve",)
        if previous["move_usd"] is not None:
            yield ("--move-cost", f"${previous['move_usd']:.6f}".rstrip("0").rstrip(".")), ("solve",)


def _share(share: float) -> str:
    return f"{100 * share:.12g}%"


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
