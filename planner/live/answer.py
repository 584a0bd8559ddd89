"""What the page shows: itself, and each answer as a piece of HTML that was escaped here; nothing is worked out.

Looks, words and figures are those of the report and of the first screen.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from planner.analysis.compare.decision import money_rows, workload_rows
from planner.analysis.compare.model import WorkloadRow
from planner.errors import InputError, PlanError, Problem, UsageError
from planner.files import read_package_text
from planner.live.desk import Answer, Desk
from planner.live.knobs import DENY, Changes, devices_of, groups_of, path_of, settings_of
from planner.plan.model.frontier_document import Tradeoff
from planner.plan.model.others import Infeasible
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import currency_of, limit_name
from planner.report import chart_drawing, compare_words, plan_formats
from planner.report import plan_words as words
from planner.report import screen_words as said
from planner.report.escape import terminal
from planner.report.html.cost_figures import job_figures, job_table
from planner.report.html.page_parts import templates
from planner.report.html.prediction_figures import finish_table, memory_figure, memory_table, timeline_figure
from planner.report.next_words import asking, change, cost_then, how
from planner.scenario.schema import Scenario

_FILES = ("page.html", "answer.html", "traded.html")
_DECIDED = ("decision", "place", "layout", "added", "removed")
_FEW = 3
Line = dict[str, Any]


class Views:
    """Everything that is sent, of one scenario.

    Parameters
    ----------
    scenario
        As it was at the start.
    devices
        On which anything of it could run.
    saved_as
        The name under which a changed scenario is saved unless another one is given.
    """

    def __init__(self, scenario: Scenario, devices: Sequence[str], saved_as: str) -> None:
        self.scenario, self.devices, self.saved_as = scenario, devices, saved_as
        self.style = chart_drawing.style() + read_package_text("report/html/page.css")

    def page(self) -> str:
        """The page without an answer, which it asks for."""
        devices = devices_of(self.scenario, self.devices)
        return _rendered(
            "page.html",
            title=self.scenario.title or self.scenario.name,
            name=self.scenario.name,
            case=self.scenario.case,
            groups=groups_of(self.scenario),
            devices=[(one, said.device_name(one)) for one in devices.ids],
            denied=devices.denied,
            saved_as=self.saved_as,
        )

    def answer(self, answer: Answer, desk: Desk, before: Changes | None) -> Line:
        """The best plan so far, or the answer.

        Parameters
        ----------
        answer
            That is shown.
        desk
            Knows the answers to compare with: that of the start, and the one shown before.
        before
            Changes of the answer that was shown last; None = there was none.

        Returns
        -------
        As it is sent: a piece of HTML, and what the page shows around it.
        """
        document = answer.document
        tone = "good" if answer.proven and answer.last else "fair"
        html = _rendered(
            "answer.html",
            decision=said.decided(document),
            split=said.money_parts(document)[1:] if answer.has_plan else (),
            likely=said.likely(document),
            sure=said.sure_line(document, answer.elapsed_s),
            ways=_ways(document, document["infeasible"]) if document["infeasible"] else (),
            since=list(self._since(answer, desk, before)),
            cards=plan_formats.workload_cards(document),
            warnings=said.matters(document)[:_FEW],
            charts=[one for one in (timeline_figure(document), memory_figure(document)) if one],
            tables=[one for one in (finish_table(document), memory_table(document)) if one.rows],
        )
        return {
            "kind": "answer",
            "html": html,
            "last": answer.last,
            "proven": answer.proven and answer.last,
            "tone": "bad" if document["infeasible"] else tone,
            "badge": _badge(answer),
            "total": total_of(document),
            "command": terminal(asking(document)),
        }

    def _since(self, answer: Answer, desk: Desk, before: Changes | None) -> list[tuple[str, list[str]]]:
        """What is another than in the answer before, and than at the start."""
        if not answer.has_plan:
            return []
        start = desk.known(())
        shown = None if before is None else desk.known(_settings(self.scenario, before))
        found = []
        if shown and shown.settings not in (answer.settings, ()):
            found.append(("Since the last answer", _changed(shown.document, answer.document)))
        if start and start.settings != answer.settings:
            found.append(("Since the start", _changed(start.document, answer.document)))
        return found

    def traded(self, answer: Answer, tradeoffs: Sequence[Tradeoff]) -> str:
        """What each job alone costs at other finishes."""
        return _rendered(
            "traded.html", charts=job_figures(answer.document, tradeoffs), table=job_table(answer.document, tradeoffs)
        )

    def refused(self, error: PlanError, changes: Changes) -> Line:
        """The command line's own words, each at the change that it is of; "" is all of them together."""
        wrong: dict[str, list[str]] = {}
        for problem in error.problems:
            path = path_of(problem, changes) if isinstance(error, InputError | UsageError) else ""
            wrong.setdefault(path, []).append(_told(problem))
        return {"kind": "refused", "wrong": {path: "\n".join(texts) for path, texts in wrong.items()}}


