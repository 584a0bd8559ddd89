"""What would save money: one setting changed, and the whole question solved again with it.

Only what was proven is said, never an estimate: the saving is the least cost as it was asked less the one with the
setting, each worked out as `plan solve` works it out.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from planner.analysis.why.in_turn import fine_periods_s
from planner.candidates.offers import OWNED, models_sold, remembered_offers
from planner.candidates.program import SHARE
from planner.candidates.training_question import TrainingQuestion
from planner.errors import InputError
from planner.estimate.engines import ENGINES, ONE_MACHINE_ENGINES
from planner.estimate.frameworks import planned_framework
from planner.estimate.resolve import MOST_BATCH_TOKENS, larger_batches_tokens
from planner.estimate.serving_formats import FORMATS
from planner.estimate.serving_tiers import fleet_engine
from planner.estimate.software import SOFTWARE, STAGES, programs_of
from planner.optimize.process import worked_s
from planner.plan.notes.workloads import held_for_errors
from planner.plan.parts import currency_of
from planner.scenario.hardware_keys import COMMITMENT_HOURS
from planner.scenario.load import with_settings
from planner.units import format_duration, format_money, format_number

if TYPE_CHECKING:
    from planner.api.sessions import Session
    from planner.plan.model.plan import PlanDocument, ServingWorkload
    from planner.scenario.schema import ServingFleet, TrainingJob

ALLOWED_S, ALLOWED_MORE_S = 0.2, 3.0  # of a processor: no further question is begun after that
ALLOWED, ALLOWED_MORE = 0.1, 1.0  # of what the solve itself took, where that is more
WANTED_S, WANTED = 6.0, 0.5  # for what is wanted: as long as the solve, if that is no longer, else half of it
LISTED_AGAIN_JOB, LISTED_AGAIN_FLEET = 0.35, 0.2  # of the first listing, which another one with a change takes at most
SIZED_AGAIN = 0.7  # of the solve: rates under other targets are worked out anew
IN_TURN = 1.0  # of the solve: a calendar has many starts of each way, which are counted and not listed
SHOWN = 2
LEAST_SHARE = 0.01  # of the cost: what saves less is no advice
LATER = 4 / 3  # times a deadline
LOOSER = (1.25, 1.5, 2.0)  # times a target
LEAST_OF_WEIGHTS = 0.1  # of the cost: what weights of 8 bits save at least
WIDE = 1.4  # times a prediction: from where on what its error costs is worth a question more
LEAST_OF_TARGET = 0.1  # of the cost: what a looser target saves at least
_DAY_S = 86_400


class Advised(NamedTuple):
    """Sentences and --set texts; whether something was left untried for want of time."""

    found: list[tuple[str, str]]
    more: bool


class _Change(NamedTuple):
    """One setting, and what it takes to try it."""

    takes_s: float  # of a processor, at most
    words: str
    setting: str
    least: float = LEAST_SHARE  # of the cost: what saves less is no advice
    within: str = ""  # settings of which the first that saves enough is told
    wanted: bool = False  # worth as much time as the solve took, unless that was long


def advice(session: Session, document: PlanDocument, *, more: bool = False, most: int | None = None) -> Advised:
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
        return Advised([], False)
    if session.tie_tolerance != SHARE or not (more or document["schedule"] is None):
        return Advised([], False)
    began_s, solved_s, untried = worked_s(), session.solved_s, False
    allowed_s = max(ALLOWED_MORE_S, ALLOWED_MORE * solved_s) if more else max(ALLOWED_S, ALLOWED * solved_s)
    wanted_s = min(solved_s, max(WANTED_S, WANTED * solved_s))
    found: list[tuple[int, _Change]] = []
    told: set[str] = set()
    for one in islice(_changes(session, document), most):
        if one.within in told:
            continue
        until_s = max(allowed_s, wanted_s) if one.wanted else allowed_s
        if most is None and worked_s() - began_s + one.takes_s > until_s:
            untried = True
            continue
        try:
            changed = session.on(with_settings(scenario, [one.setting])).least_microusd()
        except InputError:
            continue  # what the scenario cannot state: a deadline past its calendar, software of other devices
        if changed is not None and cost - changed >= one.least * cost:
            found.append((cost - changed, one))
            told |= {one.within} - {""}
    found.sort(key=lambda each: -each[0])
    currency = currency_of(document)
    said = [
        (f"{one.words} would save {format_money(saved, currency=currency)} ({100 * saved / cost:.0f} %)", one.setting)
        for saved, one in found[: SHOWN if not more else None]
    ]
    return Advised(said, untried)


def _changes(session: Session, document: PlanDocument) -> Iterator[_Change]:
    """What is worth a try: jobs in turn, commitments, prices from memory, defaults, deadlines, spares, sizes."""
    costs = {workload["name"]: workload["cost_microusd"] for workload in document["workloads"]}
    least = LEAST_SHARE * sum(costs.values())
    yield from _in_turn(session, document)
    yield from _committed(session, document)
    if "pricing" in session.scenario.hardware.model_fields_set and remembered_offers(session.scenario, session.catalog):
        words = "terms whose prices are from memory, if their sellers confirm them,"
        yield _Change(session.solved_s, words, "hardware.allow_recalled=true", wanted=True)
    for fleet in session.scenario.serving:
        if costs.get(fleet.name, 0) >= least and (narrower := _of_8_bits(fleet)):
            words = f"{fleet.name}: weights in {narrower} instead of {fleet.weights}"
            setting = f"serving.{fleet.name}.weights={narrower}"
            yield _Change(SIZED_AGAIN * session.solved_s, words, setting, LEAST_OF_WEIGHTS, wanted=True)
    for job in session.scenario.training:
        if costs.get(job.name, 0) >= least:
            yield from _larger_batch(session, job)
    for job in sorted(session.scenario.training, key=lambda one: -costs.get(one.name, 0)):
        if costs.get(job.name, 0) >= least and job.deadline_s >= 3 * _DAY_S:
            days = round(job.deadline_s * LATER / _DAY_S)
            words = f"{job.name}: a deadline of {days} days instead of {format_number(job.deadline_s / _DAY_S)}"
            yield _Change(LISTED_AGAIN_JOB * session.listed_s, words, f"training.{job.name}.deadline={days} days")
    for fleet in session.scenario.serving:
        if fleet.spare_replicas and costs.get(fleet.name, 0) >= least:
            words = f"{fleet.name}: no spare replica"
            setting = f"serving.{fleet.name}.spare_replicas=0"
            yield _Change(LISTED_AGAIN_FLEET * session.listed_s, words, setting)
    for workload in sorted(document["workloads"], key=lambda one: -one["cost_microusd"]):
        if workload["kind"] == "serving" and workload["cost_microusd"] >= least:
            fleet = next(one for one in session.scenario.serving if one.name == workload["name"])
            yield from _sizes(fleet, workload, SIZED_AGAIN * session.solved_s)
    for job in session.scenario.training:
        if costs.get(job.name, 0) >= least:
            yield from _other_software(session, job)


def _of_8_bits(fleet: ServingFleet) -> str:
    """A format of 8 bits for weights of 16 that are the default; "" where the scenario chose, or none would do."""
    asked = "weights" in fleet.model_fields_set or fleet.throughput_tokens_per_s_per_device is not None
    if asked or fleet.tier == "measured" or FORMATS[fleet.weights].bits != 16:
        return ""
    narrower, rules = "q8_0" if fleet_engine(fleet) in ONE_MACHINE_ENGINES else "fp8", ENGINES[fleet_engine(fleet)]
    return narrower if not rules.formats or narrower in rules.formats else ""


def _larger_batch(session: Session, job: TrainingJob) -> Iterator[_Change]:
    """A batch that nobody chose, larger."""
    for batch_tokens in larger_batches_tokens(job, session.candidates.questions[job.name].arch):
        words = f"{job.name}: a batch of {batch_tokens / 1e6:g}M tokens, not the {MOST_BATCH_TOKENS / 1e6:g}M assumed,"
        setting = f"training.{job.name}.global_batch={batch_tokens / 1e6:g}M tokens"
        yield _Change(session.listed_s, words, setting, within=f"{job.name} batch", wanted=True)


def _other_software(session: Session, job: TrainingJob) -> Iterator[_Change]:
    """Programs that a job which names none is not predicted by: those may do with less, as they do it otherwise."""
    question = session.candidates.questions[job.name]
    given = job.framework or job.lora is not None or job.mfu or job.step_time is not None
    if given or not isinstance(question, TrainingQuestion) or question.base_tier != "analytic":
        return
    usual = {planned_framework(None, "", stage).name for stage in range(len(STAGES))}
    for name in programs_of(job, question.arch, "gpu"):
        if not usual & {*SOFTWARE[name].predicted}:
            words = f"{job.name}: {SOFTWARE[name].program}, named, in place of the software that is usual,"
            yield _Change(session.listed_s, words, f"training.{job.name}.framework={name}")


def _in_turn(session: Session, document: PlanDocument) -> Iterator[_Change]:
    """Jobs one after another, where some are rented for beside machines that are owned, or that quotas count."""
    hardware = session.scenario.hardware
    jobs = [workload for workload in document["workloads"] if workload["kind"] == "training"]
    rented = any(row["price_model"] != OWNED for job in jobs for row in job["allocations"])
    columns = sum(document["rejected"][job["name"]]["columns"] for job in jobs)
    counted = rented and (hardware.owned or hardware.quotas)
    for period_s in fine_periods_s(session.scenario, columns) if counted else ():
        written = format_duration(period_s)
        words = f"jobs in turn, in periods of {written},"
        yield _Change(IN_TURN * session.solved_s, words, f"periods={written}", within="periods")


def _committed(session: Session, document: PlanDocument) -> Iterator[_Change]:
    """Commitments no longer than the plan, of fleets that are rented for years where nobody said on which terms."""
    scenario = session.scenario
    stated = "pricing" in scenario.hardware.model_fields_set or scenario.hardware.contracts
    rented = any(
        row["price_model"] == "on_demand"
        for workload in document["workloads"]
        if workload["kind"] == "serving"
        for row in workload["allocations"]
    )
    fits = [model for model, hours in COMMITMENT_HOURS.items() if hours * 3600.0 <= scenario.horizon_s]
    if stated or not rented or not fits:
        return
    sold = models_sold(scenario, session.catalog)
    models = [model for model in fits if model in sold]
    if models:
        years = " or ".join(f"{COMMITMENT_HOURS[model] / COMMITMENT_HOURS['commitment_1y']:g}" for model in models)
        words = f"nodes committed to for {years} year{'' if years == '1' else 's'}"
        setting = f"hardware.pricing=[{', '.join((*scenario.hardware.pricing, *models))}]"
        yield _Change(session.solved_s, words, setting, wanted=True)


def _sizes(fleet: ServingFleet, workload: ServingWorkload, takes_s: float) -> Iterator[_Change]:
    """The targets that replicas are sized by, looser step by step, and the errors for which many of them stand."""
    name = workload["name"]
    rows = workload["allocations"]
    held = [one for row in rows if (one := held_for_errors(fleet, row, rows)) is not None]
    idle = {one.target for one in held if one.idle}
    points = [row["point"] for row in workload["allocations"] if row["point"]]
    for target in dict.fromkeys(point["sized_by"] for point in points):
        limit_s = workload["demand"]["targets_s"].get(target)
        if not limit_s:
            continue
        for factor in LOOSER:
            looser, now = (format_duration(round(limit_s * times, 6), exact=True) for times in (factor, 1.0))
            words = f"{name}: {target} of {looser} instead of {now}"
            setting = f"serving.{name}.slo.{target}={looser}"
            yield _Change(takes_s, words, setting, LEAST_OF_TARGET, f"{name} {target}", target in idle)
    errors = [(t["at_confidence_s"] or 0) / (t["predicted_s"] or math.inf) for one in points for t in one["targets"]]
    if max(errors, default=0) > 1:
        words = f"{name}: targets held at p50 of the errors, as {_measured(workload)} may allow,"
        setting = f"serving.{name}.confidence=p50"
        yield _Change(takes_s, words, setting, LEAST_OF_TARGET, wanted=max(errors) >= WIDE)


def _measured(workload: ServingWorkload) -> str:
    """What would narrow the errors by which a fleet is sized: "a measured TPOT on h200-sxm"."""
    rows = max(workload["allocations"], key=lambda row: row["cost_microusd"])
    targets = [row["point"]["sized_by"] for row in workload["allocations"] if row["point"]]
    sized = next((one for one in targets if one in workload["demand"]["targets_s"]), "ttft")
    return f"a measured {sized.partition('_')[0].upper()} on {rows['device']} (plan calibrate)"


def command(asking: str, setting: str) -> str:
    """The command line that gives exactly this."""
    return f"{asking} --set {shlex.quote(setting)}"
