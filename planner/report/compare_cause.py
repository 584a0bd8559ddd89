"""What moved a decision, in words: the cause, its break-even price, the runner-up, and what it took to find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.analysis.compare.model import Again, CauseFound, ChangeRow, Compared, RunnerUp, Said
from planner.report.compare_words import amount, percent, price, signed, value

LEVELS = {"what": "what is rented", "where": "where it is rented", "how": "the layout", "cost": "the cost"}
_SHOWN = 8  # changes of a set that are told one by one


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
        for row in found[:_SHOWN]:
            does = f"this alone moves {level}{_by(row['alone'], currency, cause['level'])}"
            yield f"{changed(row, currency)}: {does}{each}{_needed(row, cause, one)}"
    elif cause["verdict"] == "together":
        does = "accounts for it" if cause["level"] == "cost" else f"moves {level} as it moved"
        yield f"no single change {does}; these {len(found)} together do" + (
            "" if cause["proven"] else " (perhaps fewer)"
        )
        for row in found[:_SHOWN]:
            yield f"{changed(row, currency)}: alone{_partly(row, currency)}"
        if len(found) > _SHOWN:
            yield f"and {len(found) - _SHOWN} more (-o json lists them)"
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
