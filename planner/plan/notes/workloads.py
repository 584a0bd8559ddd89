"""What plans of runs and of fleets take for granted, what it costs, and what a reader of them should not overlook."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from planner.architecture.model import is_text_part
from planner.candidates.offers import OWNED
from planner.candidates.serving import ServingQuestion
from planner.candidates.training_question import TrainingQuestion
from planner.equations.reliability import useful_price
from planner.estimate import resolve_run as defaults
from planner.estimate.engines import DEFAULT_ENGINE, ENGINES, engine_rules
from planner.estimate.kernels import is_experimental, not_exported
from planner.estimate.published import published_rate
from planner.estimate.resolve import base_tier
from planner.estimate.resolve_run import DEFAULT_MTBF_PER_DEVICE_S
from planner.estimate.resolve_serving import LONGEST_SPREADS, speculation_of
from planner.estimate.serving_constants import uncovered
from planner.estimate.serving_formats import FORMATS
from planner.estimate.serving_spares import repair_s
from planner.estimate.serving_tiers import fleet_engine
from planner.scenario.schema import Failures, TrainingJob
from planner.traffic.model import ALIKE
from planner.units import format_bytes, format_duration, format_number

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import Allocation, Workload
    from planner.plan.model.rows import TrainingAllocation
    from planner.scenario.schema import ServingFleet


def run_assumptions(question: TrainingQuestion) -> Iterator[str]:
    """What is taken for granted of failures, checkpoints and progress."""
    job = question.job
    analytic = base_tier(job, question.arch) == "analytic"
    if job.failures is None and not analytic and not (job.mfu or job.step_time):
        yield f"{job.name}: no failures on top: the rule of thumb comes from budgets of whole runs, restarts included"
    elif job.failures is None:
        yield f"{job.name}: failures as at Llama 3 405B, {_rates(Failures.model_validate({}), job, analytic)}"
    elif isinstance(job.failures, Failures):
        yield f"{job.name}: failures: {_rates(job.failures, job, analytic)}"
    if job.progress_tokens:
        yield f"{job.name}: {question.spec.remaining_share:.1%} of the tokens are left to train"
    yield from _under_way(question)


def _rates(given: Failures, job: TrainingJob, analytic: bool) -> str:
    mtbf_s = given.mtbf_per_device_s or defaults.DEFAULT_MTBF_PER_DEVICE_S
    bandwidth = given.checkpoint_bandwidth_bytes_per_s or defaults.DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    sigma = defaults.DEFAULT_STRAGGLER_SIGMA if given.stragglers is None else given.stragglers
    restart_s = (given.restart_s or defaults.DEFAULT_RESTART_S) + (given.detection_s or 0.0)
    loss = defaults.scale_loss_of(given, analytic)
    size = f", {loss:.0%} lost over many hosts" if loss else ""
    interval = "saved when it loses least" if job.checkpoint_every_s is None else "saved as often as given"
    return (
        f"one in {mtbf_s / 3600:,.0f} h of a device, {format_duration(restart_s)} to go on, checkpoints at "
        f"{format_bytes(bandwidth)}/s per host of up to {defaults.DEVICES_PER_HOST} devices, "
        f"step times spread by {sigma:.1%}{size}, spare machines at hand, {interval}"
    )


def _under_way(question: TrainingQuestion) -> Iterator[str]:
    run, job = question.under_way, question.job
    if run is None or job.step_time is None:
        return
    given = job.step_time.layout.model_fields_set
    layout = "as given" if given else "taken to be the fastest that fits"
    yield (
        f"{job.name}: times on {run.device} are the model's × {run.ratio:.3g}: a step took "
        f"{format_duration(run.measured_step_s)} on {run.count} × {run.shape}, predicted "
        f"{format_duration(run.predicted_step_s)} (layout {layout}); other devices are predicted as ever"
    )


def run_reasons(row: TrainingAllocation) -> Iterator[str]:
    """What failures and checkpoints take of the wall time of one row."""
    run = row["run"]
    if not run["modelled"]:
        return
    lost = 1.0 - run["goodput"]
    what = "failures and preemptions" if row["price_model"] == "spot" else "failures"
    fails = "nothing fails" if run["mtbf_hours"] is None else f"{_about(run['expected_failures'], what)} expected"
    every = format_duration(run["checkpoint_every_s"])
    yield (
        f"{lost:.1%} of the time goes to failures, checkpoints and scale: {fails}, "
        f"{format_bytes(run['checkpoint_bytes'])} saved every {every} in {format_duration(run['checkpoint_s'])}"
    )
    if run["storage_usd"] is not None:
        dollars = f"${run['storage_usd']:,.2f}"
        yield f"checkpoints take up to {format_bytes(run['storage_bytes'])} of storage: {dollars}, not in the cost"

    if row["price_model"] == "spot":
        price = row["price_microusd_per_hour"] / 1e6
        useful = float(useful_price(price, run["goodput"]))
        yield f"spot: ${price:,.2f} an hour are ${useful:,.2f} an hour of steps that count"


def _about(count: float, what: str) -> str:
    if count < 0.1:
        return f"less than 0.1 {what}"
    shown = f"{count:.1f}" if count < 10 else f"{math.floor(count + 0.5):,}"
    return f"about {shown} {what}"


FEW_REPLICAS = 4  # of a fleet: fewer may be hardly busy for want of load
NEARLY = 1.25  # times what holds at the confidence: a target beyond that leaves room for more
LOOSE = 1.5  # times a prediction: a target so far above it is kept by the error band alone

_FRACTION = {
    "of_device": "of a device",
    "of_free": "of what weights leave free",
    "static": "for weights and cache",
    "local": "of a device, the input embedding in the memory of the host",
}


def serving_assumptions(question: ServingQuestion) -> Iterator[str]:
    """What the analytic tier fills in."""
    fleet, limits = question.fleet, question.fleet.limits
    rules = ENGINES[fleet_engine(fleet)]
    if fleet.engine is None:
        yield f"{fleet.name}: engine {rules.name}"
    if fleet.model is not None and fleet.model.preset and is_text_part(question.arch.family):
        yield f"{fleet.name}: the text part of {question.arch.name} alone, and no pictures"
    if limits.max_num_seqs is None or limits.max_num_batched_tokens is None:
        yield f"{fleet.name}: sequences at once and tokens of a step as {rules.name} limits them on each device"
    if limits.memory_fraction is None:
        yield f"{fleet.name}: the engine fills {rules.memory_fraction:.0%} {_FRACTION[rules.fraction]} ({rules.name})"
    if fleet.users:
        yield from _users(fleet)
    elif fleet.variability_given is None and fleet.trace is None:
        yield f"{fleet.name}: arrivals are Poisson"
    if (speculation := speculation_of(fleet)) is not None:
        share = f"{100 * float(np.max(speculation.draft_share)):.2g}"
        own = "the memory of one of its layers"
        if speculation.draft is None:
            yield f"{fleet.name}: a drafted token takes {share} % of a step of the model, and the draft {own}"
    if fleet.targets_s:
        yield f"{fleet.name}: latency targets hold at p{100 * fleet.confidence_share:g} of the error bands"
    if (question.requests.longest_tokens > question.requests.input_tokens + question.requests.output_tokens).any():
        yield f"{fleet.name}: the longest request lies {LONGEST_SPREADS:g} standard deviations above the mean"
    yield f"{fleet.name}: every replica is a queue of its own, behind a router that splits requests evenly"
    if fleet.availability is not None:
        mtbf, gone = format_duration(DEFAULT_MTBF_PER_DEVICE_S), format_duration(repair_s(fleet))
        yield f"{fleet.name}: a device fails every {mtbf}, and its replica is replaced in {gone}"


def _users(fleet: ServingFleet) -> Iterator[str]:
    """How users come to send what they do."""
    think = format_duration(fleet.traffic.think_s)
    yield f"{fleet.name}: users think for {think} on average, at random, once they have the whole answer"
    yield f"{fleet.name}: each user stays with one replica; replicas have users in proportion to what they can serve"
    if fleet.peak_factor > 1:
        yield f"{fleet.name}: the mean rate as if answers took as long at all hours as at the peak: it is no less"


class Held(NamedTuple):
    """A target for whose error band there are more replicas than the prediction needs."""

    target: str
    limit_s: float
    predicted_s: float
    at_confidence_s: float
    idle: bool  # less than one request at a time in each


def held_for_errors(fleet: ServingFleet, row: ServingAllocation, rows: Sequence[ServingAllocation]) -> Held | None:
    """Whether the replicas of a row are many for what the prediction of a target may be off by.

    Parameters
    ----------
    fleet
        What it asks for by number, spares or the fewest, is there for no error.
    row
        Of the fleet.
    rows
        All of the fleet: what stands beside it at its time counts, however small each is.
    """
    point, beside = row["point"], _beside(row, rows)
    replicas = sum(one["replicas"] for one in beside)
    if not point or replicas - fleet.spare_replicas < FEW_REPLICAS or replicas <= fleet.min_replicas:
        return None
    if sum(one["count"] for one in beside) == 1:
        return None  # one node is the least, and is filled with replicas
    for one in point["targets"]:
        likely_s, sure_s = one["predicted_s"], one["at_confidence_s"]
        if one["name"] != point["sized_by"] or not likely_s or not sure_s or likely_s * LOOSE > one["target_s"]:
            continue
        idle = point["sequences"] < 1 and row["role"] == "whole"  # a pool that reads prompts has few at a time
        if idle or sure_s * NEARLY >= one["target_s"]:
            return Held(one["name"], one["target_s"], likely_s, sure_s, idle)
    return None


def _beside(row: ServingAllocation, rows: Sequence[ServingAllocation]) -> list[ServingAllocation]:
    """Rows of the same pool, or of whole replicas, that run when one does."""
    return [one for one in rows if (one["role"], one["start_hours"]) == (row["role"], row["start_hours"])]


def _held_for_errors(fleet: ServingFleet, rows: Sequence[ServingAllocation]) -> Iterator[str]:
    """What much of a fleet stands there for, where that is the error of the prediction; told of its largest row."""
    some = ((row, held_for_errors(fleet, row, rows)) for row in sorted(rows, key=lambda one: -one["replicas"]))
    row, held = next(((row, held) for row, held in some if held is not None), (None, None))
    if row is not None and held is not None and row["point"]:
        count = sum(one["replicas"] for one in _beside(row, rows))
        likely, sure, limit = (format_duration(s) for s in (held.predicted_s, held.at_confidence_s, held.limit_s))
        pool = "" if row["role"] == "whole" else f"{row['role']} "
        busy = f", with {format_number(row['point']['sequences'], 2)} requests at a time in each" if held.idle else ""
        yield (
            f"{fleet.name}: {'most' if held.idle else 'many'} of its {count} {pool}replicas are there for the "
            f"error of the prediction: {held.target}, {likely} as predicted, is {sure} of {limit} at "
            f"p{100 * fleet.confidence_share:g}{busy}; a looser target costs less, and "
            f"--set 'serving.{fleet.name}.confidence=p50' shows what the error does"
        )


def published_rates(question: ServingQuestion, workloads: Sequence[Workload]) -> tuple[list[str], bool]:
    """Rates that were published and stand in a plan, each with its source; whether anything of it is predicted."""
    fleet, told = question.fleet, []
    rows = [row["device"] for one in workloads if one["name"] == fleet.name for row in one["allocations"]]
    for name in dict.fromkeys(rows):
        device = question.catalog.devices.get(name)
        found = published_rate(fleet, question.arch, device) if device else None
        if device is not None and found is not None:
            fact = device.facts[f"published.{found.model}.{found.weights}"]
            told.append(
                f"{fleet.name}: {found.devices} {name} under {device.engine} make {found.output_tokens_per_s:,.0f} "
                f"output tokens/s for one user at a time, as published ({fact.as_of}, {fact.source}); how many more "
                "they make for several at once, and the time to the first token, are not published"
            )
    return told, not rows or len(told) < len(set(rows))


def serving_warnings(question: ServingQuestion, workloads: Sequence[Workload]) -> Iterator[str]:
    """What may mislead: names not known, targets not checked, constants not fitted."""
    fleet = question.fleet
    if not question.arch.layers:
        yield f"{fleet.name}: only the parameter count is known; the KV cache is not counted in memory"
    stored = question.stored
    if stored and FORMATS[fleet.weights].bits > FORMATS[stored].bits:
        less = FORMATS[fleet.weights].bits / FORMATS[stored].bits
        yield (
            f"{fleet.name}: {question.arch.name} is published in {stored}, and {fleet.weights} takes {less:.2g} times "
            f"the memory, of a checkpoint that somebody makes: --set serving.{fleet.name}.weights={stored}"
        )
    lengths = np.asarray(question.requests.input_tokens + question.requests.output_tokens, dtype=float)
    most = question.arch.max_positions or math.inf
    beyond = np.asarray(fleet.traffic.share) * (lengths > most)
    if beyond.any():
        some = "its" if (lengths > most).all() else f"{format_number(100 * beyond.sum(), 2)} % of its"
        yield (
            f"{fleet.name}: {some} requests ({np.average(lengths, weights=beyond):,.0f} tokens on average) are longer "
            f"than the {most:,} positions of {question.arch.name}: no engine takes them as it is"
        )
    if fleet.autoscaling is not None and not fleet.traffic.profile:
        repairs = "; its start-up is how long a repair takes" if fleet.availability is not None else ""
        yield f"{fleet.name}: the number of replicas follows no load over the day, for none is known{repairs}"
    rows = [row for workload in workloads if workload["name"] == fleet.name for row in workload["allocations"]]
    devices = question.catalog.devices
    own = {devices[row["device"]].engine for row in rows if row["device"] in devices}  # of vendors, there alone
    if fleet.engine is not None and engine_rules(fleet.engine) is None and own != {fleet.engine.lower()}:
        known = ", ".join(ENGINES)
        yield f"{fleet.name}: the engine '{fleet.engine}' is not known ({known}), {DEFAULT_ENGINE} is assumed"
    if fleet.targets_s and question.tier != "analytic":
        yield f"{fleet.name}: its latency targets are not checked: the {question.tier} tier predicts no latency"
    if fleet.users and _in_step(question, rows):
        yield (
            f"{fleet.name}: answers of one length and less thinking than waiting keep users in step with each other: "
            "first tokens may come more than twice as late as predicted. --simulate shows it; lengths with a spread, "
            "{mean:, p95:}, are predicted better"
        )
    pools = {_place(row) for row in rows if "role" in row and row["role"] != "whole"}
    if len(pools) > 1:  # where there are several futures, which do not hold them together
        yield (
            f"{fleet.name}: its pools lie in {len(pools)} places ({', '.join(sorted(pools)[:3])}), and the cache of "
            f"each request goes between them: neither its time nor its price is counted; {_in_one(fleet, rows)} keeps "
            "them in one"
        )
    places = dict.fromkeys(map(_place, rows))
    if len(places) > 1 and fleet.targets_s:
        yield (
            f"{fleet.name} runs at {len(places)} places ({', '.join(list(places)[:3])}): its targets leave out the way "
            f"to the users; {_in_one(fleet, rows)} keeps it in one"
        )
    for name in dict.fromkeys(row["device"] for row in rows):
        if name in devices and is_experimental(fleet, devices[name]) and question.tier != "measured":
            yield (
                f"{fleet.name} on {name}: {fleet_engine(fleet)} calls its own support of it experimental; try it "
                f"before you rent, or leave it out: hardware.deny: [{name}]"
            )
        mine = cast("list[ServingAllocation]", [row for row in rows if row["device"] == name])
        apart, largest = any(map(_shares_a_machine, mine)), max(row["devices_per_shape"] for row in mine)
        spans = any(row["devices_per_replica"] > row["devices_per_shape"] for row in mine)
        why = name in devices and not_exported(
            fleet, devices[name], apart=question.arch.is_moe and apart, shape_devices=largest, spans=spans
        )
        if why:
            yield f"{fleet.name} on {name}: {why}"
    yield from _on_shares(question, rows)
    yield from _held_for_errors(fleet, cast("list[ServingAllocation]", rows))
    yield from _outages(question, rows)
    for row in rows:
        if question.tier == "analytic" and "tier" in row and row["tier"]["tag"] in ("inherited", "unfitted"):
            yield _not_measured(question, row)


def _on_shares(question: ServingQuestion, rows: Sequence[Allocation]) -> Iterator[str]:
    """Shares of a device, for which `plan export` writes no command line."""
    shapes = question.catalog.shapes
    for name in dict.fromkeys(row["shape"] for row in rows if row["shape"] in shapes):
        if shapes[name].kind == "share":
            yield (
                f"{question.fleet.name} on {name}: no program that plan export writes for runs it on a share of a "
                "device: try there by hand what it writes for a whole one, before you rent many"
            )


def measured_somewhere(fleet: ServingFleet, devices: Collection[str]) -> Iterator[str]:
    """That what was measured on one kind of device counts on all that may be used, of which the cheapest is taken.

    Parameters
    ----------
    fleet
        Its throughput may be given.
    devices
        On which it has a way to run.
    """
    given = fleet.throughput_tokens_per_s_per_device
    if given is not None and len(devices) > 1:
        yield (
            f"{fleet.name}: {format_number(given)} tokens/s a device are taken to hold on all {len(devices)} kinds of "
            "device that may be used, whichever they were measured on: name that one in hardware.allow, or give each "
            "its own rates (profile)"
        )


def _shares_a_machine(row: Allocation) -> bool:
    """Whether a machine holds several of a row's replicas."""
    return "devices_per_replica" in row and row["devices_per_shape"] >= 2 * row["devices_per_replica"]


