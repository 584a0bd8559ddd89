"""What the plan takes for granted: defaults that were filled in, facts it rests on, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.architecture.load import of_same_shape
from planner.candidates.calendar import RESERVED
from planner.candidates.counts import EVERY_COUNT_TO, LEAST_SHAPES, SLACK_COUNTS, SMALLEST_WINDOW
from planner.candidates.layouts import BATCH_TOLERANCE, SHARDING
from planner.candidates.machines import UNLAUNCHED
from planner.candidates.offers import LARGEST_JOB
from planner.candidates.rates import RatesQuestion
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion
from planner.candidates.training_question import TrainingQuestion
from planner.catalog.model import Device, Provenance
from planner.equations.communication import LINK_EFFICIENCY
from planner.equations.machine_costs import HOURS_PER_YEAR
from planner.estimate.bands import beyond, beyond_power
from planner.estimate.bill import Bill, bill_of
from planner.estimate.frameworks import planned_framework, software_stage
from planner.estimate.resolve import (
    ADAPTER_BATCH_SEQUENCES,
    batch_tokens_advised,
    batch_tokens_assumed,
    framework_of,
    sequences_of,
    strange_network,
)
from planner.estimate.serving import TEXTBOOK
from planner.estimate.software import LIBRARIES, PROGRAMS, SOFTWARE, Asked, asked_on, closest, lack
from planner.estimate.training import activations_known
from planner.estimate.training_memory import FRAGMENTATION_SHARE
from planner.plan.notes.idle_keys import idle_keys
from planner.plan.notes.market import (
    bought_facts,
    bought_warnings,
    calendar_assumptions,
    market_warnings,
    short_terms,
    waiting_jobs,
)
from planner.plan.notes.workloads import (
    measured_somewhere,
    published_rates,
    run_assumptions,
    serving_assumptions,
    serving_warnings,
)
from planner.plan.rows.parted import mix_assumptions
from planner.plan.rows.serving import given_assumptions
from planner.units import counted, format_count, format_percent

if TYPE_CHECKING:
    from planner.plan.model.bought import BoughtParts
    from planner.plan.model.plan import Allocation, Fact, TrainingWorkload, Workload
    from planner.plan.model.rows import TrainingAllocation

TOLD_POWER = 1.05  # of a band that is wider outside of the measurements: less is nobody's concern
FEW_STEPS = 100  # of a run, below which a batch is likely not meant


def assumptions_of(candidates: Candidates, workloads: Sequence[Workload], bought: BoughtParts) -> list[str]:
    """Everything that was not in the scenario and shaped the plan.

    Parameters
    ----------
    candidates
        The ways, with their scenario and catalog.
    workloads
        As they stand in the plan, with the rows that were chosen; without a plan they have none.
    bought
        What is bought ahead, as it stands in the plan.
    """
    lines: list[str] = []
    apart = candidates.whole_shared is None
    for question in candidates.questions.values():
        asked = question.job if isinstance(question, TrainingQuestion) else question.fleet
        named = (asked.model and asked.model.preset) or ""
        if shape := of_same_shape(named):
            lines.append(f"{asked.name}: {named} has the shape of {shape}")
        lines += _training(question) if isinstance(question, TrainingQuestion) else _serving(question, workloads, apart)
    lines += [*_hardware(candidates, workloads), *calendar_assumptions(candidates, bought, workloads)]
    lines += _beside_fleets(candidates, workloads)
    lines += [line for name in candidates.questions for line in _left_out_unlaunched(candidates, name)]
    return list(dict.fromkeys(lines))


def _training(question: TrainingQuestion) -> Iterator[str]:
    job, given = question.job, question.job.model_fields_set
    if job.sequence_length is None:
        yield f"{job.name}: sequence length {question.spec.sequence_length}"
    if job.global_batch is None:
        yield f"{job.name}: {_usual_batch(question)}"
    if "precision" not in given:
        yield f"{job.name}: precision {job.precision}"
    if "optimizer" not in given:
        yield f"{job.name}: optimizer {job.optimizer}"
    yield from run_assumptions(question)
    share = FRAGMENTATION_SHARE[job.stack.allocator]
    yield f"{job.name}: {job.stack.attention} attention, {job.stack.cross_entropy} loss, fragmentation {share:.0%}"
    if len(question.rules.batches) > 1:
        tried = ", ".join(f"{batch:g}" for batch in question.rules.batches)
        yield f"{job.name}: global batches tried: {tried} sequences"
    if job.mix_within_job:
        yield from mix_assumptions(question)
    if job.critical_batch_tokens is None:
        yield f"{job.name}: every token counts the same at any batch (no critical_batch given)"


def _serving(question: ServingQuestion, workloads: Sequence[Workload], apart: bool) -> Iterator[str]:
    if isinstance(question, RatesQuestion):
        yield from given_assumptions(question)
        return
    fleet, given = question.fleet, question.fleet.model_fields_set
    if fleet.users and fleet.peak_factor == 1:
        yield f"{fleet.name}: as many users at every hour"
    elif fleet.peak_factor_given is None:
        mean = "number of users" if fleet.users else "rate"
        yield f"{fleet.name}: peak {fleet.peak_factor:g} × the mean {mean}"
    if "target_load" not in given:
        yield f"{fleet.name}: replicas planned to {fleet.target_load:.0%} of the full load"
    if "weights" not in given:
        why = ", as the model is published" if fleet.weights == question.stored else ""
        yield f"{fleet.name}: weights {fleet.weights}{why}"
    published, predicted = published_rates(question, workloads)
    yield from published
    if predicted and question.tier == "analytic":
        yield from serving_assumptions(question)
    elif predicted and fleet.throughput_tokens_per_s_per_device is None:
        yield f"{fleet.name}: roofline at 80 % of bandwidth, 50 % of compute, batch as large as memory allows"
    if not fleet.targets_s:
        yield f"{fleet.name}: no latency target"
    if apart:
        yield f"{fleet.name}: a shape hosts replicas of one fleet"


def _hardware(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    scenario = candidates.scenario
    yield "month = 730 h"
    yield (
        f"counts of shapes: every one to {EVERY_COUNT_TO}, then steps of 1/{EVERY_COUNT_TO}, up to {SLACK_COUNTS} "
        f"times the devices that deadline and memory need (at least {SMALLEST_WINDOW}, or {LEAST_SHAPES} shapes), or "
        f"{LARGEST_JOB:,} where none of these is on time; "
        f"a batch may move by {BATCH_TOLERANCE:.0%} to what a layout allows"
    )
    analytic = [row for row in _rows(workloads) if "error_band" in row and row["error_band"]["tier"] == "analytic"]
    if len(analytic) < len(list(_rows(workloads))):
        told = " outside the analytic tier" if analytic else ""
        yield f"links carry {LINK_EFFICIENCY:.0%} of their one-way rate{told}"
    for code, dollars in scenario.rates.dollars.items():
        yield f"one {code} is ${dollars:g}, as of {scenario.rates.as_of} (currency)"
    if scenario.hardware.assume_inter_node_bytes_per_s is not None:
        rate = scenario.hardware.assume_inter_node_bytes_per_s * 8 / 1e9
        yield f"inter-node network of shapes without a sourced one: {rate:g} Gbit/s each (assume_inter_node)"
    for owned in scenario.hardware.owned:
        if owned.capital is not None:
            yield (
                f"{owned.shape}: what it cost is spread evenly over {owned.capital.years:g} years of "
                f"{HOURS_PER_YEAR:g} h, without interest; hours in which it stands idle are in no plan"
            )
    for row in _rows(workloads):
        shape = candidates.catalog.shapes[row["shape"]]
        if "mfu_source" in row and row["mfu_source"].startswith("analytic"):
            yield f"{row['device']}: step times from the {row['mfu_source']}: {_constants(candidates, row)}"
            yield _software(candidates, workloads, row)
        if "mfu_source" in row and row["mfu_source"].startswith("rule"):
            yield f"{row['device']}: {row['mfu']:.1%} of peak in training ({row['mfu_source'].split(':')[0]})"
        bill = _bill(candidates, row)
        if bill is not None:
            yield f"{row['provider']}: jobs on what is rented by the hour are billed {bill.words()}"
        if shape.cluster_required and row["count"] > _jobs(row):
            yield f"{shape.id}: its network holds inside one placement group or cluster product"


def _jobs(row: Allocation) -> int:
    if "jobs" in row:
        return row["jobs"]
    return 1


def _software(candidates: Candidates, workloads: Sequence[Workload], row: TrainingAllocation) -> str:
    """The software whose kernels and overlap a step time is predicted with."""
    name = next(one["name"] for one in workloads if any(mine is row for mine in one["allocations"]))
    question = candidates.questions[name]
    device, sharding = candidates.catalog.devices[row["device"]], SHARDING.index(row["layout"]["sharding"])
    stage = int(software_stage(sharding, row["devices"] // _jobs(row)))
    given = framework_of(question.job) if isinstance(question, TrainingQuestion) else None
    software = planned_framework(given, device.family, stage).name
    return f"{name}: software as {software} does by default"


def _constants(candidates: Candidates, row: TrainingAllocation) -> str:
    """The fitted shares that matter most, in words."""
    found = candidates.catalog.training_families.get(row["error_band"]["family"])
    if found is None:
        return "starting values, fitted to nothing"
    named = {"gemm": "matrix products", "memory": "memory bandwidth", "network": "network", "link": "fast links"}
    shares = [f"{text} {found.constants[name]:.0%}" for name, text in named.items() if name in found.constants]
    return "shares of vendor rates: " + ", ".join(shares)


def _rows(workloads: Sequence[Workload]) -> Iterator[Allocation]:
    for workload in workloads:
        yield from workload["allocations"]


def warnings_of(candidates: Candidates, workloads: Sequence[Workload], bought: BoughtParts) -> list[str]:
    """What a reader should not overlook.

    Parameters
    ----------
    candidates
        The ways, with their scenario and catalog.
    workloads
        As they stand in the plan, with the rows that were chosen; without a plan they have none.
    bought
        What is bought ahead, as it stands in the plan.
    """
    lines = [*short_terms(candidates), *waiting_jobs(candidates)]
    for name, question in candidates.questions.items():
        if isinstance(question, TrainingQuestion) and not activations_known(question.arch):
            lines.append(
                f"{name}: only the parameter count is known; activations are not counted in memory, and time is the "
                "rule of thumb's"
            )
        if isinstance(question, TrainingQuestion) and question.spec.sequence_length > (
            question.arch.max_positions or question.spec.sequence_length
        ):
            lines.append(
                f"{name}: sequences of {question.spec.sequence_length:,.0f} tokens are more than the "
                f"{question.arch.max_positions:,} positions of {question.arch.name}: what is trained is another model"
            )
        lines += _frozen_too_large(candidates, name)
        if isinstance(question, ServingQuestion) and not isinstance(question, RatesQuestion):
            lines += serving_warnings(question, workloads)
            lines += measured_somewhere(question.fleet, {site.device.id for site in candidates.tables[name].sites})
        if not isinstance(question, RatesQuestion) and any(group.chunk_tokens for group in question.arch.layers):
            lines.append(
                f"{name}: its layers that keep a state are timed by their FLOPs and bytes with constants of other "
                "models: no measured row has any, so measure one machine before many are rented"
            )
    for workload in workloads:
        if workload["kind"] == "training":
            asked = candidates.questions[workload["name"]]
            assert isinstance(asked, TrainingQuestion)
            lines += [line for row in workload["allocations"] for line in _few_steps(workload, asked, row)]
            lines += [line for row in workload["allocations"] for line in _strange(workload, row)]
            lines += [line for row in workload["allocations"] for line in _beyond(candidates, workload, row)]
            lines += [line for row in workload["allocations"] for line in _unlaunched(candidates, workload, row)]
    lines += _lost_together(workloads)
    for row in _rows(workloads):
        if row["price_status"] == "date-unknown":
            lines.append(f"{row['offer']}: the price has no date of its own (transcribed {row['price_as_of']})")
        if row["price_status"] == "recalled":
            lines.append(f"{row['offer']}: the price was recalled, not seen")
        lines += [f"{fact}" for fact in _recalled(candidates.catalog.devices[row["device"]])]
    lines += market_warnings(candidates, workloads, [one["offer"] for one in bought["contracts"]])
    lines += idle_keys(candidates.scenario, candidates.catalog)
    return list(dict.fromkeys([*lines, *bought_warnings(bought)]))


def _frozen_too_large(candidates: Candidates, name: str) -> Iterator[str]:
    """That frozen weights, which no card holds, are kept in host memory by others."""
    question = candidates.questions[name]
    refused = any(reason == "memory" for reason, _ in candidates.ledgers[name].drops)
    if isinstance(question, TrainingQuestion) and question.job.lora and refused and not len(candidates.tables[name]):
        yield (
            f"{name}: frozen weights are planned on the devices; kept in host memory (cpu_offload of FSDP) they fit "
            "smaller ones, more slowly: that is not modelled"
        )


def _left_out_unlaunched(candidates: Candidates, name: str) -> Iterator[str]:
    """Offers on which nothing that is exported runs a workload, and that nobody asked for."""
    ledger = candidates.ledgers[name]
    drop = ledger.drops.get((UNLAUNCHED, "offers"))
    if drop is None:
        return
    devices = sorted(device for device in candidates.catalog.devices
                     if device in ledger.nearest_on and ledger.nearest_on[device].reason == UNLAUNCHED)  # fmt: skip
    there = f"on {', '.join(devices)}" if devices else "on shares of devices"
    yield (
        f"{name}: nothing that plan export writes for runs it {there}: {counted(drop.count, 'offer')} there left out, "
        "which count where hardware.allow names the device"
    )


def _beside_fleets(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """What is taken for granted of jobs on devices that fleets leave idle, and which were not tried there."""
    scenario, shared = candidates.scenario, candidates.shared
    rows = [row for workload in workloads for row in workload["allocations"] if "shared" in row]
    for workload in workloads:
        if any("jobs" in row and "shared" in row for row in workload["allocations"]):
            yield (
                f"{workload['name']}: its devices of a node that fleets run on too are its own for all of the plan; "
                "what runs on the others does not slow it"
            )
    for job in scenario.training if shared is not None and rows else ():
        if job.start_s + job.deadline_s > scenario.horizon_s * (1 + 1e-12):
            yield f"{job.name}: not tried on idle devices of the fleets' nodes: its deadline is beyond the horizon"


def _lost_together(workloads: Sequence[Workload]) -> Iterator[str]:
    """Fleets with spares, of which more replicas stand on one shared node than they have spares."""
    for workload in workloads:
        for row in workload["allocations"] if workload["kind"] == "serving" else ():
            spares = workload["fleet"]["spare_replicas"] if workload["fleet"] else 0
            most = max((one["replicas"] for one in row.get("shared", ())), default=0)
            if spares and most > spares:
                yield (
                    f"{workload['name']}: a shared node holds {most} of its replicas, and {spares} may be lost: the "
                    "spares are for a replica, not for a node (hardware.share_nodes: false keeps nodes apart)"
                )


def _unlaunched(candidates: Candidates, workload: TrainingWorkload, row: TrainingAllocation) -> Iterator[str]:
    """That no program of the table runs a row, why, and what of the scenario to change."""
    question = candidates.questions[workload["name"]]
    if not isinstance(question, TrainingQuestion):
        return
    device, shape = candidates.catalog.devices[row["device"]], candidates.catalog.shapes[row["shape"]]
    nodes, mixed = row["count"] // row["jobs"], "mix" in row
    asked = asked_on(question.job, question.arch, {**row["layout"]}, device, shape, nodes, mixed=mixed)
    if row["software"]:
        yield from _of_other_software(workload["name"], asked, row["software"])
        return
    name, (reason, way) = closest(asked)
    where = "" if mixed else f" on {row['device']}"
    because = f"{reason}; {way}" if way else reason
    of = "" if mixed or not name or SOFTWARE[name].program in reason else f"{SOFTWARE[name].program}: "
    yield f"{workload['name']}{where}: no program that plan export writes for runs it as planned: {of}{because}"


def _of_other_software(name: str, asked: Asked, software: Sequence[str]) -> Iterator[str]:
    """That plan export writes for nothing of what a job names, and what it writes for in its place."""
    framework, programs = asked.job.framework or "", ", ".join(SOFTWARE[one].program for one in software)
    own = LIBRARIES.get(framework)
    if own is not None and not set(own) & set(software):
        yield f"{name}: plan export writes nothing for {framework}, which the job names, but for {programs}"
    program = PROGRAMS.get(framework, framework)
    lacking = lack(program, asked) if program in SOFTWARE else None
    if lacking is not None:  # fixed by the job, so that it is planned
        way = f"; {lacking.way}" if lacking.way else ""
        yield (
            f"{name}: plan export writes nothing for {SOFTWARE[program].program}, which the job names, but for "
            f"{programs}: {lacking.reason}{way}"
        )


def _usual_batch(question: TrainingQuestion) -> str:
    """What a step takes where the scenario does not say."""
    job, sequences, length = question.job, question.rules.batches[0], question.spec.sequence_length
    advised, tokens = batch_tokens_advised(job, question.arch), batch_tokens_assumed(job, question.arch)
    if sequences == sequences_of(job, int(length)) < (ADAPTER_BATCH_SEQUENCES if job.lora else tokens / length):
        return f"global batch {sequences:g} sequences, all that there are"
    if job.lora:
        return f"global batch {sequences:g} sequences (GPT-3 in the LoRA paper, arXiv:2106.09685, D.4)"
    law = "as" if tokens == advised else f"{advised / 1e6:g} M"
    whole = "" if sequences == tokens / length else f"{counted(int(sequences), 'sequence')}, whole ones of "
    by = f"{law} DeepSeek's law advises for so much compute, arXiv:2401.02954"
    return f"global batch {whole}{tokens / 1e6:g} M tokens ({by})"


def _few_steps(workload: TrainingWorkload, question: TrainingQuestion, row: TrainingAllocation) -> Iterator[str]:
    """A run of so few steps that it learns little: the batch is likely not meant."""
    job, length = question.job, question.spec.sequence_length
    batch = row["layout"]["global_batch_sequences"] * length
    steps = job.tokens * job.epochs / batch
    if steps < FEW_STEPS:
        fits = int(job.tokens * job.epochs / (FEW_STEPS * (1 + BATCH_TOLERANCE)) / length)
        setting = f"training.{workload['name']}.global_batch={fits} sequences"
        more = f"; a smaller batch makes more: --set '{setting}'" if fits else ""
        yield f"{workload['name']}: {steps:.3g} steps of {batch:,} tokens are few to learn from{more}"


def _strange(workload: TrainingWorkload, row: TrainingAllocation) -> Iterator[str]:
    """That nothing was measured on a device, and what would tell more."""
    band = row["error_band"]
    time = band["time"]
    if band["tier"] == "analytic" and time is not None and band["tag"] in ("inherited", "unfitted"):
        yield (
            f"{workload['name']} on {row['device']}: no such job was measured there ({band['tag']}); times may be "
            f"{time['p10']:.2f} to {time['p90']:.2f} of those predicted (p10 to p90). One measured step (step_time of "
            "the job) takes the place of the estimate"
        )


def _beyond(candidates: Candidates, workload: TrainingWorkload, row: TrainingAllocation) -> Iterator[str]:
    """What of a row lies outside the range of the measurements behind its constants, and what that makes of its band.

    Where a step was timed, the model and its sequences are no guess; what runs as it was timed has no band.
    """
    band = row["error_band"]
    time = band["time"]
    if band["tier"] != "analytic" or time is None:
        return
    catalog = candidates.catalog
    sizes = {
        "devices": ("devices", row["devices"] / row["jobs"]),
        "parameters": ("parameters", workload["parameters"]),
        "sequence_length": ("tokens in a sequence", workload["demand"]["sequence_length"]),
        "pp": ("pipeline stages", row["layout"]["pp"]),
        "cp": ("ranks of context", row["layout"]["cp"]),
        "ep": ("ranks of experts", row["layout"]["ep"]),
    }
    shape, talks = catalog.shapes[row["shape"]], "mix" in row or row["count"] > row["jobs"]
    if "mix" in row:  # of groups that share a batch neither devices nor splits tell how they lie
        sizes = {name: sizes[name] for name in ("parameters", "sequence_length")}
    guessed = band["tag"] != "measured"
    values = {
        name: value for name, (_, value) in sizes.items() if guessed or name not in ("parameters", "sequence_length")
    }
    found = beyond(catalog, band["family"], values, strange_network=talks and strange_network(shape, catalog))
    if catalog.training_beyond and float(beyond_power(catalog, found)) < TOLD_POWER:
        return
    outside = []
    for name in found:
        if name == "network":
            fabric, published = catalog.fabrics[shape.network_kind], shape.inter_node_bytes_per_s_per_device or 0.0
            counted = f"{format_percent(fabric.sustained_share)} of {8e-9 * published * shape.devices:,.4g} Gbit/s"
            outside.append(f"{fabric.title} between machines ({counted} a machine are counted)")
            continue
        noun, value = sizes[name.split()[0]]
        low, high = catalog.training_families[band["family"]].validity[name.split()[0]]
        ends = dict.fromkeys((format_count(low), format_count(high)))  # one where a single size was measured
        outside.append(f"{format_count(value)} {noun} ({' to '.join(ends)})")
    if outside:
        wider = f"so its times may be {time['p10']:.2f} to {time['p90']:.2f} of those predicted (p10 to p90)"
        yield (
            f"{workload['name']} on {row['device']} lies outside the measurements behind its constants: "
            f"{', '.join(outside)}; {wider if catalog.training_beyond else 'the error band may be too narrow'}"
        )


def _recalled(device: Device) -> Iterator[str]:
    """Facts that decide a plan and were written from memory."""
    deciding = ("memory", "memory_bandwidth", "peak")
    names = sorted(
        name
        for name, provenance in device.facts.items()
        if provenance.status == "recalled" and name.startswith(deciding)
    )
    if names:
        yield f"{device.id}: recalled, not seen at a source: {', '.join(names)}"


def notes_of(candidates: Candidates, workloads: Sequence[Workload]) -> list[str]:
    """Remarks on how to read the plan."""
    lines = [rule for row in _rows(workloads) for rule in _claims(candidates, row)]
    tasks = candidates.program.tasks
    lines += _rule_error(candidates)
    if candidates.calendar is None and len([task for task in tasks if task.kind == "training"]) > 1:
        lines.append("jobs whose start–deadline windows overlap are concurrent; others share no capacity")
    return list(dict.fromkeys(lines))


def _rule_error(candidates: Candidates) -> Iterator[str]:
    """What the rule tier is known to err by."""
    error = candidates.catalog.rule_error
    ruled = [
        q for q in candidates.questions.values() if isinstance(q, TrainingQuestion) and q.base_tier == "rule"
    ]  # fmt: skip
    if error is not None and ruled:
        yield (
            f"training times{_named(candidates, ruled)} are the rule tier's: on {error.runs} published {error.device} "
            f"runs it errs by {error.median:.1%} in the median and {error.max:.0%} at most, "
            f"elsewhere by {error.elsewhere}"
        )
    if any(
        isinstance(q, ServingQuestion) and q.estimator == "rule (roofline T1)" for q in candidates.questions.values()
    ):
        errors = ", ".join(f"{name.replace('_', ' ')} {value:.0%}" for name, value in TEXTBOOK.error)
        yield f"serving speeds are a roofline's; medians of its error: {errors} ({TEXTBOOK.error_source})"


def _named(candidates: Candidates, ruled: Sequence[TrainingQuestion]) -> str:
    jobs = [q for q in candidates.questions.values() if isinstance(q, TrainingQuestion)]
    return "" if len(jobs) == len(ruled) else " of " + ", ".join(question.job.name for question in ruled)


def _claims(candidates: Candidates, row: Allocation) -> Iterator[str]:
    for claim in candidates.catalog.devices[row["device"]].claims:
        yield f"{row['device']}: its vendor says: {claim}"


def facts_of(candidates: Candidates, workloads: Sequence[Workload], bought: BoughtParts) -> list[Fact]:
    """Catalog facts behind the chosen rows and what is bought, each with its source and date.

    Parameters
    ----------
    candidates
        The ways, with their scenario and catalog.
    workloads
        As they stand in the plan, with the rows that were chosen; without a plan they have none.
    bought
        What is bought ahead, as it stands in the plan.
    """
    facts: dict[tuple[str, str], Fact] = {}
    for row in _rows(workloads):
        price = Provenance(source=row["price_source"], as_of=row["price_as_of"], status=row["price_status"])
        value = f"{row['price_microusd_per_hour'] / 1e6:g} USD/h per shape"
        if row["price_model"] != RESERVED:  # whose price is the contract's
            facts[row["offer"], "price"] = _fact(row["offer"], "price", value, price)
            facts |= _billing(candidates, row)
        device, shape = candidates.catalog.devices[row["device"]], candidates.catalog.shapes[row["shape"]]
        for name, provenance in sorted({**device.facts}.items()):
            facts[device.id, name] = _fact(device.id, name, _value(device, name), provenance)
        for name, provenance in sorted({**shape.facts}.items()):
            facts[shape.id, name] = _fact(shape.id, name, str(getattr(shape, name, "")), provenance)
    for subject, fact, told, origin in bought_facts(candidates, bought):
        facts[subject, fact] = _fact(subject, fact, told, origin)
    return [facts[key] for key in sorted(facts)]


def _billing(candidates: Candidates, row: Allocation) -> dict[tuple[str, str], Fact]:
    """On what terms the provider of a training job is paid."""
    bill, who = _bill(candidates, row), row["provider"]
    return {(who, one.name): _fact(who, one.name, one.value, one.provenance) for one in (bill.facts if bill else ())}


def _bill(candidates: Candidates, row: Allocation) -> Bill | None:
    """How a training job is billed where it runs; None where the time that it runs is paid for."""
    if "billed_hours" not in row:
        return None
    offers = (offer for offer in candidates.catalog.offers if offer.id == row["offer"])
    offer = next(offers, None)
    return bill_of(offer, candidates.catalog, candidates.scenario.hardware) if offer else None


def _value(device: Device, name: str) -> str:
    head, _, key = name.partition(".")
    value = getattr(device, head, "")
    return str(value.get(key, "") if isinstance(value, dict) and key else value)


def _fact(subject: str, fact: str, value: str, provenance: Provenance) -> Fact:
    return {
        "subject": subject,
        "fact": fact,
        "value": value,
        "source": provenance.source,
        "as_of": provenance.as_of,
        "status": provenance.status,
    }
