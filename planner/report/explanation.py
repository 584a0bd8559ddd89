"""What stands behind a plan, term by term: nothing is computed again, shares aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Headline, Items, Lines, columns
from planner.report.explain_contracts import contract_blocks, contracts_of
from planner.report.explain_limits import answer_blocks, answer_rows, columns_of
from planner.report.explain_serving import rate_line, serving_blocks
from planner.report.explain_training import training_blocks
from planner.report.plan_view import infeasible_blocks

Piece = Mapping[str, Any]


def render_explanation(
    document: Piece,
    form: str,
    *,
    workload: str | None = None,
    rejected: bool = False,
    answers: Piece | None = None,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The terms of every allocation, or why the others were dropped, and what else was asked, in any format.

    CSV is one table: that of what was asked, if anything was.
    """
    chosen = [entry for entry in document["workloads"] if workload in (None, entry["name"])]
    ledgers = {entry["name"]: document["rejected"].get(entry["name"]) for entry in chosen}
    if form == "json":
        return json.render(({"rejected": ledgers} if rejected else _terms(document, chosen)) | dict(answers or {}))
    if form == "csv":
        rows = _rejected_rows(ledgers) if rejected else [row for entry in chosen for row in _term_rows(entry)]
        rows = answer_rows(answers) if answers else rows
        return csv.render(rows, columns_of(rows) if rows else ["workload"])
    blocks = _rejected(ledgers) if rejected else _explained(document, chosen)
    blocks += answer_blocks(document, answers) if answers else []
    if form == "md":
        return markdown.draw(blocks)
    return text.draw(blocks, width=width, style=text.Style(colour))


def _terms(document: Piece, chosen: Sequence[Piece]) -> dict[str, Any]:
    """What an explanation is made of: rows, what they run on, or why there are none."""
    infeasible = {"infeasible": document["infeasible"]} if document["infeasible"] else {}
    contracts = contracts_of(document, [entry["name"] for entry in chosen])
    return {"workloads": list(chosen), **infeasible, **({"contracts": contracts} if contracts else {})}


def _explained(document: Piece, chosen: Sequence[Piece]) -> list[Block]:
    """What contradicts itself, when there is no plan; else why each row is as it is."""
    blocks: list[Block] = []
    if document["infeasible"]:
        head = Headline(word="INFEASIBLE", text=words.proof(document, None), tone="bad")
        blocks = [head, *infeasible_blocks(document)]
    blocks += [block for entry in chosen for block in _why(document, entry)]
    return blocks + contract_blocks(document, [entry["name"] for entry in chosen])


def _why(document: Piece, workload: Piece) -> list[Block]:
    blocks: list[Block] = []
    for row in workload["allocations"]:
        blocks.append(Headline(word="WHY", text=f"{workload['name']} on {row['count']} × {words.offer_of(row)}"))
        blocks += training_blocks(workload, row) if workload["kind"] == "training" else serving_blocks(workload, row)
        blocks.append(Lines(lines=tuple(_facts(document, workload, row))))
    if not workload["allocations"]:
        blocks.append(Headline(word="NOT PLACED", text=workload["name"], tone="bad"))
    checks = tuple(f"{check['text']}  {check['equation']}" for check in workload["cross_check"])
    blocks += [
        Items(title="Because", items=tuple(workload["because"])),
        Items(title="Rules of thumb", items=checks),
        Lines(lines=(f" Equations  {' '.join(workload['equations'])}",) if workload["equations"] else ()),
    ]
    return blocks


def _as_of(row: Piece, shown: str) -> str:
    """The date of a price; what a user states with the question has none."""
    return f"as of {shown}" if row["price_as_of"] else f"as stated{shown}"


def _facts(document: Piece, workload: Piece, row: Piece) -> list[str]:
    price = words.price_row(document, row)
    lines = [
        f" Price   {price[2]} of one {price[0]}, {price[3]}, {_as_of(row, price[4])}, {price[5]}",
        f" Cost    {words.money(document, row['cost_microusd'])} = {row['count']:,} shapes × {row['hours']:,.6g} h",
        f" Device-hours  {row['device_hours']:,.0f}",
    ]
    if row.get("funding") == "reserved":  # its nodes are paid for under contracts, whoever runs on them
        lines = [f" Nodes   {row['count']:,} of {row['reserved_pool']}, paid for under contracts", *lines[2:]]
    if workload["kind"] == "training":
        return lines
    return [rate_line(row), *lines]


def _term_rows(workload: Piece) -> list[dict[str, Any]]:
    """Terms as plain rows, each with its equation where one is known."""
    sources, rows = workload.get("term_sources") or {}, []
    for row in workload["allocations"]:
        head = {"workload": workload["name"], "offer": row["offer"]}
        times = row.get("time_terms_s") or row.get("decode_terms_s") or {}
        for quantity, terms, unit in (("time", times, "s"), ("memory", row["memory"]["terms_bytes"], "B")):
            known = sources.get(quantity, {})
            rows += [
                head
                | {"quantity": quantity, "term": name, "value": value, "unit": unit}
                | {key: known.get(name, {}).get(key, "") for key in ("equation", "source")}
                for name, value in terms.items()
            ]
    return rows


def _rejected(ledgers: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    for name, ledger in ledgers.items():
        if ledger:
            rows = [words.rejected_row(name, entry)[1:] for entry in ledger["reasons"]]
            title = f"Not considered for {words.searched(name, ledger)}"
            blocks.append(Grid(title=title, columns=columns(">Dropped", "Why", "Nearest miss"), rows=rows))
    return blocks


def _rejected_rows(ledgers: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"workload": name} | entry for name, ledger in ledgers.items() if ledger for entry in ledger["reasons"]]