def _place(row: Allocation) -> str:
    """Provider and region; of machines that are owned at no named place one word."""
    return " ".join(dict.fromkeys((row["provider"], row["region"])))


def _in_one(fleet: ServingFleet, rows: Sequence[Allocation]) -> str:
    """What keeps a fleet at one place: its regions; and, where names of regions are of several sellers, one of them."""
    largest = max(rows, key=lambda row: (row["region"] != OWNED, row["cost_microusd"], row["devices"]))
    sellers = "" if len({row["provider"] for row in rows}) == 1 else "limits.max_providers: 1 with "
    return f"{sellers}--set serving.{fleet.name}.regions={largest['region']}"


def _outages(question: ServingQuestion, rows: Sequence[Allocation]) -> Iterator[str]:
    """What an availability leaves out; and spot shapes that are taken away where none is asked for."""
    fleet, spot = question.fleet, question.scenario.hardware.spot
    taken = [row for row in rows if row["price_model"] == "spot"]
    if fleet.availability is not None:
        yield (
            f"{fleet.name}: its availability counts devices that fail{' and spot that is taken away' * bool(taken)}, "
            "alone: hosts, engines, sellers fail, too, and what a seller promises of one machine is not known here"
        )
        if any(row["price_model"] == OWNED for row in rows):
            yield (
                f"{fleet.name}: its availability takes a failed machine of one's own as replaced in "
                f"{format_duration(repair_s(fleet))}: another has to stand idle for it"
            )
    elif taken and spot is not None and spot.interruptions_per_s:
        shapes = sum(row["count"] for row in taken)
        a_day = spot.interruptions_per_s * 86_400 * shapes
        yield (
            f"{fleet.name}: {shapes:,} shape{'s' * (shapes > 1)} of it on spot: {a_day:,.1f} interruptions a day in "
            "all, and no spare is counted for them; availability: 99.9 % counts how long they are gone"
        )


