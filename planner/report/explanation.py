"""What stands behind a plan, term by term: nothing is computed again, shares aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.analysis.why.model import Answers
from planner.plan.model.others import Rejected
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, TermSource, Workload
from planner.plan.parts import rows_of
from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Headline, Items, Lines, columns
from planner.report.explain_contracts import contract_blocks, contracts_of
from planner.report.explain_limits import answer_blocks, answer_rows, columns_of
from planner.report.explain_serving import rate_line, serving_blocks
from planner.report.explain_training import training_blocks
from planner.report.plan_view import infeasible_blocks, plan_title

Row = dict[str, object]


def render_explanation(
    document: PlanDocument,
    form: str,
    *,
    workload: str | None = None,
    rejected: bool = False,
    answers: Answers | None = None,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The terms of every allocation, or why the others were dropped, and what else was asked, in any format.

    CSV is one table: that of what was asked, if anything was.

    Parameters
    ----------
    document
        The plan.
    form
        table, json, csv or md.
    workload
        Only this one; `answers` are told whole. None = all.
    rejected
        Why other ways were dropped, in place of the terms.
    answers
        What else was asked; None or empty = nothing.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    chosen = [entry for entry in document["workloads"] if workload in (None, entry["name"])]
    ledgers = {entry["name"]: document["rejected"].get(entry["name"]) for entry in chosen}
    if form == "json":
        return json.render(({"rejected": ledgers} if rejected else _terms(document, chosen)) | {**(answers or {})})
    if form == "csv":
        rows = _rejected_rows(ledgers) if rejected else [row for entry in chosen for row in _term_rows(entry)]
        rows = answer_rows(answers) if answers else rows
        return csv.render(rows, columns_of(rows) if rows else ["workload"])
    blocks = explanation_blocks(document, workload=workload, rejected=rejected, answers=answers)
    if form == "md":
        return markdown.draw(blocks)
    return text.draw(blocks, width=width, style=text.Style(colour))


def explanation_blocks(
    document: PlanDocument, *, workload: str | None = None, rejected: bool = False, answers: Answers | None = None
) -> list[Block]:
    """What `render_explanation` draws: what was asked, alone; without a question of its own what stands behind all.

    Parameters
    ----------
    document
        The plan.
    workload
        Only this one; `answers` are told whole. None = all.
    rejected
        Why other ways were dropped, in place of the terms.
    answers
        What else was asked; None or empty = nothing.
    """
    if answers and not rejected and not document["infeasible"]:
        return [
            Lines(lines=(plan_title(document), _total(document)), strong_first=True),
            *answer_blocks(document, answers),
        ]
    chosen = [entry for entry in document["workloads"] if workload in (None, entry["name"])]
    ledgers = {entry["name"]: document["rejected"].get(entry["name"]) for entry in chosen}
    blocks = _rejected(ledgers) if rejected else _explained(document, chosen)
    return blocks + (answer_blocks(document, answers) if answers else [])


def _total(document: PlanDocument) -> str:
    """What the plan costs that answers are held against, and how sure that is."""
    cost = document["summary"]["cost_microusd"]
    return (
        f"{words.money(document, cost)}, {words.proof(document, None)}"
        if cost is not None
        else words.proof(document, None)
    )


def _terms(document: PlanDocument, chosen: Sequence[Workload]) -> dict[str, object]:
    """What an explanation is made of: rows, what they run on, or why there are none."""
    infeasible = {"infeasible": document["infeasible"]} if document["infeasible"] else {}
    contracts = contracts_of(document, [entry["name"] for entry in chosen])
    return {"workloads": list(chosen), **infeasible, **({"contracts": contracts} if contracts else {})}


def _explained(document: PlanDocument, chosen: Sequence[Workload]) -> list[Block]:
    """What contradicts itself, when there is no plan; else why each row is as it is."""
    blocks: list[Block] = []
    if document["infeasible"]:
        head = Headline(word="INFEASIBLE", text=words.proof(document, None), tone="bad")
        blocks = [head, *infeasible_blocks(document, document["infeasible"])]
    blocks += [block for entry in chosen for block in _why(document, entry)]
    return blocks + contract_blocks(document, [entry["name"] for entry in chosen])


def _why(document: PlanDocument, workload: Workload) -> list[Block]:
    blocks: list[Block] = []
    if workload["kind"] == "training":
        for job in workload["allocations"]:
            blocks += [_head(workload, job), *training_blocks(workload, job), *_facts(document, job)]
    else:
        for fleet in workload["allocations"]:
            blocks += [_head(workload, fleet), *serving_blocks(workload, fleet), *_facts(document, fleet)]
    if not workload["allocations"]:
        blocks.append(Headline(word="NOT PLACED", text=workload["name"], tone="bad"))
    checks = tuple(f"{check['text']}  {check['equation']}" for check in workload["cross_check"])
    blocks += [
        Items(title="Because", items=tuple(workload["because"])),
        Items(title="Rules of thumb", items=checks),
        Lines(lines=(f" Equations  {' '.join(workload['equations'])}",) if workload["equations"] else ()),
    ]
    return blocks


def _head(workload: Workload, row: Allocation) -> Block:
    return Headline(word="WHY", text=f"{workload['name']} on {words.rented_as(row)}")


def _as_of(row: Allocation, shown: str) -> str:
    """The date of a price; what a user states with the question has none."""
    return f"as of {shown}" if row["price_as_of"] else f"as stated{shown}"


def _facts(document: PlanDocument, row: Allocation) -> list[Block]:
    price = words.price_row(document, row)
    lines = [
        f" Price   {price[2]} of one {price[0]}, {price[3]}, {_as_of(row, price[4])}, {price[5]}",
        f" Cost    {words.money(document, row['cost_microusd'])} = {row['count']:,} shapes × {_billed(row)}",
        f" Device-hours  {row['device_hours']:,.0f}",
    ]
    if "shared" in row:
        lines[1] = f" Cost    {words.money(document, row['cost_microusd'])}, by its devices, of nodes that it shares"
    if row.get("funding") == "reserved":  # its nodes are paid for under contracts, whoever runs on them
        lines = [f" Nodes   {row['count']:,} of {row['reserved_pool']}, paid for under contracts", *lines[2:]]
    return [Lines(lines=tuple(lines if "mfu" in row else [rate_line(row), *lines]))]


def _billed(row: Allocation) -> str:
    """The hours that are paid for: boot, billing steps and shortest rentals come on top of those of work."""
    billed: float = row.get("billed_hours") or row["hours"]  # type: ignore[assignment]
    more = f" billed, for {row['hours']:,.6g} h of work" if billed != row["hours"] else ""
    return f"{billed:,.6g} h{more}"


def _term_rows(workload: Workload) -> list[Row]:
    """Terms as plain rows, each with its equation where one is known."""
    sources, found = workload["term_sources"], []
    unknown: TermSource = {"equation": "", "source": ""}
    for row in rows_of(workload):
        times = row["time_terms_s"] if "time_terms_s" in row else row["decode_terms_s"]
        for quantity, terms, unit, known in (
            ("time", times, "s", sources["time"]),
            ("memory", row["memory"]["terms_bytes"], "B", sources["memory"]),
        ):
            head: Row = {"workload": workload["name"], "offer": row["offer"], "quantity": quantity}
            found += [
                head | {"term": name, "value": value, "unit": unit, **known.get(name, unknown)}
                for name, value in terms.items()
            ]
    return found


def _rejected(ledgers: Mapping[str, Rejected | None]) -> list[Block]:
    blocks: list[Block] = []
    for name, ledger in ledgers.items():
        if ledger:
            rows = [words.rejected_row(name, entry)[1:] for entry in ledger["reasons"]]
            title = f"Not considered for {words.searched(name, ledger)}"
            blocks.append(Grid(title=title, columns=columns(">Dropped", "Why", "Nearest miss"), rows=rows))
    return blocks


def _rejected_rows(ledgers: Mapping[str, Rejected | None]) -> list[Row]:
    return [{"workload": name, **entry} for name, ledger in ledgers.items() if ledger for entry in ledger["reasons"]]
