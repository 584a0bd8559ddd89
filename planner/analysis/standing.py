"""What is proven of a plan document, worked out again: its status, bound and gap follow from its certificate.

The prices of the certificate are put to all columns that the scenario and the catalog give rise to, listed again. What
selects the columns (the criterion, the latest finish, suspect prices) is taken from the scenario and the rows of the
plan and held against the certificate. No solver is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from planner.candidates.program import SHARE
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.checks.findings import Finding, problems_of, proven_microusd
from planner.errors import Problem
from planner.plan.certificate import (
    all_settled,
    bound_of_choices,
    bound_of_earlier,
    certified_bound,
    prices_alone,
    settled,
)
from planner.plan.cover import UNMET
from planner.plan.least_weights import CertificateError
from planner.plan.proof import SHOWN, WITH_PLAN, digest_of_witness, gap_of, reaches, slack, tie_share_of

if TYPE_CHECKING:
    from planner.plan.model.others import Certificate, Choice, FleetPrices, Prices, Selection
    from planner.plan.model.plan import PlanDocument, Summary

CLOSE = 1e-9  # relative, of times; carbon is summed from floats: 1e-6
NOT_PROVEN = "not-proven"
SOLVE = "plan verify --solve solves the scenario again and decides"


class _Selected(TypedDict):
    """What the scenario and the plan select columns by."""

    criterion: Literal["cost", "carbon"]
    latest_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds of a document's claim.

    `bound` and `gap` are of its criterion; None where nothing is proven. `problems` contradict the document.
    """

    proven: bool
    words: str
    bound: int | None = None
    gap: float | None = None
    columns: int = 0
    problems: list[Problem] = field(default_factory=list)

    def all_problems(self) -> list[Problem]:
        """What contradicts the document; else, where its claim is not proven, a warning that says so."""
        if self.problems or self.proven:
            return self.problems
        return [Problem(reference=NOT_PROVEN, message=self.words, hint=SOLVE, severity="warning")]


def standing_of(document: Mapping[str, Any], candidates: Candidates) -> Standing:
    """What the certificate of a document proves; `candidates` hold every column of its scenario."""
    try:
        return _standing(document, candidates)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        text = str(error) if isinstance(error, CertificateError) else f"{type(error).__name__} {error}"
        found = problems_of([Finding("wrong-certificate", f"it cannot be read: {text}")])
        return Standing(proven=False, words="not proven: its certificate cannot be read", problems=found)


def unknown_standing(document: Mapping[str, Any], unchecked: bool = False) -> Standing:
    """Of a document whose columns cannot be listed, or that is refused for other reasons; or that cannot be checked."""
    status = document.get("status")
    said = "feasible" if status in WITH_PLAN else str(status)
    why = "the plan cannot be checked here" if unchecked else "the plan does not hold"
    return Standing(proven=False, words=f"{said}, not proven: {why}")


def _standing(document: Mapping[str, Any], candidates: Candidates) -> Standing:
    status, certificate = document["status"], document["certificate"]
    if status in WITH_PLAN:
        return _of_plan(document, candidates, certificate)
    if status == "infeasible":
        return _of_infeasible(candidates, certificate)
    found = problems_of([Finding("wrong-certificate", f"a plan that is {status} has none")] if certificate else [])
    return Standing(proven=False, words=f"{status}: the solver ended without an answer, nothing is claimed",
                    problems=found)  # fmt: skip


def _of_infeasible(candidates: Candidates, certificate: Certificate | None) -> Standing:
    columns, findings = candidates.columns_before, list[Finding]()
    prices: Prices = {"rows": [], "requests": []} if certificate is None else prices_alone(certificate)
    limits: Selection = {"criterion": "limits", "latest_s": None, **prices}
    bound = certified_bound(settled(candidates, limits, known=True), limits, SHOWN)
    if bound <= 0 and certificate is not None:
        bound = bound_of_choices(candidates, limits, certificate.get("choices", []), SHOWN)
    if certificate is not None:
        said = {"criterion": "limits", "latest_s": None, "value": 0, "gap": 0.0, "earlier": None, "bound": SHOWN}
        stated: Mapping[str, Any] = certificate
        findings = [*_witness(certificate)]
        findings += [
            Finding("wrong-certificate", f"{name} is {stated[name]!r}, not {value!r}")
            for name, value in said.items()
            if stated[name] != value
        ]
        if bound <= 0:
            findings.append(Finding("wrong-certificate", "its prices do not show that nothing meets every limit"))
    if bound >= UNMET and prices["requests"]:
        words = f"infeasible, proven without a solver: not even all units of {columns:,} columns carry the requests"
    elif bound >= UNMET:
        words = f"infeasible, proven: some workload has no way among {columns:,} columns, listed again"
    elif bound > 0:
        words = f"infeasible, proven without a solver: no units of {columns:,} columns meet the limits at their prices"
    else:
        words = "infeasible, not proven: the file does not show that nothing meets every limit"
    proven = bound > 0 and not findings
    return Standing(proven=proven, words=words, columns=columns, problems=problems_of(findings))