def _in_step(question: ServingQuestion, rows: Sequence[Allocation]) -> bool:
    """Whether some users get answers all alike and think for less time than those take."""
    thinks, points = question.fleet.traffic.think_s, [row["point"] for row in rows if "point" in row]
    alike = len(question.requests.output_tokens) == 1 and bool(
        question.requests.output_second_moment[0] <= question.requests.output_tokens[0] ** 2 * (1 + ALIKE)
    )
    return alike and any(thinks < (point["e2e_s"]["mean"] or math.inf) for point in points if point)


def _not_measured(question: ServingQuestion, row: ServingAllocation) -> str:
    """What of a row nobody measured, by how much it is sized lower for it, and what would tell more."""
    tier, device = row["tier"], question.catalog.devices[row["device"]]
    lacking = uncovered(
        question.catalog, device, tier["engine"], question.fleet.weights, _kind(row), experts=question.arch.is_moe
    )
    plain = f"no row of {tier['engine']} on {tier['family']} gives a time per token"
    band, said = tier["tpot"], " and ".join(f"no row covers {one}" for one in lacking) or plain
    spread = f"; TPOT may be {band['p10']:.2f} to {band['p90']:.2f} of that predicted (p10 to p90)" if band else ""
    most = max((one["margin"] or 1.0 for one in (tier["tpot"], tier["throughput"]) if one), default=1.0)
    lower = f": sized {1 - 1 / most:.0%} lower" if most > 1 else ""
    return (
        f"{question.fleet.name} on {row['device']}: {said} ({tier['tag']}){lower}{spread}. "
        "One measured throughput (throughput of the fleet) takes the place of the estimate"
    )


def _kind(row: ServingAllocation) -> str:
    """What of a row's layout makes its times less known, where bands know that of layouts by themselves."""
    return "disaggregated" if row["role"] != "whole" else "pipeline" if row["layout"]["pp"] > 1 else ""
