"""What would save money: one setting changed, and the whole question solved again with it.

Only what was proven is said, never an estimate: the saving is the least cost as it was asked less the one with the
setting, each worked out as `plan solve` works it out.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from planner.candidates.program import SHARE
from planner.errors import InputError
from planner.plan.asked import currency_of
from planner.scenario.load import with_settings
from planner.units import format_money

if TYPE_CHECKING:
    from planner.api.sessions import Session
    from planner.plan.model.plan import PlanDocument

ALLOWED_S, ALLOWED_MORE_S = 0.2, 3.0  # of a processor: no further question is begun after that
LISTED_AGAIN_JOB, LISTED_AGAIN_FLEET = 0.35, 0.2  # of the first listing, which another one with a change takes at most
SHOWN = 2
LEAST_SHARE = 0.01  # of the cost: what saves less is no advice
LATER = 4 / 3  # times a deadline
_DAY_S = 86_400


def advice(
    session: Session, document: PlanDocument, *, more: bool = False, most: int | None = None
) -> list[tuple[str, str]]:
    """Settings that would save at least a hundredth of the cost, the most worth first: a sentence and a --set text.

    Parameters
    ----------
    session, document
        A solved question, and its plan.
    more
        Take seconds instead of tenths of one, and try what fleets are asked for, too.
    most
        Changes that are tried, whatever time they take, so that the same is found on any machine.
    """
    cost = document["summary"]["cost_microusd"]
    scenario = session.scenario
    if not cost or document["status"] != "optimal" or scenario.objective[0] != "cost" or scenario.uncertainty:
        return []
    if session.tie_tolerance != SHARE or not (more or document["schedule"] is None):
        return []
    began_s, allowed_s, found = time.process_time(), ALLOWED_MORE_S if more else ALLOWED_S, []
    for share, words, setting in islice(_changes(session, document), most):
        if most is None and time.process_time() - began_s + share * session.listed_s > allowed_s:
            continue
        try:
            other = with_settings(scenario, [setting])
        except InputError:
            continue  # what the scenario cannot state, as a deadline past its calendar
        changed = session.on(other).least_microusd()
        if changed is not None and cost - changed >= LEAST_SHARE * cost:
            found.append((cost - changed, words, setting))
    found.sort(key=lambda one: -one[0])
    currency = currency_of(document)
    return [
        (f"{words} would save {format_money(saved, currency=currency)} ({100 * saved / cost:.0f} %)", setting)
        for saved, words, setting in found[: SHOWN if not more else None]
    ]


def _changes(session: Session, document: PlanDocument) -> Iterator[tuple[float, str, str]]:
    """Share of the listing that it takes, words and setting of what is worth a try: the dearest jobs first."""
    costs = {workload["name"]: workload["cost_microusd"] for workload in document["workloads"]}
    least = LEAST_SHARE * sum(costs.values())
    for job in sorted(session.scenario.training, key=lambda one: -costs.get(one.name, 0)):
        if costs.get(job.name, 0) >= least and job.deadline_s >= 3 * _DAY_S:
            days = round(job.deadline_s * LATER / _DAY_S)
            words = f"{job.name}: a deadline of {days} days instead of {job.deadline_s / _DAY_S:.3g}"
            yield LISTED_AGAIN_JOB, words, f"training.{job.name}.deadline={days} days"
    for fleet in session.scenario.serving:
        if fleet.spare_replicas and costs.get(fleet.name, 0) >= least:
            words = f"{fleet.name}: no spare replica"
            yield LISTED_AGAIN_FLEET, words, f"serving.{fleet.name}.spare_replicas=0"


def command(asking: str, setting: str) -> str:
    """The command line that gives exactly this."""
    return f"{asking} --set {shlex.quote(setting)}"