def _of_plan(document: Mapping[str, Any], candidates: Candidates, certificate: Certificate | None) -> Standing:
    selected, columns = _selected(document, candidates), candidates.columns_before
    findings, share = list[Finding](), tie_share_of(document)
    if certificate is None:
        nothing: Prices = {"rows": [], "requests": _even(candidates)}
        even: Selection = {**selected, **nothing}
        bound = certified_bound(settled(candidates, even, known=True), even)
        value = _value(document, selected["criterion"])
        gap = gap_of(value, bound, share)
        words = f"feasible, not proven: it carries no certificate; without one it is shown to be {_within(gap)}"
        return Standing(
            proven=False,
            words=words,
            bound=min(bound, value),
            gap=gap,
            columns=columns,
            problems=problems_of(findings),
        )
    findings += [*_selection(document, certificate, selected, candidates), *_witness(certificate)]
    value, choices = certificate["value"], certificate.get("choices", [])
    priced: Selection = {**selected, **prices_alone(certificate)}
    bound = _proven(candidates, priced, choices, value, share)
    open_rates = bool(candidates.whole.bounded.any())
    if open_rates and bound < certificate["bound"] - slack(value):
        bound = max(bound, _proven(all_settled(candidates), priced, choices, value, share))
    findings += _figures(certificate, value, bound, share, open_rates=open_rates)
    latest_s, earlier = selected["latest_s"], certificate["earlier"]
    earliest = latest_s is None or (earlier is not None and bound_of_earlier(candidates, earlier, latest_s) > 0)
    if earlier is not None and (latest_s is None or not earliest):
        findings.append(Finding("wrong-certificate", "its prices do not show that no plan finishes earlier"))
    gap = gap_of(value, bound, share)
    proven = document["status"] == "optimal" and gap == 0 and earliest and not findings
    return Standing(
        proven=proven,
        words="" if proven else "feasible, not proven: " + _falls_short(gap, earliest, bool(findings)),
        bound=min(bound, value),
        gap=gap,
        columns=columns,
        problems=problems_of(findings),
    )


def _proven(candidates: Candidates, priced: Selection, choices: Sequence[Choice], value: int, share: float) -> int:
    """What prices prove of all plans, or, where that falls short of a value, of those at each choice of providers."""
    bound = certified_bound(settled(candidates, priced, known=True), priced, value)
    return bound if reaches(value, bound, share) else max(bound, bound_of_choices(candidates, priced, choices, value))


def _falls_short(gap: float, earliest: bool, wrong: bool) -> str:
    if wrong:
        return "its certificate does not hold"
    if gap:
        return f"its certificate proves that it is {_within(gap)}"
    if not earliest:
        return "its certificate does not show that no plan finishes earlier"
    return "its certificate proves it the best, its status claims less"


def _within(gap: float) -> str:
    return f"within {100 * gap:.2f} % of the best" if gap else "the best"


def _selected(document: Mapping[str, Any], candidates: Candidates) -> _Selected:
    """Criterion and latest finish of the bound, from the scenario and the rows of the plan."""
    first = candidates.scenario.objective[0]
    latest_s = None
    if first == "time":
        rows = [row for workload in document["workloads"] for row in workload["allocations"]]
        latest_s = max((3600.0 * row["finish_hours"] for row in rows if row.get("finish_hours")), default=0.0)
    return {"criterion": "carbon" if first == "carbon" else "cost", "latest_s": latest_s}


