"""What limits are worth, what other devices would have to cost, why not this one: answers as blocks and rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

from planner import units
from planner.analysis.why.model import (
    Answers,
    BreakEvenRow,
    ComparedWith,
    LayoutPlan,
    LayoutPrice,
    MarginalValue,
    WhyNot,
    WithinNoLimits,
)
from planner.plan.model.plan import Allocation, PlanDocument
from planner.plan.parts import limit_name
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Headline, Lines, columns
from planner.units import format_number as number

AS_WRITTEN = (
    "asked of the scenario as written alone, with contracts of its own: not of the other cases of its uncertainty, "
    "nor beside the plan for all of them"
)
_LINES = 3  # plans with a device have a line for each row, up to so many


def answer_blocks(document: PlanDocument, answers: Answers) -> list[Block]:
    """Blocks for whatever was asked: `marginal_values`, `break_even`, `why_not`."""
    blocks: list[Block] = [Lines(lines=(AS_WRITTEN,))] if document.get("uncertainty") else []
    if "marginal_values" in answers:
        blocks.append(_limits(document, answers["marginal_values"]))
    if "break_even" in answers:
        blocks.append(_break_even(document, answers["break_even"]))
    for entry in answers.get("why_not", ()):
        blocks += _why_not(document, entry)
    for price in answers.get("layouts", ()):
        blocks += _layout(document, price)
    return blocks


def answer_rows(answers: Answers) -> list[dict[str, object]]:
    """The same as flat rows, for CSV."""
    values = [{"answer": "marginal value", **row} for row in answers.get("marginal_values", ())]
    prices = [{"answer": "break-even", **row} for row in answers.get("break_even", ())]
    reasons = [
        {"answer": "why not", **{key: _flat(value) for key, value in row.items() if key != "rows"}}
        for row in answers.get("why_not", ())
    ]
    layouts = [
        {"answer": "layout", "workload": one["workload"], "layout": one["layout"], "where": where, **told}
        for one in answers.get("layouts", ())
        for where, told in _layout_rows(one)
    ]
    return [*values, *prices, *reasons, *layouts]


def _flat(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _limits(document: PlanDocument, rows: Sequence[MarginalValue]) -> Block:
    """What one step more of each limit saves."""
    cells = [
        [
            limit_name(document, row["limit"]),
            row["from_text"],
            "binding" if row["binding"] else "",
            row["step_text"],
            _saves(document, row),
        ]
        for row in rows
    ]
    notes = ("each solved again with that one setting changed; a second step may be worth something else",)
    heads = columns("LIMITS", ">Now", "", "One step more", "Saves")
    return Grid(columns=heads, rows=cells, notes=notes if rows else ("the scenario states no limit",))


def _saves(document: PlanDocument, row: MarginalValue) -> str:
    if row["value_microusd"] is None:
        return "not solved"
    unproven = "" if row["proven"] else " (not proven)"
    return words.money(document, row["value_microusd"]) + unproven if row["value_microusd"] else "nothing" + unproven


def _break_even(document: PlanDocument, rows: Sequence[BreakEvenRow]) -> Block:
    """What forcing each other device costs, and the price at which it would be chosen."""
    cells = [
        [
            row["device"],
            _regret(document, row),
            _per_hour(document, row["price_usd_per_device_hour"]),
            _per_hour(document, row["break_even_usd_per_device_hour"]),
            enters(row),
        ]
        for row in rows
    ]
    heads = columns("BREAK-EVEN", ">To use it costs", ">Price now", ">Enters below", "")
    notes = (
        "all prices of a device move together, as with --price 'DEVICE=-10%'; /device-h, of the cheapest plan that "
        "uses it",
    )
    none = ("no other device could be used, the plan is not proven cheapest, or cost is not what is minimised first",)
    return Grid(columns=heads, rows=cells, notes=notes if rows else none)


def _regret(document: PlanDocument, row: BreakEvenRow) -> str:
    if row["regret_microusd"] is None:
        return "cannot be used"
    return f"+{words.money(document, row['regret_microusd'])}" if row["regret_microusd"] else "the same"


def _per_hour(document: PlanDocument, usd: float | None) -> str:
    return "" if usd is None else words.money(document, usd * 1e6)


def enters(row: BreakEvenRow) -> str:
    """The break-even share in words: "would enter at 18 % lower price", "not even free"."""
    if row["forced_microusd"] is None:
        return ""
    if row["share"] is None:
        return "not even free"
    if row["share"] >= 1:
        return "as cheap as what is chosen"
    return f"would enter at {_enough(row['share'])} % lower price" + ("" if row["proven"] else " (not proven)")


def _enough(share: float) -> str:
    """By how many per cent a price has to fall to that share of it: rounded up, so that what is told does."""
    exact = 100 * (1 - Decimal(repr(share)))
    place = Decimal(1).scaleb(max(exact.adjusted() - 2, -4))
    told = exact.quantize(place, rounding=ROUND_CEILING)
    told = told if told < 100 else exact.quantize(Decimal("0.0001"), rounding=ROUND_CEILING)
    return f"{told.normalize():f}"


def _more(share: float) -> str:
    """How much dearer, or cheaper: "+6.45 %", "+1,630 %"."""
    return f"{'-' if share < 0 else '+'}{number(abs(100 * share))} %"


def _why_not(document: PlanDocument, entry: WhyNot) -> list[Block]:
    head = Headline(word="WHY NOT", text=f"{entry['device']} for {entry['workload']}", tone="fair")
    return [head, Lines(lines=tuple(f" {line}" for line in _reasons(document, entry)))]


def _layout_rows(price: LayoutPrice) -> list[tuple[str, dict[str, object]]]:
    """A refused layout as one row, else one for the offers of the plan and one for any."""
    if price["refused"]:
        return [("", {"refused": price["refused"], "hint": price["hint"]})]
    plans = [("on the offers of the plan", price["here"]), ("anywhere", price["anywhere"])]
    return [
        (
            where,
            {**{key: value for key, value in plan.items() if key != "rows"}, "aside": price["aside"]}
            if plan
            else {"refused": "no plan"},
        )
        for where, plan in plans
    ]


def _layout(document: PlanDocument, price: LayoutPrice) -> list[Block]:
    """What a layout costs beside the choice."""
    head = Headline(word="LAYOUT", text=f"{price['layout']} for {price['workload']}", tone="fair")
    chosen = next(one for one in document["workloads"] if one["name"] == price["workload"])
    lines = [f"chosen     {_plan_row(document, row)}" for row in chosen["allocations"][:_LINES]]
    if price["refused"]:
        lines += [f"impossible {price['refused']}", *([f"instead    {price['hint']}"] if price["hint"] else [])]
        return [head, Lines(lines=tuple(f" {line}" for line in lines))]
    here, anywhere = price["here"], price["anywhere"]
    if here is None:
        lines.append("same offer impossible within the limits there")
    elif not (anywhere and anywhere["rows"] == here["rows"]):
        lines += _priced("same offer", document, here)
    if anywhere is not None:
        lines += _priced("cheapest", document, anywhere)
    lines += [f"not weighed {price['aside']}"] if price["aside"] else []
    return [head, Lines(lines=tuple(f" {line}" for line in lines))]


def _priced(word: str, document: PlanDocument, plan: LayoutPlan) -> list[str]:
    """The rows of a plan with a layout, and what it costs more."""
    unproven = "" if plan["proven"] else ", not proven"
    rows = [f"{word:<10} {_plan_row(document, row)}" for row in plan["rows"][:_LINES]]
    more = "as in the plan" if not plan["dearer"] else _more(plan["dearer"])
    cost, whole = (words.money(document, plan[name]) for name in ("cost_microusd", "plan_microusd"))
    return [*rows, f"{'costs':<10} {cost}, {more} ({whole} for all workloads together{unproven})"]


def _reasons(document: PlanDocument, entry: WhyNot) -> list[str]:
    left_out = "allowed    no: hardware.allow or deny leaves it out; what follows is if it did not"
    allowed = [] if entry["allowed"] else [left_out]
    if entry.get("unlaunched"):
        allowed.append("left out   nothing that plan export writes for runs there: it counts named in hardware.allow")
    if entry["state"] == "chosen":
        return ["chosen     it is in the plan"]
    if entry["state"] == "impossible":
        misses = entry["misses"] or ["no plan to compare with"]
        return [*allowed, *(f"impossible {miss}" for miss in misses)]
    if entry["state"] == "limits":
        return [*allowed, *_no_room(document, entry)]
    alone = "" if entry["alone"] else ", beside others"
    allowed += [f"alone      impossible: {miss}" for miss in entry["misses"]]
    lines = [f"feasible   {_plan_row(document, row)}" for row in entry["rows"][:_LINES]]
    return [*allowed, *lines, f"costs      {_dearer(document, entry)}{alone}", *_would_win(document, entry)]


def _no_room(document: PlanDocument, entry: WithinNoLimits) -> list[str]:
    """The limits that are in the way; where no plan was found and none ruled out, that."""
    if not entry["proven"]:
        return ["not known  no plan with it was found in the time that there was, and none was ruled out"]
    return [f"impossible within {limit_name(document, one)}" for one in entry["misses"]] or [
        "impossible together with the other workloads"
    ]


def _plan_row(document: PlanDocument, row: Allocation) -> str:
    """One row of a plan: "4 × a100 ×8 · prov us-east, dp32, 23.9 days, $23,646"."""
    split = f", {words.layout_of(row)}" if "mfu" in row else f", {words.replicas_of(row)}"
    hours = f", {units.format_duration(row['hours'] * 3600)}" if "mfu" in row else ""
    return f"{words.rented_as(row)}{split}{hours}, {words.money(document, row['cost_microusd'])}"


def _dearer(document: PlanDocument, entry: ComparedWith) -> str:
    share = _more(entry["regret_share"])
    regret = words.money(document, abs(entry["regret_microusd"]))
    factors = ""
    if entry["device_hours_factor"] is not None and entry["price_factor"] is not None:
        hours, price = number(entry["device_hours_factor"]), number(entry["price_factor"])
        factors = f": {hours} × the device-hours at {price} × the price"
    return f"{'+' if entry['regret_microusd'] >= 0 else '-'}{regret} in all ({share}){factors}"


def _would_win(document: PlanDocument, entry: ComparedWith) -> list[str]:
    if entry["share"] is None:
        return ["would win  at no price: not even free"]
    if entry["share"] > 1:
        return ["would win  at the price that it has, were it allowed"]
    if entry["share"] == 1:
        return ["would win  as cheap as what is chosen: a tie"]
    price, now = (
        _per_hour(document, entry[name]) for name in ("break_even_usd_per_device_hour", "price_usd_per_device_hour")
    )
    mfu = entry["break_even_mfu"]
    faster = f" or its MFU rose above {100 * mfu:.3g} %" if mfu else ""
    if not entry["price_usd_per_device_hour"]:  # under a contract, whose fees move with the prices
        return [f"would win  if its prices and fees fell by {100 * (1 - entry['share']):.3g} %{faster}"]
    return [f"would win  if its price fell below {price} /device-h (now {now}){faster}"]
