"""What to reserve and what to rent, in every output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner import units
from planner.analysis.reserve.model import ASKED_HOURS, BreakEven, Otherwise, ReserveDocument, Started, Term, Together
from planner.estimate.market import OWN_CONTRACT
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Headline, Lines, columns, warned
from planner.report.schedule_view import TERMS

SHOWN = 12  # break-evens in a table; the rest is in json and csv
NAMES = {**TERMS, "block": "blocks"}
FUTURES = {"demand": "30 % less demand", "price": "prices 30 % lower", "end": "over half-way"}


def render_reserve(
    document: ReserveDocument, form: str, *, width: int = 100, colour: bool = False, elapsed_s: float | None = None
) -> str:
    """A reserve document as table, json, csv (break-evens) or md.

    Parameters
    ----------
    document
        What to reserve and what to rent.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    elapsed_s
        How long it took; None = not told.  [s]
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        rows: list[dict[str, object]] = [{**row} for row in document["break_evens"]]
        return csv.render(rows, list(BreakEven.__annotations__))
    blocks = reserve_blocks(document, elapsed_s=elapsed_s)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def reserve_blocks(document: ReserveDocument, *, elapsed_s: float | None = None) -> list[Block]:
    """The decision first, then what it costs when things turn out otherwise, then where commitments break even."""
    blocks: list[Block] = [_title(document), _headline(document, elapsed_s)]
    if document["terms"]:
        blocks.append(_decisions(document["terms"], document["not_held"]))
    if document["together"]:
        blocks.append(_together(document["together"]))
    if any(term["otherwise"] for term in document["terms"]):
        blocks.append(_futures(document["terms"]))
    blocks.append(warned(document["warnings"]))
    if document["break_evens"]:
        blocks.append(_break_evens(document["break_evens"]))
    return blocks


def _title(document: ReserveDocument) -> Block:
    name = f"{document['name']} · {document['title']}" if document["title"] else document["name"]
    catalog = document["catalog"]
    facts = f"catalog {catalog['name']} {catalog['as_of']} (sha256 {catalog['sha256'][:8]}…)"
    return Lines(lines=(name, facts), strong_first=True)


def _headline(document: ReserveDocument, elapsed_s: float | None) -> Block:
    seconds = f" ({elapsed_s:.1f} s)" if elapsed_s is not None else ""
    if not document["break_evens"]:
        return Headline(word="RENT", text=f"nothing that is allowed can be committed to{seconds}", tone="fair")
    unmet = [NAMES[term["price_model"]] for term in document["terms"] if term["status"] == "infeasible"]
    if unmet and len(unmet) == len(document["terms"]):
        why = f"nothing meets every limit over {' or '.join(unmet)}: plan solve says what is in the way"
        return Headline(word="INFEASIBLE", text=f"{why}{seconds}", tone="bad")
    paying = [term for term in document["terms"] if term["reserved"] and (term["saved_microusd"] or 0) > 0]
    needed = [term for term in document["terms"] if term["reserved"] and term["on_demand_microusd"] is None]
    if needed and not paying:
        only = min(needed, key=lambda term: term["cost_microusd"] or 0)
        what = f"{_nodes(only)} for {NAMES[only['price_model']]}, {_money(only['cost_microusd'])} in all"
        why = "no plan was found that rents everything"
        return Headline(word="RESERVE", text=f"{what}: {why}{seconds}", tone="fair")
    if not paying:
        over = _own_days(document["terms"]) or "its own term"
        return Headline(word="RENT", text=f"no commitment saves anything over {over}{seconds}", tone="good")
    best = max(paying, key=lambda term: _share(term) or 0.0)
    saved = f"saves {units.format_money(best['saved_microusd'] or 0)}, {_share(best):.0%} of renting"
    over = f" over {days}" if (days := _own_days([best])) else ""
    return Headline(
        word="RESERVE",
        text=f"{_nodes(best)} for {NAMES[best['price_model']]} {saved}{over}{seconds}",
        tone="good" if best["proven"] else "fair",
    )


def _own_days(terms: list[Term]) -> str:
    """The scenario's horizon where terms are held against that, and not against their own length; else nothing."""
    own = [term["term_hours"] for term in terms if term["term_hours"] != ASKED_HOURS[term["price_model"]]]
    return f"the scenario's own {own[0] / 24:,.0f} days" if own else ""


def _share(term: Term) -> float | None:
    before, saved = term["on_demand_microusd"], term["saved_microusd"]
    return saved / before if before and saved is not None else None


def _nodes(term: Term) -> str:
    """What is reserved; contracts alike, which follow one another in a calendar, are counted."""
    alike = Counter(f"{row['nodes']} × {row['shape']} in {row['region']}" for row in term["reserved"])
    return ", ".join(f"{count} contracts of {text}" if count > 1 else text for text, count in alike.items())


