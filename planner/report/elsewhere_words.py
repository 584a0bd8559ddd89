"""What the same devices cost at other sellers, in lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.report import plan_words as words

if TYPE_CHECKING:
    from planner.plan.model.others import Elsewhere
    from planner.plan.model.plan import PlanDocument

MARKETPLACES = "marketplaces"


def elsewhere_lines(document: PlanDocument) -> Iterator[str]:
    """A line of the large clouds, and one of marketplaces that would be cheaper."""
    told = document.get("elsewhere") or []
    clouds = [one for one in told if one["seller"] != MARKETPLACES]
    if clouds:
        here = words.money(document, clouds[0]["here_microusd"])
        costs = "; ".join(_cost(document, one) for one in clouds)
        lacking = next((one["seller"] for one in clouds if one.get("instead")), "")
        best = f"; --set hardware.providers={lacking} finds the best there" if lacking else ""
        cheaper = any((one["dearer"] or 0) < 0 for one in clouds)
        less = " (prices alone: its own machines may take longer)" if cheaper else ""
        yield f" The same devices and hours   {costs}; rented by the hour here {here}{less}{best}"
    for one in told:
        if one["seller"] == MARKETPLACES and one["cost_microusd"] is not None and (one["dearer"] or 0) < 0:
            saved = words.money(document, one["here_microusd"] - one["cost_microusd"])
            sellers = ", ".join(dict.fromkeys(offer.partition(":")[0] for offer in one["offers"]))
            yield (
                f" Marketplaces   would save {saved} on the same devices and hours ({sellers}), and promise no "
                "capacity; hardware.kinds: [hyperscaler, cloud, marketplace] takes them in"
            )


def _cost(document: PlanDocument, one: Elsewhere) -> str:
    if one["cost_microusd"] is None:
        apart = one.get("unjoined", [])
        none = [device for device in one["missing"] if device not in apart]
        told = [f"has no {' and no '.join(none)}"] if none else []
        told += [f"joins its {' and '.join(apart)} by a network that is not known here"] if apart else []
        return f"{one['seller']} {', and '.join(told)}"
    share = f" ({100 * one['dearer']:+.0f} %)" if one["dearer"] is not None else ""
    return f"{one['seller']} {words.money(document, one['cost_microusd'])}{share}"
