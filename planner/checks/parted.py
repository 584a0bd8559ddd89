"""The rows of a job in parts, worked out again together: a mix that shares its batch, or a switch from spot.

Of a mix: shares, common time, money, errors. A step is asked for at the very share of each group, batches are tried one
by one, rates of failure and hosts are added up here. Of a switch: work, hours, deadline, money, errors. What spot
surely does before the switch is found by halving an interval, hours and shares are followed row by row from the whole
run on each machine. The equations are shared with the search, not the way they are put together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.checks.bands import ErrorCells, Margins, band_findings, margins_on, power_outside
from planner.checks.calendar import training_cost
from planner.checks.cells import energy_cells, speed_cells, training_cells
from planner.checks.facts import OfferFacts, exact_rental
from planner.checks.findings import TOLERANCE, Finding, cell_findings
from planner.checks.layout import BATCH_TOLERANCE
from planner.checks.run import (
    RUN_TERMS,
    Chance,
    Part,
    RunCells,
    chance_of,
    layout_of,
    ratio_on,
    run_cells,
    shared_run_cells,
    switch_s,
)
from planner.equations import mixed as eq
from planner.equations.communication import NETWORK_LATENCY_S
from planner.equations.preemption import preempted_quantile
from planner.equations.rules import critical_batch_token_factor
from planner.estimate.bill import billed_hours
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.mixed import gradient_bytes
from planner.estimate.resolve import batch_bounds, sequence_length_of, step_measured, training_machine, training_spec
from planner.estimate.training import training_time
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.schema import Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import UnderWay
    from planner.plan.model.rows import RunFigures, Spread, TrainingAllocation, TrainingLayout


MOST_GROUPS = 4


class _Group(NamedTuple):
    """One row with what follows from it alone."""

    row: TrainingAllocation
    facts: OfferFacts
    layout: Layout
    spec: TrainingSpec
    machine: Machine
    margins: Margins
    ratio: float | None
    terms_s: Mapping[str, float]  # of one step

    @property
    def step_s(self) -> float:
        return sum(self.terms_s.values())

    @property
    def per_job(self) -> int:
        return int(self.row["count"]) // int(self.row["jobs"])


class _Whole(NamedTuple):
    """What the groups have in common."""

    batch: int
    compute_s: float
    synchronisation_s: float
    sent_usd: float  # by each group in one step
    steps: float
    factor: float  # of a batch above the critical one
    run: RunCells

    @property
    def busy_s(self) -> float:
        return self.steps * self.factor * float(eq.mixed_step_s(self.compute_s, self.synchronisation_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class MixCheck:
    """Checks the rows of one mix of a job; each row by itself is checked elsewhere."""

    scenario: Scenario
    catalog: Catalog
    arch: Architecture
    job: TrainingJob
    under_way: UnderWay | None

    def findings(self, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]) -> Iterator[Finding]:
        """Everything wrong with what the rows say together."""
        name = self.job.name
        if not self.job.mix_within_job:
            yield Finding("not-allowed", f"{name}: mix_within_job is false, but {len(rows)} offers share a job")
        if not 2 <= len(rows) <= MOST_GROUPS or len({row["offer"] for row, _ in rows}) < len(rows):
            yield Finding("wrong-mix", f"{name}: a mix takes 2 to {MOST_GROUPS} different offers")
            return
        if any(row["jobs"] < 1 or row["count"] % row["jobs"] for row, _ in rows):
            yield Finding("wrong-mix", f"{name}: the shapes of a group are not as many for each job")
            return
        problems = list(self._shares([row for row, _ in rows]))
        yield from problems
        if problems:
            return
        groups = [self._group(row, facts) for row, facts in rows]
        whole = self._whole(groups)
        if not math.isfinite(whole.synchronisation_s):
            yield Finding("network-unknown", f"{name}: the network between the groups of a mix is unknown")
            return
        margins = self._margins(groups)
        hours = whole.run["wall_s"] / 3600.0
        if hours * 3600.0 * margins.time > self.job.deadline_s * (1 + 1e-12):
            yield Finding("late", f"{name}: {hours * margins.time:.6g} h is after the deadline")
        for group in groups:
            yield from self._row(group, whole, margins, hours)

    def _shares(self, rows: Sequence[TrainingAllocation]) -> Iterator[Finding]:
        """Whole micro-batches that sum to the batch nearest to what was asked."""
        name, batch = self.job.name, rows[0]["mix"]["batch_sequences"]
        groups = sorted(f"{row['count'] // max(row['jobs'], 1)} × {row['offer']}" for row in rows)
        if sorted(rows[0]["mix"]["name"].split(" + ")) != groups:
            yield Finding("wrong-mix", f"{name}: the mix of {groups} is called {rows[0]['mix']['name']!r}")
        common = {"name": rows[0]["mix"]["name"], "groups": len(rows), "batch_sequences": batch}
        for row in rows:
            share = row["layout"]["global_batch_sequences"]
            cells = {**common, "sequences": share, "share": share / batch}
            yield from cell_findings("wrong-share", name, row["mix"], cells)
            if row["jobs"] != rows[0]["jobs"] or row["hours"] != rows[0]["hours"]:
                yield Finding("wrong-mix", f"{name}: the groups of a mix do not run together")
        total = sum(row["layout"]["global_batch_sequences"] for row in rows)
        if total != batch:
            yield Finding("wrong-share", f"{name}: the shares sum to {total} of {batch} sequences")
        quantum = math.gcd(*(_least_share(row["layout"]) for row in rows))
        if batch % quantum or not self._nearest(batch, quantum):
            yield Finding("wrong-share", f"{name}: {batch} sequences are not the batch nearest to what was asked")

    def _nearest(self, batch: int, quantum: int) -> bool:
        """Whether a batch is the multiple of the least share nearest to one that may be asked for."""
        low, high = batch_bounds(self.job, self.arch, sequence_length_of(self.job, self.arch))
        slack = BATCH_TOLERANCE if high <= low * (1 + 1e-12) else 0.0
        least, most = low * (1 - slack) - 1e-6, high * (1 + slack) + 1e-6
        if not least <= batch <= most:
            return False
        others = [batch + step for step in (-quantum, quantum) if least <= batch + step <= most]
        return slack == 0.0 or all(abs(batch - low) <= abs(other - low) + 1e-6 for other in others)

    def _group(self, row: TrainingAllocation, facts: OfferFacts) -> _Group:
        ratio = ratio_on(self.under_way, facts.device.id)
        measured = step_measured(self.job, facts.shape, self.under_way)
        power = power_outside(self.job, self.arch, self.catalog, facts, measured, None)
        margins = margins_on(self.job, self.arch, facts.device, self.catalog, measured, power)
        spot = self.scenario.hardware.spot if facts.offer.price_model == "spot" else None
        spec = training_spec(self.job, self.arch, facts.device, facts.shape, ratio, spot, margins.erring)
        machine = training_machine(
            facts.device, facts.shape, self.job, self.arch, self.catalog, facts.inter_node_bytes_per_s
        )
        layout = layout_of(row["layout"], row["count"] // row["jobs"] * facts.shape.devices)
        bare = replace(spec, run=None, progress_tokens=0.0, critical_batch_tokens=None)
        whole = training_time(self.arch, bare, layout, machine).row(0)
        steps = spec.tokens * spec.epochs / (row["layout"]["global_batch_sequences"] * spec.sequence_length)
        terms = {name: seconds / steps for name, seconds in whole.items() if name not in RUN_TERMS}
        return _Group(row, facts, layout, spec, machine, margins, ratio, terms)

    def _whole(self, groups: Sequence[_Group]) -> _Whole:
        spec, batch = groups[0].spec, groups[0].row["mix"]["batch_sequences"]
        tokens = batch * spec.sequence_length
        left = spec.tokens * spec.epochs * spec.remaining_share
        critical = spec.critical_batch_tokens
        sync_s, sent_usd = self._exchange(groups)
        whole = _Whole(
            batch=batch,
            compute_s=max(group.step_s for group in groups),
            synchronisation_s=sync_s,
            sent_usd=sent_usd,
            steps=left / tokens,
            factor=1.0 if critical is None else float(critical_batch_token_factor(tokens, critical)),
            run={"wall_s": 0.0, "terms": {}, "run": {"modelled": False, "goodput": 1.0}},
        )
        parts = [self._part(group) for group in groups]
        return whole._replace(run=shared_run_cells(self.job, self.arch, parts, whole.busy_s, groups[0].row["jobs"]))

    def _part(self, group: _Group) -> Part:
        spot = self.scenario.hardware.spot if group.facts.offer.price_model == "spot" else None
        devices = group.per_job * group.facts.shape.devices
        return Part(group.spec, group.facts.shape, devices, spot, group.ratio is not None)

    def _exchange(self, groups: Sequence[_Group]) -> tuple[float, float]:
        """Seconds of reducing gradients in a step, and what each group pays to send them to other zones."""
        between = self.scenario.hardware.assume_between_zones
        near = _in_one_zone([group.facts for group in groups])
        if not near and between is None:
            return math.inf, 0.0
        message = max(float(gradient_bytes(self.arch, group.spec, group.layout, group.machine)) for group in groups)
        nodes = sum(group.per_job for group in groups)
        rates = [_network_bytes_per_s(group, nodes) for group in groups]
        if near or between is None:
            return float(eq.groups_all_reduce_s(message, len(groups), min(rates), NETWORK_LATENCY_S)), 0.0
        rates = [min(rate, between.bandwidth_bytes_per_s * group.per_job) for rate, group in zip(rates, groups)]
        latency = eq.FARTHEST_LATENCY_S if between.latency_s is None else between.latency_s
        seconds = float(eq.groups_all_reduce_s(message, len(groups), min(rates), latency))
        return seconds, float(eq.group_traffic_bytes(message, len(groups))) * between.price_usd_per_gb / 1e9

    def _margins(self, groups: Sequence[_Group]) -> Margins:
        """Those of the group whose times may be off most; the first of equal ones, dearest first."""
        ranked = sorted(groups, key=lambda group: (-group.row["cost_microusd"], group.row["offer"]))
        return max(ranked, key=lambda group: group.margins.time).margins

    def _row(self, group: _Group, whole: _Whole, margins: Margins, hours: float) -> Iterator[Finding]:
        row, name = group.row, self.job.name
        if not math.isclose(row["hours"], hours, rel_tol=TOLERANCE):
            yield Finding("wrong-time", f"{name}: {row['hours']:.6g} h stated, {hours:.6g} h computed")
        sent = row["jobs"] * round(whole.sent_usd * whole.steps * whole.factor * 1e6)
        cells = {
            "group_step_s": group.step_s,
            "compute_s": whole.compute_s,
            "synchronisation_s": whole.synchronisation_s,
            "traffic_microusd": sent,
        }
        yield from cell_findings("wrong-mix", name, row["mix"], cells)
        terms = self._terms(group, whole)
        yield from cell_findings("wrong-time", name, row, training_cells(self.job, row, terms, hours))
        yield from cell_findings("wrong-time", name, row, {"step_time_ratio": group.ratio})
        yield from cell_findings("wrong-run", name, row["run"], whole.run["run"])
        own = group.margins._replace(time=margins.time, time_band=margins.time_band)
        yield from band_findings(self.job, row, own, hours)
        yield from self._speed(group, whole)
        yield from cell_findings(
            "wrong-energy", name, row, energy_cells(self.catalog, group.facts, row["count"], hours)
        )
        facts = group.facts
        rent = exact_rental(group.per_job, facts.offer.price_microusd_per_hour, row["hours"], facts.bill)
        yield from cell_findings("wrong-time", name, row, {"billed_hours": billed_hours(facts.bill, row["hours"])})
        cost = row["jobs"] * rent + sent
        if row["cost_microusd"] != cost:
            yield Finding("wrong-cost", f"{name}: {row['cost_microusd']} micro-dollars stated, {cost} computed")

    def _terms(self, group: _Group, whole: _Whole) -> dict[str, float]:
        """Seconds of the run by term: of the group itself, of the others, of what stops them."""
        one = {name: seconds * whole.steps for name, seconds in group.terms_s.items()}
        together = whole.steps * float(eq.mixed_step_s(whole.compute_s, whole.synchronisation_s))
        return {
            **one,
            "group_wait": (whole.compute_s - group.step_s) * whole.steps,
            "group_synchronisation": whole.synchronisation_s * whole.steps,
            "large_batch": (whole.factor - 1.0) * together,
            **whole.run["terms"],
        }

    def _speed(self, group: _Group, whole: _Whole) -> Iterator[Finding]:
        """The share of the work, and the speed of a device while it and the others are at it."""
        row, share = group.row, group.row["layout"]["global_batch_sequences"] / whole.batch
        devices, mfu = group.per_job * group.facts.shape.devices, float(group.machine.mfu)
        cells = speed_cells(self.job, self.arch, self.catalog, group.facts, mfu, whole.busy_s, devices)
        work = cells["work"]
        work |= {
            "tokens": work["tokens"] * share,
            "flop_count": work["flop_count"] * share,
            "flop_per_s_per_device": work["flop_per_s_per_device"] * share,
        }
        cells["rule_hours"] *= share
        cells["mfu"] = cells["mfu"] * share if group.margins.names["tier"] == "analytic" else cells["mfu"]
        yield from cell_findings("wrong-time", self.job.name, row, cells)
        yield from cell_findings("wrong-time", self.job.name, row["work"], work)


def _least_share(split: TrainingLayout) -> int:
    """One micro-batch of every data-parallel rank; of an interleaved schedule whole rounds of stages."""
    return int(split["dp"] * split["micro_batch"] * (split["pp"] if split["vpp"] > 1 else 1))


def _in_one_zone(facts: Sequence[OfferFacts]) -> bool:
    """One provider and region, and no two different zones named."""
    zones = {one.offer.zone for one in facts if one.offer.zone}
    return len({(one.offer.provider, one.offer.region) for one in facts}) == 1 and len(zones) <= 1


def _network_bytes_per_s(group: _Group, nodes: int) -> float:
    """What all devices of a group sustain to other nodes; nan where that is unknown."""
    rate = group.facts.inter_node_bytes_per_s
    if rate is None:
        return math.nan
    crowded = 1.0 + float(group.machine.network_scale) * math.log2(max(nodes, 2) / 2.0)
    return rate * float(group.machine.network_efficiency) * group.per_job * group.facts.shape.devices / crowded


HALVINGS = 200


class SwitchedPart(NamedTuple):
    """One row, and the whole run on its machines."""

    row: TrainingAllocation
    facts: OfferFacts
    margins: Margins
    spec: TrainingSpec
    mfu: float
    seconds: Mapping[str, float]  # of the whole run, by term
    busy_s: float
    ratio: float | None

    @property
    def per_job(self) -> int:
        """Shapes of one job."""
        return int(self.row["count"]) // int(self.row["jobs"])

    @property
    def whole_s(self) -> float:
        """Wall time of the whole run on these machines.  [s]"""
        return sum(self.seconds.values())


class _Course(NamedTuple):
    """What happens before the switch and after it."""

    saved_s: float
    restart_s: float
    share: float
    surely: float
    hours: tuple[float, float]
    held: tuple[float, float]

    def cells(self, number: int) -> dict[str, object]:
        """What the row of a part tells of the switch."""
        return {
            "share": (self.share, 1.0 - self.share)[number],
            "share_at_confidence": (self.surely, 1.0 - self.surely)[number],
            "checkpoint_s": self.saved_s,
            "restart_s": self.restart_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCheck:
    """Checks the rows of one switch of a job; layout and memory of each row are checked elsewhere."""

    scenario: Scenario
    catalog: Catalog
    arch: Architecture
    job: TrainingJob
    part_of: Callable[[TrainingAllocation, OfferFacts], SwitchedPart]

    def findings(self, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]) -> Iterator[Finding]:
        """Everything wrong with what the rows say together."""
        known = yield from self._known(rows)
        if known is None:
            return
        first, second, course = known
        whole = first.whole_s, second.whole_s
        for number, part in enumerate((first, second)):
            yield from self._row(part, number, course, whole, (first.margins.time_band, second.margins.time_band))

    def in_short_findings(
        self, reference: str, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]
    ) -> Iterator[Finding]:
        """Everything wrong with rows of another plan: when each part runs, and for how much.

        Parameters
        ----------
        reference
            What a wrong figure is called.
        rows
            Both parts, told in short, with their offers.
        """
        known = yield from self._known(rows)
        if known is None:
            return
        first, second, course = known
        begin = self.job.start_s / 3600.0
        for number, part in enumerate((first, second)):
            hours, start = course.hours[number], (begin, begin + course.hours[0])[number]
            cells = {"start_hours": start, "hours": hours, "finish_hours": start + hours}
            cells["cost_microusd"] = training_cost(part.row, part.facts, part.per_job, hours)
            yield from cell_findings(reference, self.job.name, part.row, cells)
            yield from cell_findings(reference, self.job.name, part.row["switch"], course.cells(number))

    def _known(
        self, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]
    ) -> Generator[Finding, None, tuple[SwitchedPart, SwitchedPart, _Course] | None]:
        """Both parts and their course, worked out again; None where the rows are no switch."""
        problems = list(self._shape(rows))
        yield from problems
        if problems:
            return None
        first, second = (self.part_of(row, facts) for row, facts in sorted(rows, key=lambda one: _number(one[0])))
        course = self._course(first, second)
        if course is None:
            yield Finding("wrong-switch", f"{self.job.name}: nothing is left, or nothing done, at the switch")
            return None
        yield from self._worth(first, second, course)
        until, held = course.hours[0], course.held[1]
        if (until + held) * 3600.0 > self.job.deadline_s * (1 + 1e-12):
            late = f"{until + held:.6g} h at {self.job.confidence_share:.0%} confidence"
            yield Finding(
                "late", f"{self.job.name}: {late} is after the deadline of {self.job.deadline_s / 3600:.6g} h"
            )
        return first, second, course

    def _shape(self, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]) -> Iterator[Finding]:
        """Two parts: spot, then on demand, of one shape in one place, for like batches."""
        name = self.job.name
        if not self.job.switch_within_job:
            yield Finding("not-allowed", f"{name}: switch_within_job is false, but it changes machines")
        if any(row.get("runs") for row, _ in rows):
            yield Finding("not-allowed", f"{name}: no job that pauses changes machines")
        ordered = sorted(rows, key=lambda one: _number(one[0]))
        if [_number(row) for row, _ in ordered] != [1, 2] or any(row["switch"]["parts"] != 2 for row, _ in rows):
            yield Finding("wrong-switch", f"{name}: a switch has two parts")
            return
        (one, here), (other, there) = ordered
        if (here.offer.price_model, there.offer.price_model) != ("spot", "on_demand"):
            yield Finding("wrong-switch", f"{name}: a switch is from spot to on demand")
        places = {(facts.shape.id, facts.offer.provider, facts.offer.region) for _, facts in rows}
        zones = {facts.offer.zone for _, facts in rows if facts.offer.zone}
        if len(places) > 1 or len(zones) > 1:
            yield Finding("wrong-switch", f"{name}: a switch stays on one shape in one place")
        small, large = sorted(row["layout"]["global_batch_sequences"] for row in (one, other))
        if large > (1 + BATCH_TOLERANCE) * small:
            yield Finding("wrong-switch", f"{name}: the batch changes from {small} to {large} sequences or back")
        if one["jobs"] != other["jobs"] or one["jobs"] < 1 or any(row["count"] % row["jobs"] for row, _ in rows):
            yield Finding("wrong-switch", f"{name}: both parts are of the same jobs")
            return
        hours = one["switch"]["switch_hours"]
        if hours < 1 or hours != int(hours):
            yield Finding("wrong-switch", f"{name}: a job changes machines after whole hours, not {hours:g}")
        counts = [row["count"] // row["jobs"] for row in (one, other)]
        called = f"{counts[0]} × {one['offer']} for {hours:g} h, then {counts[1]} × {other['offer']}"
        if later := round(one["start_hours"] - self.job.start_s / 3600.0, 6):
            called += f", {later:g} h later"
        if not math.isclose(other["start_hours"], one["start_hours"] + hours, rel_tol=TOLERANCE):
            yield Finding(
                "wrong-start", f"{name}: on demand it begins at {other['start_hours']:.6g} h, not at the switch"
            )
        for row in (one, other):
            cells = {"name": called, "switch_hours": hours}
            yield from cell_findings("wrong-switch", name, row["switch"], cells)

    def _course(self, first: SwitchedPart, second: SwitchedPart) -> _Course | None:
        """What both parts do, as predicted and at the confidence."""
        spot, until_s = self.scenario.hardware.spot, 3600.0 * first.row["switch"]["switch_hours"]
        if spot is None or first.spec.run is None:
            return None
        devices = first.per_job * first.facts.shape.devices
        saved, restart_s = switch_s(self.job, self.arch, first.spec, first.facts.shape, devices, spot)
        share = (until_s - saved) / first.whole_s
        if not 0 < share < 1:
            return None
        chance = chance_of(self.job, first.spec, first.facts.shape, devices, spot, self._run_of(first))
        surely_s = _surely_s((until_s - saved) / first.margins.time, chance, self.job.confidence_share)
        surely, left = surely_s / first.whole_s, 1.0 - share
        return _Course(
            saved_s=saved,
            restart_s=restart_s,
            share=share,
            surely=surely,
            hours=(until_s / 3600.0, (restart_s + left * second.whole_s) / 3600.0),
            held=(
                until_s / 3600.0,
                (restart_s + (1.0 - surely) * second.whole_s * second.margins.time) / 3600.0,
            ),
        )

    def _run_of(self, part: SwitchedPart) -> RunFigures:
        """Failures and checkpoints of the whole run on the machines of a part."""
        spot = self.scenario.hardware.spot if part.facts.offer.price_model == "spot" else None
        devices, calibrated = part.per_job * part.facts.shape.devices, part.ratio is not None
        jobs = part.row["jobs"]
        return run_cells(
            self.job, self.arch, part.spec, part.facts.shape, part.busy_s, devices, jobs, spot, calibrated=calibrated
        )["run"]

    def _worth(self, first: SwitchedPart, second: SwitchedPart, course: _Course) -> Iterator[Finding]:
        """A switch that does not pay is no plan."""
        parts = zip((first, second), course.hours)
        cost = sum(training_cost(part.row, part.facts, part.per_job, hours) for part, hours in parts)
        alone = training_cost(second.row, second.facts, second.per_job, second.whole_s / 3600.0)
        if cost >= alone:
            yield Finding("wrong-switch", f"{self.job.name}: on demand alone costs {alone} micro-dollars, this {cost}")

    def _row(
        self,
        part: SwitchedPart,
        number: int,
        course: _Course,
        whole_s: tuple[float, float],
        bands: tuple[ErrorCells | None, ErrorCells | None],
    ) -> Iterator[Finding]:
        row, facts, name, hours = part.row, part.facts, self.job.name, course.hours[number]
        share = (course.share, 1.0 - course.share)[number]
        times = {
            "hours": hours,
            "held_hours": course.held[number],
            "billed_hours": billed_hours(facts.bill, hours),
            "step_time_ratio": part.ratio,
        }
        yield from cell_findings("wrong-time", name, row, times)
        yield from cell_findings("wrong-switch", name, row["switch"], course.cells(number))
        terms = {term: share * seconds for term, seconds in part.seconds.items()}
        term, more_s = (("checkpoints", course.saved_s), ("restarts", course.restart_s))[number]
        terms[term] += more_s
        yield from cell_findings("wrong-time", name, row, training_cells(self.job, row, terms, hours))
        run = _run_of_share(self._run_of(part), share * part.busy_s, part.whole_s, share, hours)
        yield from cell_findings("wrong-run", name, row["run"], run)
        devices = part.per_job * facts.shape.devices
        speed = speed_cells(self.job, self.arch, self.catalog, facts, part.mfu, part.busy_s, devices)
        speed["rule_hours"] *= share
        speed["work"] |= {"tokens": speed["work"]["tokens"] * share, "flop_count": speed["work"]["flop_count"] * share}
        yield from cell_findings("wrong-time", name, row, speed)
        yield from cell_findings("wrong-time", name, row["work"], speed["work"])
        yield from cell_findings("wrong-energy", name, row, energy_cells(self.catalog, facts, row["count"], hours))
        spread = _spread(number, course, whole_s, bands)
        yield from band_findings(self.job, row, part.margins, hours, spread=spread)
        cost = training_cost(row, facts, part.per_job, hours)
        if row["cost_microusd"] != cost:
            yield Finding("wrong-cost", f"{name}: {row['cost_microusd']} micro-dollars stated, {cost} computed")


def _number(row: TrainingAllocation) -> int:
    return int(row["switch"]["part"])


def _surely_s(within_s: float, chance: Chance, confidence: float) -> float:
    """The mean time of the longest run that is done within a time at a confidence, by halving."""
    low, high = 0.0, within_s
    for _ in range(HALVINGS):
        mean_s = (low + high) / 2.0
        longer = float(preempted_quantile(mean_s, *chance, confidence)) * mean_s
        low, high = (mean_s, high) if longer <= within_s else (low, mean_s)
    return low


def _run_of_share(cells: RunFigures, busy_s: float, whole_s: float, share: float, hours: float) -> Mapping[str, object]:
    """Of a part: it fails as often an hour as the whole, and its checkpoints are kept for its time."""
    found: dict[str, object] = {**cells, "goodput": busy_s / (3600.0 * hours)}
    if cells["modelled"]:
        kept = cells["storage_usd"]
        found["expected_failures"] = share * cells["expected_failures"]
        found["storage_usd"] = None if kept is None else kept * 3600.0 * hours / whole_s
    return found


def _spread(
    number: int, course: _Course, whole_s: tuple[float, float], bands: tuple[ErrorCells | None, ErrorCells | None]
) -> Spread:
    """Hours of a part where times turn out otherwise: the first ends by the clock, or when all is done."""
    found = []
    for quantile in ("p10", "p50", "p90"):
        slow, slower = (1.0 if band is None else float(band[quantile]) for band in bands)
        share = course.share / slow
        before = course.hours[0] if share < 1 else min(course.hours[0], whole_s[0] * slow / 3600.0)
        after = (course.restart_s + (1.0 - share) * whole_s[1] * slower) / 3600.0 if share < 1 else 0.0
        found.append((before, after)[number])
    return {"p10": found[0], "p50": found[1], "p90": found[2], "at_confidence": course.held[number]}