def _value(document: Mapping[str, Any], criterion: str) -> int:
    if criterion == "cost":
        return proven_microusd(document)
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    return round(1e6 * math.fsum(row["carbon_kg"] or 0.0 for row in rows))


def _even(candidates: Candidates) -> list[FleetPrices]:
    """Prices that need no search: every request of the peak is worth the same."""
    return [
        {
            "workload": task.name,
            "share": 1,
            "lines": [[{"level": len(task.demands) - 1, "prefill": [1] * len(task.demands[-1]),
                        "decode": [1] * len(task.demands[-1])}]],
        }
        for task in candidates.whole.tasks
        if task.kind == "serving"
    ]  # fmt: skip


def _selection(
    document: Mapping[str, Any], certificate: Certificate, selected: _Selected, candidates: Candidates
) -> Iterator[Finding]:
    """What selects the columns is as the scenario and the plan have it."""
    if certificate["criterion"] != selected["criterion"]:
        yield Finding(
            "wrong-certificate",
            f"it is about {certificate['criterion']!r}, the scenario asks for the least {selected['criterion']}",
        )
    stated, latest = certificate["latest_s"], selected["latest_s"]
    if not _same_time(stated, latest):
        yield Finding("wrong-certificate", f"it is about plans that finish by {stated} s, this one does by {latest} s")
    value, counted = certificate["value"], _value(document, selected["criterion"])
    exact = selected["criterion"] == "cost"
    if not (value == counted if exact else math.isclose(value, counted, rel_tol=1e-6, abs_tol=len(document) + 100)):
        yield Finding("wrong-certificate", f"it is about a plan of {value}, this one comes to {counted}")
    if certificate["allow_suspect"] is not True:
        doubted = {offer.id for offer in candidates.catalog.offers if offer.quality}
        rows = [row for workload in document["workloads"] for row in workload["allocations"]]
        used = sorted({row["offer"] for row in rows} & doubted)
        if used:
            yield Finding("wrong-certificate", f"suspect prices are no part of it, but the plan rents {used[0]}")


def _same_time(stated: float | None, counted: float | None) -> bool:
    if stated is None or counted is None:
        return stated is counted
    return math.isclose(stated, counted, rel_tol=CLOSE)


def _witness(certificate: Certificate) -> Iterator[Finding]:
    if certificate["sha256"] != digest_of_witness(certificate):
        yield Finding("changed-certificate", "its prices were changed after it was made")


def _figures(
    certificate: Certificate, value: int, bound: int, share: float = SHARE, *, open_rates: bool = False
) -> Iterator[Finding]:
    """What it states of itself follows from its prices.

    With `open_rates`, some of which are only bounded, they may prove more here: a search for the least cover that is
    cut short gets further the more of them are exact, and more may be known by now than when the plan was made.
    """
    stated = certificate["bound"]
    if bound >= UNMET:
        yield Finding("wrong-certificate", "some workload has no way among all columns, and yet there is a plan")
        return
    if bound > value + slack(value):
        yield Finding("wrong-certificate", f"no plan can be below {bound}, this plan claims {value}")
    more = min(bound, value) - stated
    if more < -slack(value) or (more > slack(value) and not open_rates):
        yield Finding("wrong-certificate", f"its prices prove {bound}, not {stated}")
    gap = gap_of(value, stated, share)
    if not math.isclose(certificate["gap"], gap, rel_tol=1e-6, abs_tol=1e-12):
        yield Finding("wrong-certificate", f"gap {certificate['gap']} is not ({value} − {stated}) / {value}")


def as_proven(document: PlanDocument, standing: Standing) -> PlanDocument:
    """The document as far as it is proven, for showing: its status, bound and gap are those worked out again.

    The seal is left as it is, to tell which file this is.
    """
    if standing.proven:
        return document
    if document["status"] not in WITH_PLAN:
        return {**document, "certificate": None}
    money = standing.bound if not standing.problems and document["summary"]["objective"][0] != "carbon" else None
    summary: Summary = {
        **document["summary"],
        "bound_microusd": money,
        "bound_usd": None if money is None else money / 1e6,
        "gap": None if standing.problems else standing.gap,
    }
    return {**document, "status": "feasible", "summary": summary, "certificate": None}
