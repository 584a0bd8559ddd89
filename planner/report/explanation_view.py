"""What stands behind a plan, term by term: every figure is a cell of the document, and only shares are worked out here.

Of a training job: time and memory by terms, what binds, what is known of the error. Of a fleet: the replica at its
load, a decode step term by term, latencies, memory, errors. Of what is bought ahead: a node under contract costs the
same however long it is used, a node on demand what it is used. So contract as many nodes as are in use for at least the
share fee / (price on demand) of the time: the newsvendor's quantile (Arrow, Harris and Marschak 1951).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from planner import units
from planner.analysis.why.model import Answers
from planner.plan.model.bought import Contract
from planner.plan.model.fleet import Point, ServingAllocation
from planner.plan.model.others import Rejected
from planner.plan.model.plan import Allocation, PlanDocument, ServingWorkload, TermSource, TrainingWorkload, Workload
from planner.plan.model.rows import TrainingAllocation
from planner.plan.parts import rows_of
from planner.report import certainty_words as bands
from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report import serving_words as serving
from planner.report.blocks import Block, Grid, Headline, Items, Lines, columns
from planner.report.explain_limits import answer_blocks, answer_rows
from planner.report.plan_view import infeasible_blocks, plan_title
from planner.report.schedule_view import KINDS, chains, mean_of, moment
from planner.units import format_number as number

_LINES = 4  # resources that are named


def training_blocks(workload: TrainingWorkload, row: TrainingAllocation) -> list[Block]:
    """The blocks of one row: work and rate, time by term, memory by term, what binds, what is known of the error."""
    return [
        _rate(workload, row),
        time_terms(workload, row),
        memory_terms(workload, row),
        _binding(row),
        _known_of_job(row),
    ]


def _rate(workload: TrainingWorkload, row: TrainingAllocation) -> Block:
    """From work per token to the wall clock."""
    work, demand = row["work"], workload["demand"]
    rate = f"{_four(row['peak_flop_per_s'] / 1e12)} TFLOP/s peak × {100 * row['mfu']:.3g} % MFU, {row['mfu_source']}"
    per_job = row["device_hours"] / row["jobs"]
    left = " left" if demand["progress_tokens"] else ""
    goodput = row["run"]["goodput"]
    rows = [
        ["work per token", f"{_four(work['flop_per_token'] / 1e9)} GFLOP", "6 · P + 3 · attention forward  EQ-FLOP-7"],
        ["total", f"{work['flop_count']:.4g} FLOP", f"× {units.format_count(work['tokens'])} tokens{left}"],
        ["rate per device", f"{_four(work['flop_per_s_per_device'] / 1e12)} TFLOP/s", rate],
        ["device-hours", units.format_number(per_job, 6, apart=True), "of one job" if row["jobs"] > 1 else ""],
        ["wall clock", _hours(row["hours"]), f"÷ {row['devices'] // row['jobs']:,} devices, goodput {goodput:.1%}"],
        *_at_confidence(row),
        ["rule of thumb", _hours(row["rule_hours"]), "13.3 · tokens · size on the same devices  EQ-RULE-3"],
    ]
    return Grid(columns=columns("Work and rate", ">", ""), rows=rows)


def _four(value: float) -> str:
    return units.format_number(value, 4, apart=True)


def _hours(value: float) -> str:
    return f"{units.format_number(value, 5, apart=True)} h"


def _at_confidence(row: TrainingAllocation) -> list[list[str]]:
    band = row["error_band"]
    if not band["time"] or band["time"]["margin"] <= 1.0:
        return []
    name, margin = units.format_percentile(band["confidence"]), band["time"]["margin"]
    if "switch" in row:  # the first part ends by the clock, the second bears what both may be off
        late = f"{_hours(row['start_hours'] + band['hours']['at_confidence'])} after the start of the plan"
        told = "ends at the switch, however much is done" if row["switch"]["part"] == 1 else f"done {late}  EQ-REL-15"
        return [[f"at {name}", _hours(band["hours"]["at_confidence"]), told]]
    return [
        [f"at {name}", _hours(band["hours"]["at_confidence"]), f"× {margin:.4g}, must meet the deadline  EQ-BAND-1"]
    ]


def time_terms(workload: TrainingWorkload, row: TrainingAllocation) -> Block:
    """Terms of the wall time, with equation and source."""
    sources = workload["term_sources"]["time"]
    return terms_grid("Time of the run", row["time_terms_s"], units.format_duration, sources)


def memory_terms(workload: Workload, row: Allocation) -> Block:
    """Terms of the memory of the fullest device, against what is usable."""
    memory = row["memory"]
    sources = workload["term_sources"]["memory"]
    usable = units.format_bytes(memory["usable_bytes"])
    notes = []
    if "error_band" in row and (known := row["error_band"]["memory"]) and known["margin"] > 1.0:
        band = row["error_band"]
        needed = units.format_bytes(band["needed_bytes"]["at_confidence"])
        notes.append(f"{needed} at {units.format_percentile(band['confidence'])}, which must fit  EQ-BAND-1")
    return terms_grid(
        f"Memory of the fullest device, {usable} usable", memory["terms_bytes"], units.format_bytes, sources, notes
    )


def terms_grid(
    title: str,
    terms: Mapping[str, float],
    show: Callable[[float], str],
    sources: Mapping[str, TermSource],
    notes: list[str] | None = None,
) -> Block:
    """Terms that are not zero with their share of the total, equation and source.

    Parameters
    ----------
    title
        Head of the first column.
    terms
        By name, all in one unit.
    show
        A term for people, with its unit.
    sources
        Equation of each term, by its name; the cell is empty where there is none.
    notes
        Lines below the table; None = none.
    """
    total = sum(terms.values())
    rows = [
        [
            words.spaced(name),
            show(value),
            f"{100 * value / total:.1f} %" if total else "",
            cited(sources.get(name)),
        ]
        for name, value in terms.items()
        if value
    ]
    heads = columns(title, ">", ">share", "")
    return Grid(columns=heads, rows=[*rows, ["total", show(total), "", ""]], notes=tuple(notes or ()))


def cited(source: TermSource | None) -> str:
    """An equation and what it is from: "EQ-MEM-1 [Rajbhandari 2020]"."""
    if not source:
        return ""
    return f"{source['equation']} [{source['source']}]" if source["source"] else source["equation"]


def _binding(row: TrainingAllocation) -> Block:
    """What the time is spent on, and how much of deadline, memory and shape is left."""
    items = []
    shares = list(row["binds"].items())[:_LINES]
    items.append("time goes to " + ", ".join(f"{name} {100 * share:.3g} %" for name, share in shares))
    items += [*_deadline_slack(row), *_memory_slack(row)]
    if row["devices_per_shape"] > 1:
        many = row["devices_per_shape"]
        part = f"{many} devices of a node that fleets run on too, its own for all of the plan"
        items.append(part if "shared" in row else f"devices come in shapes of {many}")
    return Items(title="Binding", items=tuple(items))


def _deadline_slack(row: TrainingAllocation) -> list[str]:
    if "switch" in row and row["switch"]["part"] == 1:
        return ["the switch: what is not done by then is done on demand"]
    band = row["error_band"]
    late = bands.late_hours(row)
    slack_s = (row["deadline_hours"] - late) * 3600.0
    at = f" at {units.format_percentile(band['confidence'])}" if late > row["finish_hours"] else ""
    return [f"deadline: {units.format_duration(max(slack_s, 0.0))} of slack{at}"]


def _memory_slack(row: TrainingAllocation) -> list[str]:
    memory, band = row["memory"], row["error_band"]
    needed = band["needed_bytes"]["at_confidence"]
    at = f" at {units.format_percentile(band['confidence'])}" if needed > memory["needed_bytes"] else ""
    return [f"memory: {units.format_bytes(max(memory['usable_bytes'] - needed, 0.0))} free{at}"]


def _known_of_job(row: TrainingAllocation) -> Block:
    """The error of the family behind the figures."""
    band = row["error_band"]
    items = [bands.known_from(row)]
    for what in ("time", "memory"):
        if known := band[what]:
            ratios = ", ".join(f"{name} {known[name]:.3g}" for name in ("p10", "p50", "p90"))
            items.append(f"{what}: measured over predicted {ratios}, on {known['rows']} rows that were not fitted to")
    return Items(title="Known error", items=tuple(items))


_PERCENTILES: Final = ("mean", "p50", "p90", "p95", "p99")


def serving_blocks(workload: ServingWorkload, row: ServingAllocation) -> list[Block]:
    """The blocks of one row."""
    sources = workload["term_sources"]["time"]
    point = row["point"]
    title = "Time of one decode step" + (f" of {number(point['sequences'])} sequences" if point else "")
    step = [terms_grid(title, row["decode_terms_s"], serving.seconds, sources)] if row["decode_terms_s"] else []
    predicted = [_load(row, point), _latencies(point), _classes(point)] if point else []
    if not row["memory"]["terms_bytes"]:  # rates given: nothing else is known
        return predicted
    return [*predicted, *step, memory_terms(workload, row), _known_of_fleet(row)]


def rate_line(row: ServingAllocation) -> str:
    """What a replica takes at most."""
    batch = "" if row["batch"] is None else f", batch {number(row['batch'], 4, apart=True)}"
    made = row["output_tokens_per_s_per_replica"]
    tokens = "" if made is None else f" and {number(made, 4, apart=True)} tokens/s"
    rate = number(row["replica_requests_per_s"], 4)
    return f" Rate    {rate} requests/s{tokens} a replica{batch}; bound by {row['binds']}"


def _load(row: ServingAllocation, point: Point) -> Block:
    """One replica at the peak that is planned for it."""
    rows = [
        ["requests", f"{number(point['requests_per_s'], 4)} /s",
         f"of {number(point['capacity_requests_per_s'], 4)} /s within every target; sized by {point['sized_by']}"],
        ["tokens of a request",
         " + ".join(number(point[name], 4, apart=True) for name in ("input_tokens", "output_tokens")),
         f"{number(point['output_tokens_per_s'], 4, apart=True)} output tokens/s"],
        ["running sequences", number(point['sequences']),
         f"of {number(point['batch_limit'], 4, apart=True)} that {point['batch_limit_by'].replace('_', ' ')} allows"],
        ["prefill", f"{100 * point['prefill_share']:.3g} %",
         f"of the engine's time; {serving.seconds(point['prefill_s'])} each"],
    ]  # fmt: skip
    if "users" in point:
        most = f"of {number(row['replica_users'], 4, apart=True)} that it may serve; what they send as often as not:"
        rows.insert(0, ["users", number(point["users"], 4, apart=True), most])
    return Grid(columns=columns("One replica at peak", ">", ""), rows=rows)


def _latencies(point: Point) -> Block:
    later = [("time per output token", point["tpot_s"])] if serving.goes_on(point) else []
    named = [("time to first token", point["ttft_s"]), *later, ("whole request", point["e2e_s"])]
    rows = [[name, *(serving.seconds(latency[part]) for part in _PERCENTILES)] for name, latency in named]
    spaced = f"99 % of single tokens come within {serving.seconds(point['itl_p99_s'])} of the one before"
    notes = [spaced] if later else []
    for target in point["targets"]:
        figures = (target["at_confidence_s"], target["target_s"])
        stated, limit = (serving.seconds(value) for value in figures)
        notes.append(f"{serving.target_name(target['name'])}: {stated} of {limit} at the confidence asked for")
    return Grid(columns=columns("Latency", *(f">{name}" for name in _PERCENTILES)), rows=rows, notes=tuple(notes))


def _classes(point: Point) -> Block:
    """Each class of requests at its own percentiles: a line a class, a column a target."""
    classes = point.get("classes", [])
    first = classes[0]["targets"] if classes else []
    named = [f">{serving.target_name(one['name'])}, at most {serving.seconds(one['most_s'])}" for one in first]
    rows = [
        [one["name"], *(serving.seconds(target["at_confidence_s"]) for target in one["targets"])] for one in classes
    ]
    return Grid(columns=columns("Each class, at confidence", *named), rows=rows if named else [])


def _known_of_fleet(row: ServingAllocation) -> Block:
    """What predicts, with the error that it showed."""
    return Items(title="Known error", items=(serving.tier_words(row["tier"]),) if row["point"] else ())


def contracts_of(document: PlanDocument, workloads: Sequence[str]) -> list[Contract]:
    """What is bought for the pools that some workloads run on."""
    schedule = document.get("schedule")
    shares = schedule["shares"] if schedule else []
    pools = {share["pool"] for share in shares if share["workload"] in workloads}
    return [one for one in document.get("contracts", []) if one["pool"] in pools]


def contract_blocks(document: PlanDocument, workloads: Sequence[str]) -> list[Block]:
    """What stands behind the contracts of the pools that some workloads run on; nothing without contracts."""
    mine = [one for one in contracts_of(document, workloads) if one["kind"] != "on_demand"]
    if not mine:
        return []
    reasons = tuple(line for chain in chains(mine) for line in _reasons(document, chain))
    return [_quantiles(mine), Items(title="Why these contracts", items=tuple(dict.fromkeys(reasons)))]


def _quantiles(contracts: Sequence[Contract]) -> Block:
    rows = [
        [
            chain[0]["pool"],
            _kind(chain),
            f"{moment(chain[0]['start_hours'])} → {moment(chain[-1]['end_hours'])}",
            *(_percent(mean_of(chain, name)) for name in ("last_node_share", "break_even_share", "next_node_share")),
        ]
        for chain in chains(contracts)
    ]
    heads = columns("Pool", "Contract", "From → to", ">Last node in use", ">Even at", ">One more would be")
    return Grid(title="Load against fee", columns=heads, rows=rows, grouped=True)


def _kind(chain: Sequence[Contract]) -> str:
    many = f"{len(chain)} × " if len(chain) > 1 else ""
    return many + str(KINDS.get(chain[0]["kind"], chain[0]["kind"]))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _reasons(document: PlanDocument, chain: Sequence[Contract]) -> Iterator[str]:
    """One sentence a contract, or a row of them: what the last node does, and what one more would do."""
    even = mean_of(chain, "break_even_share")
    last, more = mean_of(chain, "last_node_share") or 0.0, mean_of(chain, "next_node_share") or 0.0
    nodes = f"{chain[0]['count']} node" + ("s" if chain[0]["count"] > 1 else "")
    head = f"{chain[0]['pool']}, {nodes}, {_kind(chain)}"
    if even is None:
        yield f"{head}: nobody sells such nodes on demand there, so whoever runs there needs a contract"
        return
    cost = words.money(document, sum(one["cost_microusd"] for one in chain))
    rented = words.money(document, sum(one["on_demand_microusd"] or 0 for one in chain))
    pays = "pays" if last >= even else "does not pay by itself"
    yield (
        f"{head}: fee / price on demand is {_percent(even)}; all contracted nodes are in use {_percent(last)} of the "
        f"time, so the last one {pays}; {cost} for what would be {rented} on demand"
    )
    if more > 0:
        would = "would not pay" if more < even else "would pay by this rule, but other limits or terms stand against it"
        yield f"{head}: one node more would be in use {_percent(more)} of the time, so it {would}"


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
        return csv.render(rows, csv.columns_of(rows) if rows else ["workload"])
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
        by = "device-hours" if "jobs" in row else "devices"
        lines[1] = f" Cost    {words.money(document, row['cost_microusd'])}, by its {by}, of nodes that it shares"
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
