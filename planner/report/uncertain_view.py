"""What may happen, as blocks: the cases with their costs, and what knowing more would be worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.report.blocks import Block, Grid, Items, columns
from planner.units import format_money, format_percent

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument, Uncertainty


def uncertain_blocks(document: PlanDocument) -> list[Block]:
    """The cases of a plan; nothing for a plan without."""
    section = document.get("uncertainty")
    if not section:
        return []
    rows = [
        (
            case["name"],
            f"{case['probability'] * 100:.4g}%",
            _money(case["cost_usd"]),
            _money(case["known_beforehand_usd"]),
            _money(case["contracts_of_written_usd"]),
        )
        for case in section["cases"]
    ]
    heads = columns("What may happen", ">Probability", ">Cost", ">Known beforehand", ">Contracts as written")
    return [Grid(columns=heads, rows=rows), Items(title="Over all cases", items=tuple(_sentences(section)))]


def _sentences(section: Uncertainty) -> list[str]:
    lines = [f"expected cost {_money(section['expected_usd'])}"]
    risk = section["risk"]
    level = risk["level"] if risk else 0.95
    if section["at_risk_usd"] is not None:
        worst = f"the worst {format_percent(1 - level)} of what may happen"
        lines.append(f"{worst} costs {_money(section['at_risk_usd'])} on average")
    if section["perfect_information_usd"] is not None:
        lines.append(f"to know beforehand would be worth {_money(section['perfect_information_usd'])}")
    saved = section["stochastic_solution_usd"]
    if saved is not None and saved >= 0:
        lines.append(f"to have thought of all cases saves {_money(saved)} on average")
    elif saved is not None:  # where the bad cases weigh more than their share
        lines.append(f"to have thought of all cases costs {_money(-saved)} on average, for less in the bad ones (risk)")
    else:
        lines.append("the contracts of the scenario as written would leave some case without a plan")
    return lines


def _money(usd: float | None) -> str:
    return "no plan" if usd is None else format_money(round(usd * 1_000_000))
