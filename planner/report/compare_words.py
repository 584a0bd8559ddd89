"""The words and figures of a comparison: one cell or sentence from one piece of its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner import units
from planner.analysis.compare.model import (
    Amounts,
    Bought,
    CatalogPair,
    Compared,
    KeyRow,
    SideTold,
    WorkloadRow,
    WorkloadSide,
)
from planner.report import plan_words

PARTS = {"training": "training, one-off", "contracts": "contracts", "copies": "copies of data",
         "cases": "other cases, on average"}  # fmt: skip
_LONGEST_VALUE = 60


def amount(usd: float | None, currency: str) -> str:
    """Money, or a dash for none."""
    return "–" if usd is None else units.format_money(round(usd * 1e6), currency=currency)


def signed(usd: float | None, currency: str) -> str:
    """A difference with its sign; a dash when it is unknown."""
    if usd is None:
        return "–"
    return ("+" if usd > 0 else "") + amount(usd, currency)


def price(usd: float | None, currency: str = "USD") -> str:
    """A price of an hour to a hundredth of a per cent: flips are told that finely."""
    if usd is None:
        return "none"
    digits = 4 if abs(usd) < 10 else 3 if abs(usd) < 100 else 2
    text = f"{usd:,.{digits}f}"
    whole, _, part = text.partition(".")
    text = f"{whole}.{part.rstrip('0'):0<2}"
    return f"${text}" if currency == "USD" else f"{text} {currency}"


def percent(share: float | None) -> str:
    """A relative change: "+63 %"."""
    if share is None:
        return ""
    size = abs(100 * share)
    digits = 0 if size >= 10 or size == 0 else 1 if size >= 1 else 2
    return f"{100 * share:+.{digits}f} %"


def difference(row: Amounts, currency: str) -> str:
    """The difference of an amount; "no change" in words."""
    if row["difference_microusd"] == 0:
        return "no change"
    return signed(row["difference_usd"], currency)


def devices(side: SideTold) -> str:
    """Devices of a plan, or nothing."""
    return "" if side["devices"] is None else f"{side['devices']:,}"


def value(given: Any) -> str:
    """A value of a scenario or catalog, short."""
    if given is None or given == []:
        return "none"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float):
        return f"{given:,.6g}"
    text = _flat(given)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _flat(given: Any) -> str:
    """A list or mapping as a scenario file would show it in one line."""
    if isinstance(given, Mapping):
        return "{" + ", ".join(f"{key}: {_flat(inner)}" for key, inner in given.items()) + "}"
    return ", ".join(map(_flat, given)) if isinstance(given, list | tuple) else str(given)


def key_line(row: KeyRow) -> str:
    """A scenario key that differs; a workload of one side alone in words."""
    old, new = row["old"], row["new"]
    if row["key"].count(".") == 1 and row["key"].startswith(("training.", "serving.")) and None in (old, new):
        return f"{row['key']}: {'added' if old is None else 'removed'}"
    return f"{row['key']}: {value(old)} → {value(new)}"


def verdict(one: Compared) -> str:
    """What changed, in one line."""
    if one["same"]:
        return "the same decision for the same money"
    kinds = [row["changed"] for row in one["workloads"]]
    moved = sum(kind in ("decision", "added", "removed") for kind in kinds)
    if moved:
        return f"another decision for {moved} of {len(kinds)} workload{'s' if len(kinds) != 1 else ''}"
    for kind, words in (
        ("place", "the same machines in another place"),
        ("layout", "the same machines, laid out anew"),
    ):
        if kind in kinds:
            return words
    return "the same decision at another cost"


def span(hours: float | None) -> str:
    """A horizon in words."""
    return "an unknown time" if hours is None else plan_words.lasting(hours)


def period(one: Compared, row: WorkloadRow) -> str:
    """What the cost of a workload is for: serving over the horizon."""
    spans = one["horizon_hours"]
    if row["kind"] == "training" or spans["old"] != spans["new"] or spans["new"] is None:
        return ""
    return f" /{span(spans['new']).removeprefix('1 ')}"


def part(name: str, one: Compared) -> str:
    """A sum by name: one-off and recurring are told apart, the latter with its horizon."""
    spans = one["horizon_hours"]
    if name == "serving":
        same = spans["old"] == spans["new"]
        return f"serving, for {span(spans['new'])}" if same else "serving, each for its horizon"
    return PARTS.get(name, name)


def money_cells(row: Amounts, currency: str, per: str) -> list[str]:
    """Old → new, difference, change; one amount when nothing moved.

    Parameters
    ----------
    row
        An amount of either plan; None in it where a plan has none.
    currency
        Code of the currency, as USD.
    per
        Follows the amount: " /month", as `period` gives it; "" = nothing.
    """
    old, new = (amount(row[name], currency) for name in ("old_usd", "new_usd"))
    both = new + per if row["difference_microusd"] == 0 else f"{old} → {new}{per}"
    share = "" if row["difference_microusd"] == 0 else percent(row["difference"])
    return [both, difference(row, currency), share]


def plan_cell(row: WorkloadRow) -> str:
    """What a workload rents: "2 → 4 × h100-sxm-80gb ×8 · aws us-east-2", or old → new."""
    before, after = row["old"], row["new"]
    old, new = side_cell(before), side_cell(after)
    if before is None or after is None or old == new:
        return new if after is not None else old
    places = [[plan_words.offer_of(one) for one in side["rows"]] for side in (before, after)]
    shared = any("shared" in one for side in (before, after) for one in side["rows"])
    if places[0] == places[1] and len(places[0]) == 1 and not shared:
        return f"{before['rows'][0]['count']:,} → {after['rows'][0]['count']:,} × {places[0][0]}"
    return f"{old} → {new}"


def side_cell(side: WorkloadSide | None) -> str:
    """What one plan rents for a workload."""
    if side is None:
        return ""
    return " + ".join(plan_words.rented_as(row) for row in side["rows"]) or "no plan"


def bought_cell(row: Bought) -> str:
    """A contract or a copy of data."""
    what = row["offer"] or row["data"] or row["kind"]
    return f"{row['count'] or 1} × {what}"


def how_cells(row: WorkloadRow) -> list[str]:
    """Devices, layout and finish or load, before and after."""
    sides = (row["old"], row["new"])
    return [
        row["name"],
        _arrow(*(None if side is None else f"{side['devices']:,}" for side in sides)),
        _arrow(*(_layouts(side) for side in sides)),
        _arrow(*(_pace(side) for side in sides)),
    ]


def _arrow(old: str | None, new: str | None) -> str:
    return (new or "–") if old == new else f"{old or '–'} → {new or '–'}"


def _layouts(side: WorkloadSide | None) -> str | None:
    return " + ".join(_layout(row["layout"]) for row in side["rows"]) or None if side else None


def _layout(layout: Mapping[str, int | float | str]) -> str:
    axes = [f"{axis}{layout[axis]}" for axis in ("dp", "tp", "pp", "vpp", "cp", "ep") if layout.get(axis, 1) != 1]
    rules = [str(layout[name]) for name in ("sharding", "recompute") if layout.get(name, "none") != "none"]
    batch = [f"mb{layout['micro_batch']}"] if layout.get("micro_batch") else []
    return " ".join([*(axes or ["tp1"]), *rules, *batch])


def _pace(side: WorkloadSide | None) -> str | None:
    if side is None:
        return None
    if side["finish_hours"] is not None:
        return plan_words.of_deadline(side["finish_hours"], 0)
    return None if side["load_at_peak"] is None else f"{100 * side['load_at_peak']:.0f} % at peak"


def catalog_line(catalog: CatalogPair) -> str:
    """Whether the catalog is another one, and what changed in it."""
    if catalog["same"]:
        return "catalog: same · prices: same"
    names = [
        f"{side['name'] or '?'} {side['as_of']} ({side['sha256'][:8]})" for side in (catalog["old"], catalog["new"])
    ]
    head = f"catalog: {names[0]} → {names[1]}"
    if not catalog["known"]:
        return f"{head}; one of them is not at hand, so only prices that the plans state are compared"
    counts = {"another price": catalog["prices"], "another fact": catalog["facts"],
              "a new offer": catalog["offers_added"], "an offer gone": catalog["offers_removed"],
              "a price flagged": catalog["flagged"], "a flag gone": catalog["cleared"]}  # fmt: skip
    told = [f"{count:,} × {label}" for label, count in counts.items() if count]
    touching = f"; {len(catalog['touching'])} of these in what a plan uses" if told else ""
    return f"{head}: {', '.join(told) or 'nothing but sources'}{touching}"
