"""What the certificate of a plan proves, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.units import format_money


def certificate_words(document: Mapping[str, Any], columns: int) -> str:
    """What is proven without a solver, over how many columns; empty where there is no certificate of a plan."""
    certificate = document["certificate"]
    if certificate is None or certificate["criterion"] == "limits":
        return ""
    bound, gap = certificate["bound"], certificate["gap"]
    least = format_money(bound) if certificate["criterion"] == "cost" else f"{bound / 1e6:,.1f} kg of CO2"
    when = "" if certificate["latest_s"] is None else f" by {certificate['latest_s'] / 3600:,.1f} h"
    apart = "the plan is that" if gap == 0 else f"the plan is within {gap:.2%} of it"
    aside = any(one["reason"] == "unadvised" for each in document["rejected"].values() for one in each["reasons"])
    among = "; what nobody advises (ZeRO-2 and ZeRO-3 under a pipeline and the like) is not among them" if aside else ""
    return f"without a solver: none of {columns:,} columns makes less than {least}{when}, {apart}{among}"
