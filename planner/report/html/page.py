"""The page itself: one file with its style and its figures, and no script at all."""

from __future__ import annotations

from planner.carriers import dataclass
from planner.report import screen
from planner.report import screen_words as said
from planner.report.html import opening
from planner.report.html.sections import sections_of
from planner.report.html.sheet import rendered
from planner.report.model import ReportDocument
from planner.report.plan_words import merged, money

_FEW = 4  # workloads that are told beside the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page and what its maker says of it."""

    text: str
    sections: int
    warnings: int


def render_page(report: ReportDocument) -> Page:
    """A report document (`plan/report/v1`) as a page that needs nothing else.

    Raises
    ------
    ValueError
        A figure that is no number: a bug.
    """
    plan, sections = report["plan"], sections_of(report)
    text = rendered(
        "page.html",
        title=plan["title"] or plan["name"],
        name=plan["name"],
        case=plan["case"],
        total=money(plan, cost) if (cost := plan["summary"]["cost_microusd"]) is not None else "",
        lasting=said.money_parts(plan)[0],
        split=said.money_parts(plan)[1:],
        likely=said.likely(plan),
        decision=said.decided(plan),
        sure="" if plan["infeasible"] else said.sure_line(plan, None),
        reasons=opening.reasons(plan)[0],
        savings=report["savings"],
        cards=screen.workload_cards(plan) if len(plan["workloads"]) <= _FEW else None,
        amounts=opening.amounts(report),
        budget=opening.budget_share(plan),
        command=opening.command(plan),
        sections=sections,
    )
    return Page(text=text, sections=len(sections), warnings=len(merged(plan, plan["warnings"])))