def _settings(scenario: Scenario, changes: Changes) -> tuple[str, ...]:
    """The --set texts of changes that were read before; none fit where they cannot be read."""
    try:
        return settings_of(scenario, changes)
    except PlanError:
        return ("",)


def _told(problem: Problem) -> str:
    return terminal(problem.message) + (f"\nhint: {terminal(problem.hint)}" if problem.hint else "")


def total_of(document: PlanDocument) -> str:
    """The total, and the time that all of it is for: "$7,264 a month"; "" without a plan."""
    cost = document["summary"]["cost_microusd"]
    return "" if cost is None else f"{words.money(document, cost)} {said.money_parts(document)[0]}".strip()


def _badge(answer: Answer) -> str:
    document, gap = answer.document, answer.document["summary"]["gap"]
    if document["infeasible"] or document["status"] == "infeasible":
        sure = "nothing meets every limit" + (": proven" if answer.proven else "")
        return f"{sure}; looking for ways out" if answer.looking else sure
    if answer.last and answer.proven:
        return "proven"
    far = "how far from the cheapest is not known" if gap is None else f"within {100 * gap:.2g} % of the cheapest"
    return f"not proven, {far}" if answer.last else f"best so far, {far}; looking on"


def _changed(old: PlanDocument, new: PlanDocument) -> list[str]:
    """The difference of the total, and every workload that is decided otherwise."""
    total = money_rows(old, new)[-1]
    if total["difference_microusd"] is None:
        return ["there was no plan then"]
    share = compare_words.percent(total["difference"]) if total["difference_microusd"] else ""
    head = compare_words.difference(total, currency_of(new))
    lines = [f"{head} ({share})" if share else head]
    moved = [row for row in workload_rows(old, new) if row["changed"] in _DECIDED]
    return lines + [_row(row) for row in moved] if moved else [*lines, "nothing is decided otherwise"]


def _row(row: WorkloadRow) -> str:
    how = ", laid out anew" if row["changed"] == "layout" else ""
    return f"{row['name']}: {compare_words.plan_cell(row)}{how}"


def _ways(document: PlanDocument, facts: Infeasible) -> list[Mapping[str, Any]]:
    """Buttons: each limit alone that is enough, the cheapest first; else several together."""
    alone = [way for way in facts["ways_out"] if way["to"] is not None]
    alone.sort(key=lambda way: (way["cost_microusd"] is None, way["cost_microusd"] or 0))
    found: list[Mapping[str, Any]] = [
        {
            "changes": _changes_of(how(way)),
            "name": limit_name(document, way["limit"]),
            "change": change(way),
            "then": "" if way["cost_microusd"] is None else f"then {cost_then(document, way['cost_microusd'])}",
        }
        for way in alone[:_FEW]
    ]
    together = facts["combined"]
    if together and len(together["changes"]) > 1:
        changes = together["changes"]
        found.append(
            {
                "changes": _changes_of(" ".join(map(how, changes))),
                "name": "together",
                "change": "; ".join(f"{limit_name(document, one['limit'])}: {change(one)}" for one in changes),
                "then": f"then {cost_then(document, together['cost_microusd'])}",
            }
        )
    return found


def _changes_of(options: str) -> dict[str, str]:
    """Changes from options of a command line, "--set 'limits.budget=$45,807'"."""
    texts = [text for text in shlex.split(options) if text != "--set"]
    return {path: value for path, _, value in (text.partition("=") for text in texts) if path != DENY}


def _rendered(template: str, **given: Any) -> str:
    text: str = _templates().get_template(template).render(**given)
    return text


@cache
def _templates() -> Any:
    from jinja2 import ChoiceLoader, DictLoader

    base = templates()
    own = DictLoader({f: read_package_text(f"live/{f}") for f in _FILES})
    return base.overlay(loader=ChoiceLoader([own, base.loader]))