def _decisions(terms: list[Term], not_held: list[str]) -> Block:
    rows = []
    for term in terms:
        share = _share(term)
        rows.append(
            [
                NAMES[term["price_model"]],
                _nodes(term) or "nothing",
                _money(term["on_demand_microusd"]),
                _money(term["cost_microusd"]),
                "" if share is None else f"{_money(term['saved_microusd'])} ({share:.0%})",
                "yes" if term["proven"] else term["status"],
            ]
        )
    heads = columns("Term", "Reserve", ">All rented", ">With it", ">Saves", "Proven")
    notes = ["the load of fleets goes on for the whole term; what is not reserved is rented"]
    if days := _own_days(terms):
        notes = [f"over {days}, since it has periods: without them the load of fleets would go on for the whole "
                 "term; what is not reserved is rented"]  # fmt: skip
    if not_held:
        notes.append(f"not held, being of the scenario's own horizon: {', '.join(not_held)}")
    return Grid(title="What to reserve", columns=heads, rows=rows, notes=tuple(notes))


def _in_turn(reserved: Sequence[Started]) -> list[list[Started]]:
    """What is bought, each with the same again that begins where it ends: a year of weekly blocks."""
    runs: list[list[Started]] = []
    for row in reserved:
        for run in runs:
            last = run[-1]
            same = all(last[key] == row[key] for key in ("offer", "nodes", "term_hours"))
            if same and abs(last["start_hours"] + last["term_hours"] - row["start_hours"]) < 1e-6:
                run.append(row)
                break
        else:
            runs.append([row])
    return runs


def _together(found: Together) -> Block:
    rows = [
        [
            f"{first['nodes']} × {first['shape']} in {first['region']}",
            NAMES.get(first["price_model"], first["price_model"]),
            first["start_date"] or (f"hour {first['start_hours']:,.0f}" if first["start_hours"] else "the begin"),
            units.counted(round(first["term_hours"] / 24), "day") + (f", {len(run)} in turn" if len(run) > 1 else ""),
            _money(sum(row["fee_microusd"] for row in run)),
            "" if first["used"] is None else f"{sum(row['used'] or 0.0 for row in run) / len(run):.0%}",
        ]
        for run in _in_turn(found["reserved"])
        for first in run[:1]
    ]
    over = f"over {found['horizon_hours'] / 24:,.0f} days, decided every {found['period_hours'] / 24:,.0f}"
    if found["saved_microusd"] is None or found["on_demand_microusd"] is None:
        note = f"{over}: {found['status']}"
    else:
        saved = f"{_money(found['cost_microusd'])} against {_money(found['on_demand_microusd'])} all rented"
        note = f"{over}: {saved}, {'proven' if found['proven'] else found['status']}"
    heads = columns("All terms together", "Kind", "From", ">For", ">Fee", ">Used")
    return Grid(
        title="All terms and starts at once", columns=heads, rows=rows or [["nothing", *[""] * 5]], notes=(note,)
    )


def _futures(terms: list[Term]) -> Block:
    rows = [[NAMES[term["price_model"]], *_future(one)] for term in terms for one in term["otherwise"]]
    heads = columns("Term", "If it turns out", ">All rented", ">Reserved", ">Reserving costs")
    notes = ["reserved: the fees, and what else has to be rented then"]
    if any("" in row for row in rows):
        notes.append(
            "blank: not met then, or not asked: rates of a file or of several futures, deadlines beyond half of a "
            "calendar, what is reserved for a part of it alone"
        )
    return Grid(title="When it turns out otherwise", columns=heads, rows=rows, notes=tuple(notes))


def _future(one: Otherwise) -> list[str]:
    rented, kept = one["on_demand_microusd"], one["reserved_microusd"]
    more = kept - rented if kept is not None and rented is not None else None
    said = "" if more is None else f"{_money(abs(more))} {'more' if more > 0 else 'less'}"
    return [FUTURES[one["happens"]], _money(rented), _money(kept), said]


def _break_evens(found: list[BreakEven]) -> Block:
    best: dict[tuple[str, str, str], BreakEven] = {}
    for row in found:  # that which needs the least use first
        best.setdefault((row["provider"], row["device"], row["price_model"]), row)
    rows = [
        [
            row["device"],
            row["provider"],
            row["contract"] or ("your contract" if row["offer"].startswith(OWN_CONTRACT) else ""),
            units.counted(round(row["term_hours"] / 24), "day"),
            f"{units.format_money(row['price_microusd_per_hour'])} /h",
            _money(row["on_demand_microusd_per_hour"]) + (" /h" if row["on_demand_microusd_per_hour"] else ""),
            "not rented there" if row["use"] is None else f"{row['use']:.0%}",
            f"{row['shape'].partition('/')[2]} {row['region']}",
        ]
        for row in list(best.values())[:SHOWN]
    ]
    heads = columns("Device", "Provider", "Kind", ">Term", ">Price", ">On demand", ">Even at", "Of a")
    notes = ["even at: share of the term above which a node is cheaper so than on demand at the same provider"]
    if len(found) > len(rows):
        notes.append(f"the best of each; {len(found) - len(rows):,} more in -o json and -o csv")
    return Grid(title="Break-even", columns=heads, rows=rows, notes=tuple(notes))


def _money(microusd: int | None) -> str:
    return "" if microusd is None else units.format_money(microusd)
