"""A plan beside the one that solving its scenario again gives: the same answer, or what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from planner.analysis.beside import LEFT_OUT, NO_TIME
from planner.checks.findings import Finding, problems_of
from planner.checks.leaves import SOLVED, TOLD, read, spelled
from planner.errors import Problem
from planner.plan.proof import SLACK_PARTS, WITH_PLAN, slack, tie_share_of
from planner.units import format_money

Document = Mapping[str, Any]
SEARCHED = ("infeasible", "others", "uncertainty")  # parts that further searches fill
KIND = ("single_kind",)
MISSING = object()


def differences(document: Document, again: Document) -> tuple[list[Problem], str, bool]:
    """What a second answer says against a plan document, in words what it came to, and whether they agree.

    Values of the first criterion agree to a millionth, or a cent or ten grams; a finish to a millionth.
    """
    wrong = problems_of(searched_findings(document, again))
    problems, words, agree = _answers(document, again)
    return [*problems, *wrong], words, agree and not wrong


def searched_findings(document: Document, again: Document) -> Iterator[Finding]:
    """What other searches gave for a plan: ways out of a conflict, other plans, costs at the median or of one kind.

    They may claim less than is found, not more. Numbers agree to a millionth, as costs do.
    """
    if (document["infeasible"] or {"minimal": True})["minimal"] is False:
        return  # for lack of time: other members, other ways out
    stated, found = (dict(_searched(one)) for one in (document, again))
    given_up = {path for path, value in stated.items() if value is None and not (path == KIND and _owes_kind(document))}
    for path, value in stated.items():
        if not _claims_no_more(value, found.get(path, MISSING)):
            yield Finding("wrong-search", f"{spelled(path)} is {value!r}; solved again it is not")
    for path in found:
        if path not in stated and not any(path[:length] in given_up for length in range(1, len(path))):
            yield Finding("wrong-search", f"{spelled(path)} is missing; solved again it is there")


def _owes_kind(document: Document) -> bool:
    """Whether a plan on several kinds of device says without a reason that there is none on one kind."""
    devices = {row["device"] for workload in document["workloads"] for row in workload["allocations"]}
    reasons = (words in warning for warning in document["warnings"] for words in (NO_TIME, LEFT_OUT))
    return document["status"] == "optimal" and len(devices) > 1 and not any(reasons)


def _searched(document: Document) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Leaves that further searches give, null where they did not; not the plan before, which is not at hand."""
    for path, leaf, value in read(document):
        whole = path[0] in SEARCHED and path[:2] != ("others", "previous") and "plan" not in path
        alone = leaf is not None and (leaf.kind == SOLVED or path == KIND) and path[0] not in SEARCHED
        if leaf is not None and leaf.kind != TOLD and (whole or alone):
            yield path, value


def _claims_no_more(value: Any, found: Any) -> bool:
    """Whether a value is what was found again; what was not proven for lack of time claims less."""
    if value is None:
        return True
    if value is False or found is MISSING:
        return found is True or value == found
    if isinstance(value, bool | str) or not isinstance(found, int | float):
        return bool(value == found)
    return math.isclose(value, found, rel_tol=1 / SLACK_PARTS, abs_tol=1e-9)


def _answers(document: Document, again: Document) -> tuple[list[Problem], str, bool]:
    claimed, found = document["status"], again["status"]
    if found not in (*WITH_PLAN, "infeasible"):
        return [], f"solved again: the solver ended as {found}, which decides nothing", False
    if found == "infeasible":
        wrong = f"called {claimed}, but nothing meets every limit, solved again"
        agree = claimed == "infeasible"
        return _wrong("wrong-status", "" if agree else wrong), "solved again: nothing meets every limit", agree
    cost = format_money(again["summary"]["cost_microusd"])
    words = f"solved again: {found} at {cost}"
    if claimed not in WITH_PLAN:
        return _wrong("wrong-status", f"called {claimed}, but there is a plan of {cost}"), words, False
    what, stated, best = _first(document), _value(document), _value(again)
    if found == "optimal" and stated < best - slack(best):
        return _wrong("wrong-proof", f"its {what} is below the least there is, solved again"), words, False
    if abs(stated - best) <= slack(best, tie_share_of(document)):
        return [], f"{words}, the same", found == "optimal"
    more = f"its {what} is {_more(stated, best)} above the least, solved again"
    claims = claimed == "optimal" and not _stays(document)
    return _wrong("not-best", more if claims else ""), f"{words}; {more}", False


def _wrong(reference: str, message: str) -> list[Problem]:
    return problems_of([Finding(reference, message)] if message else [])


def _first(document: Document) -> str:
    first = document["summary"]["objective"][0]
    return {"time": "latest finish", "carbon": "carbon"}.get(first, "cost")


def _value(document: Document) -> int:
    """The first criterion: micro-dollars, milligrams, or microseconds of the latest finish."""
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    first = document["summary"]["objective"][0]
    if first == "time":
        return round(3.6e9 * max((row["finish_hours"] for row in rows if row.get("finish_hours")), default=0.0))
    if first == "carbon":
        return round(1e6 * sum(row["carbon_kg"] or 0.0 for row in rows))
    return int(document["summary"]["cost_microusd"])


def _stays(document: Document) -> bool:
    """Whether it was asked to stay with an earlier plan, which may cost more than the least."""
    return bool((document.get("others") or {}).get("previous"))


def _more(stated: int, best: int) -> str:
    return f"{100 * (stated / best - 1):.2f} %" if best else "all of it"
