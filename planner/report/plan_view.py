"""A plan document as blocks: the one place that decides what a reader of a plan sees.

Rendered from the document alone (`plan/result/v1`): nothing is recomputed, so a plan file
from last year reads the same today.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from planner.plan.parts import limit_name, rows_of
from planner.report import certainty_words as bands
from planner.report import plan_words as words
from planner.report import serving_words as serving
from planner.report.alternatives_view import because_lines, elsewhere_lines, others_blocks, uncertain_blocks
from planner.report.blocks import Advice, Block, Grid, Headline, Items, Lines, Said, columns, is_empty, unfolded
from planner.report.next_words import next_steps, ways_out
from planner.report.schedule_view import schedule_blocks
from planner.report.screen_words import matters

if TYPE_CHECKING:
    from planner.plan.model.others import Infeasible
    from planner.plan.model.plan import Allocation, PlanDocument, Workload

SECTIONS = (
    "ways-out",
    "answer",
    "schedule",
    "limits",
    "memory",
    "latency",
    "errors",
    "prices",
    "uncertainty",
    "reasons",
    "alternatives",
    "warnings",
    "assumed",
    "rejected",
    "checks",
    "notes",
)
_SHOWN_REASONS = 3
_SHOWN_ALTERNATIVES = 3


def plan_blocks(
    document: PlanDocument,
    *,
    saved: str = "",
    launch: str = "",
    elapsed_s: float | None = None,
    full: bool = False,
    advice: Sequence[Advice] = (),
) -> list[Block]:
    """Everything worth reading about a plan, most important first.

    Parameters
    ----------
    document
        The plan.
    saved, launch
        The plan's file and the format that launches it; "" where there is none.
    elapsed_s
        How long it took; None = not told.  [s]
    full
        Long lists whole.
    advice
        What would save money: its worth, and the command.
    """
    sections = section_blocks(document, full)
    return [
        plan_header(document),
        headline(document, elapsed_s),
        *(block for blocks in sections.values() for block in blocks),
        Said(mark=">", rows=list(advice), tone="good"),
        _footer(document, saved, launch),
    ]


def section_blocks(document: PlanDocument, full: bool = False) -> dict[str, list[Block]]:
    """The parts of a plan that can be asked for alone, by the name that asks for them, in the order of the whole."""
    found: dict[str, list[Block]] = {name: [] for name in SECTIONS}
    if document["infeasible"]:
        found["ways-out"] = infeasible_blocks(document, document["infeasible"])
    if _allocations(document):
        found |= _answer(document, full)
    return found | {
        "uncertainty": uncertain_blocks(document),
        "reasons": [because_items(document)],
        "alternatives": [
            alternative_grid(document, full),
            named_grid(document),
            _single_kind(document),
            *others_blocks(document),
        ],
        "warnings": [Items(title="Warnings", items=words.merged(document, document["warnings"]), tone="fair")],
        "assumed": [
            Items(title="Assumed (not in the scenario)", items=words.merged(document, document["assumed"]), folded=True)
        ],
        "rejected": [rejected_grid(document, full)],
        "checks": [Items(title="Cross-check, rules of thumb", items=tuple(cross_check_lines(document)), folded=True)],
        "notes": [Items(title="Notes", items=words.merged(document, document["notes"]), folded=True)],
    }


def some_sections(document: PlanDocument, names: Sequence[str], full: bool = False) -> list[Block]:
    """The sections asked for under the name of the plan, none folded away; one that is empty says so.

    Parameters
    ----------
    document
        The plan.
    names
        Of `SECTIONS`, in the order in which they are shown.
    full
        Long lists whole.
    """
    found: list[Block] = [Lines(lines=(plan_title(document),), strong_first=True)]
    sections = section_blocks(document, full)
    # as many as the first screen, which sends here for the rest; in a whole plan some stand in other sections
    sections["warnings"] = [Items(title="Warnings", items=tuple(matters(document)), tone="fair")]
    for name in names:
        blocks = [unfolded(block) for block in sections[name] if not is_empty(block)]
        found += blocks or [Lines(lines=(f" {name}: this plan has none",))]
    return found


def plan_header(document: PlanDocument) -> Block:
    """Name and title, then what the plan was made with."""
    return Lines(lines=(plan_title(document), made_with(document)), strong_first=True)


def made_with(document: PlanDocument) -> str:
    """Catalog, prices and solver, in one line."""
    provenance = document["provenance"]
    catalog = provenance["catalog"]
    threads = provenance["threads"]
    facts = [
        f"catalog {catalog['name']} {catalog['as_of']} (sha256 {catalog['sha256'][:8]}…)",
        *([f"prices of {words.price_days(document)}"] if provenance["prices_as_of"] else []),
        f"solver {provenance['solver']}, {threads} thread{'s' if threads != 1 else ''}",
    ]
    return " · ".join(facts)


def plan_title(document: PlanDocument) -> str:
    """Name, case and title."""
    name = document["name"] + (f" (case {document['case']})" if document["case"] else "")
    return f"{name} · {document['title']}" if document["title"] else name


def headline(document: PlanDocument, elapsed_s: float | None) -> Block:
    """What was proven, and the totals."""
    status = document["status"]
    word = {"infeasible": "INFEASIBLE", "stopped": "NO PLAN", "failed": "NO PLAN"}.get(status, "PLAN")
    tone = {"optimal": "good", "feasible": "fair"}.get(status, "bad")
    return Headline(
        word=word, text=words.proof(document, elapsed_s), right=tuple(words.totals(document)), tone=tone
    )  # fmt: skip


def _allocations(document: PlanDocument) -> list[tuple[Workload, Allocation]]:
    return [(workload, row) for workload in document["workloads"] for row in rows_of(workload)]


def _answer(document: PlanDocument, full: bool) -> dict[str, list[Block]]:
    return {
        "answer": [allocation_grid(document), Lines(lines=tuple(words.shared_lines(document)))],
        "schedule": schedule_blocks(document),
        "limits": [limit_grid(document)],
        "memory": [memory_grid(document)],
        "latency": [
            serving.latency_block(document),
            serving.class_block(document, full),
            serving.simulation_block(document),
            serving.routing_block(document),
        ],
        "errors": [_hours(document), band_grid(document)],
        "prices": [price_grid(document)],
    }


def allocation_grid(document: PlanDocument) -> Grid:
    """The answer: what each workload runs on, how it is split, when it is done, what it costs."""
    return Grid(
        columns=columns("Workload", "Offer", ">Count", ">Devices", "Layout", "Finish / load", ">Cost"),
        rows=[words.allocation_row(document, workload, row) for workload, row in _allocations(document)],
        notes=(words.LEGEND,),
        grouped=True,
    )


def memory_grid(document: PlanDocument) -> Grid:
    """Memory of the fullest device of each allocation."""
    rows = [(workload, row) for workload, row in _allocations(document) if row["memory"]["terms_bytes"]]
    return Grid(
        columns=columns("Memory per device (fullest)", "Device", ">needed", ">usable", ">free", "largest part"),
        rows=_once(words.memory_row(workload, row) for workload, row in rows),
        grouped=True,
    )


def price_grid(document: PlanDocument) -> Grid:
    """What one shape costs by the hour, and where that is from."""
    return Grid(
        columns=columns("Price of one shape", "Offer", ">per hour", "Model", "As of", "Source"),
        rows=_once(words.price_row(document, row) for row in _priced(document)),
        folded=True,
    )


def _priced(document: PlanDocument) -> list[words.Priced]:
    """What has a price by the hour: rows that are not paid for under contracts, and what is bought."""
    rows: list[words.Priced] = [row for _, row in _allocations(document) if row["price_model"] != "reserved"]
    return [*rows, *(words.as_priced(contract) for contract in document.get("contracts", ()))]


def band_grid(document: PlanDocument) -> Grid:
    """How far time, cost and memory may be off, and what is known of it."""
    heads = columns("Error bands (p10 to p90)", "Device", ">Time", ">Cost", ">Memory")
    rows = [bands.band_row(document, workload, row) for workload, row in bands.banded(document)]
    return Grid(columns=heads, rows=_once(rows), notes=tuple(bands.band_notes(document)) if rows else (), grouped=True)


def _once(rows: Iterable[list[str]]) -> list[list[str]]:
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]


def limit_grid(document: PlanDocument) -> Grid:
    """Joint limits with how much of them is used."""
    return Grid(
        columns=columns("Limit", ">used", ">of", "", "Share"),
        rows=[words.limit_row(document, limit) for limit in document["limits"]],
    )


def _hours(document: PlanDocument) -> Block:
    rows = _allocations(document)
    trained = sum(row["device_hours"] for workload, row in rows if workload["kind"] == "training")
    served = sum(row["device_hours"] for workload, row in rows if workload["kind"] == "serving")
    lines = [f" Device-hours  {trained + served:,.0f} (training {trained:,.0f} · serving {served:,.0f})"]
    if emitted := words.carbon_of(document):
        lines.append(f" Carbon        {emitted}")
    for workload in document["workloads"]:
        if workload["kind"] == "serving":
            lines += _once_text(serving.price_lines(document, workload))
            lines += _once_text([serving.availability_line(workload)])
    return Lines(lines=tuple(lines))


def _once_text(lines: Iterable[str]) -> list[str]:
    return [line for line in dict.fromkeys(lines) if line]


def because_items(document: PlanDocument) -> Block:
    """Why the plan is as it is."""
    return Items(title="Because", items=tuple(because_lines(document)))


def named_grid(document: PlanDocument) -> Grid:
    """What becomes of machines that are owned, and of devices and providers that the scenario names."""
    rows = [[one["name"], one["text"]] for one in document.get("named", ())]
    return Grid(columns=columns("Named in the scenario", "What becomes of it"), rows=rows)


def alternative_grid(document: PlanDocument, full: bool) -> Block:
    """The best way of each workload on other devices, alone."""
    rows = []
    for workload in document["workloads"]:
        chosen = {row["device"] for row in workload["allocations"]}
        mixed = len(chosen) > 1  # then each of them alone is another way, too
        others = [other for other in workload["alternatives"] if mixed or other["device"] not in chosen]
        shown = others if full else others[:_SHOWN_ALTERNATIVES]
        rows += [words.alternative_row(document, workload, other) for other in shown]
    title = "Next best, alone" if _allocations(document) else "Each alone could be"
    heads = columns(title, "Device", ">Count", ">Devices", ">Hours", ">Cost", ">dearer", "Note")
    return Grid(columns=heads, rows=rows, grouped=True)


def _single_kind(document: PlanDocument) -> Block:
    """What one kind of device alone costs, and what the same devices cost at other sellers."""
    return Lines(lines=(*words.single_kind(document), *elsewhere_lines(document)))


def rejected_grid(document: PlanDocument, full: bool) -> Grid:
    """What was not considered, why, and what missed narrowly."""
    rows, notes = [], []
    for name, ledger in document["rejected"].items():
        told = [entry for entry in ledger["reasons"] if full or entry["nearest"]]
        shown = told if full else told[:_SHOWN_REASONS]
        rows += [words.rejected_row(name, entry) for entry in shown]
        notes.append(words.searched(name, ledger, [entry for entry in ledger["reasons"] if entry not in shown]))
    heads = columns("Not considered", ">Dropped", "Why", "Nearest miss")
    folded = not document["infeasible"]
    return Grid(columns=heads, rows=rows, notes=tuple(notes), folded=folded, grouped=True)


def cross_check_lines(document: PlanDocument) -> list[str]:
    """Rules of thumb beside the answer, each with its equation."""
    lines = []
    for workload in document["workloads"]:
        for check in workload["cross_check"]:
            lines.append(f"{workload['name']}: {check['text']}  {check['equation']}")
    return lines


def infeasible_blocks(document: PlanDocument, facts: Infeasible) -> list[Block]:
    """What has no way to run, and the limits that cannot hold together."""
    blocks: list[Block] = [
        Items(title=f"No way to run {name}", items=tuple(map(words.missed, reasons)), tone="bad")
        for name, reasons in facts["workloads"].items()
        if reasons
    ]
    conflict = [
        words.conflict_row({**member, "name": limit_name(document, member["name"])}) for member in facts["conflict"]
    ]
    title = (
        "Conflict (smallest set; any fewer of these can be met together)"
        if facts["minimal"]
        else "Conflict (may be smaller)"
    )
    median = Lines(lines=tuple(bands.infeasible_note(facts, document)))
    members = Grid(title=title, columns=columns("Limit", "Asks", "Where"), rows=conflict)
    return [*blocks, members, *ways_out(document, facts), median]


def _footer(document: PlanDocument, saved: str, launch: str) -> Block:
    if not saved:
        return Lines(lines=())
    first, *others = next_steps(document, saved, launch, planned=bool(_allocations(document)))
    told = (f" Saved {saved}", f" Next: {first}", *(f"       {line}" for line in others))
    return Lines(lines=told, commands=True)
