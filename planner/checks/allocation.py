"""One chosen row of a plan against its scenario, its catalog and the equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.load import device_matches
from planner.catalog.model import Catalog, Device, Offer
from planner.catalog.names import region_matches
from planner.checks.bands import Margins, Placed, band_findings, margins_on, power_outside
from planner.checks.calendar import row_timing_findings, running_findings, training_cost
from planner.checks.cells import energy_cells, memory_cells, place_cells, speed_cells, training_cells
from planner.checks.facts import RESERVED, OfferFacts, facts_of_row, jobs_of
from planner.checks.findings import Finding, Memo, cell_findings
from planner.checks.layout import training_layout_findings
from planner.checks.parted import MixCheck, SwitchCheck, SwitchedPart
from planner.checks.run import RUN_TERMS, layout_of, ratio_on, run_findings
from planner.checks.serving import serving_findings
from planner.checks.unasked import launch_findings, seller_findings
from planner.estimate.bill import billed_hours
from planner.estimate.frameworks import runs_on
from planner.estimate.layout import Layout
from planner.estimate.recall import figures_of
from planner.estimate.resolve import (
    host_bytes_per_device,
    step_measured,
    training_machine,
    training_spec,
    usable_bytes,
)
from planner.estimate.run import checkpoint_bytes_of, preemption_margin
from planner.estimate.software import able, asked_on
from planner.estimate.terms import Terms
from planner.estimate.training import training_memory, training_time
from planner.estimate.training_memory import host_bytes
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import Allocation, ServingWorkload, UnderWay, Workload
    from planner.plan.model.rows import TrainingAllocation, TrainingLayout


class Way(NamedTuple):
    """How long one job takes alone on some shapes, and what that was worked out of."""

    spec: TrainingSpec
    mfu: float
    seconds: Mapping[str, float]  # by term
    hours: float  # of all terms

    @property
    def busy_s(self) -> float:
        """While it runs, without what its interruptions cost."""
        return sum(seconds for name, seconds in self.seconds.items() if name not in RUN_TERMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCheck:
    """Checks the rows of one workload."""

    scenario: Scenario
    catalog: Catalog
    arch: Architecture
    under_way: UnderWay | None = None  # of the plan: where a step time was measured, checked apart
    memo: Memo = field(default_factory=Memo)

    def workload(self, asked: TrainingJob | ServingFleet, document: Workload) -> Iterator[Finding]:
        """Everything wrong with the rows of a workload."""
        for row in document["allocations"]:
            facts = facts_of_row(row, self.scenario, self.catalog)
            if facts is None:
                yield Finding("unknown-offer", f"{asked.name}: the catalog has no offer {row['offer']!r}")
                continue
            yield from self._offer(asked, row, facts)
            if facts.owned is None and facts.offer.price_model != RESERVED:
                yield from seller_findings(asked.name, facts.offer, self.scenario, self.catalog)
                if not row.get("software"):  # checked below
                    yield from launch_findings(asked, facts, self.arch, self.scenario, self.catalog)
            yield from row_timing_findings(asked, row, facts, self.scenario)
            if isinstance(asked, TrainingJob):
                yield from self._training(asked, cast("TrainingAllocation", row), facts)
        if isinstance(asked, TrainingJob):
            rows = cast("list[TrainingAllocation]", document["allocations"])
            yield from self._mixes(asked, rows)
            yield from self._switches(asked, rows)
            jobs = sum(Fraction(row["jobs"], _rows_of_job(row)) for row in rows)
            if jobs != asked.count:
                yield Finding("wrong-count", f"{asked.name}: {jobs} jobs planned, {asked.count} asked for")
        else:
            served = cast("ServingWorkload", document)
            pairs = [(row, facts_of_row(row, self.scenario, self.catalog)) for row in served["allocations"]]
            yield from serving_findings(
                asked, self.scenario, self.catalog, self.arch, pairs, served["fleet"], self.memo
            )

    def memory(self, job: TrainingJob, split: TrainingLayout, devices: int, family: str) -> Terms:
        """What a device holds of a job, worked out once for a split.  [B]

        Parameters
        ----------
        job
            A job of the scenario; its name keeps what was worked out apart.
        split
            The layout as a row tells it.
        devices
            Of one job.
        family
            Of the devices; it may decide the software.
        """
        spec, layout = training_spec(job, self.arch), layout_of(split, devices)

        def needed() -> Terms:
            return training_memory(self.arch, spec, layout, family)

        key = ("memory", job.name, devices, family, *sorted(split.items()))
        return self.memo.of(key, lambda: self._answered("memory", (spec, layout, family), needed))

    def _answered(self, what: str, asked: tuple[object, ...], work: Callable[[], Terms]) -> Terms:
        """What the estimates say of the model with some figures: plans of other questions ask the same."""
        arch = self.memo.of(("figures", id(self.arch)), lambda: figures_of(self.arch, texts=True))
        return self.memo.recall.of((what, figures_of(arch, *asked, texts=True)), work)

    def margins(self, job: TrainingJob, facts: OfferFacts, nodes: int, split: TrainingLayout) -> Margins:
        """What times and memory of a run are multiplied with to hold at the confidence.

        Parameters
        ----------
        job
            A job of the scenario.
        facts
            What it runs on.
        nodes
            Shapes of one job.
        split
            The layout as a row tells it.
        """
        measured = step_measured(job, facts.shape, self.under_way)
        power = power_outside(job, self.arch, self.catalog, facts, measured, Placed(nodes, split))
        return margins_on(job, self.arch, facts.device, self.catalog, measured, power)

    def way(self, job: TrainingJob, split: TrainingLayout, nodes: int, facts: OfferFacts, margins: Margins) -> Way:
        """One job on so many shapes, worked out once for a split.

        Parameters
        ----------
        job
            A job of the scenario; its name keeps what was worked out apart.
        split
            The layout as a row tells it.
        nodes
            Shapes of one job.
        facts
            The offer looked up again; on spot the job is interrupted as the scenario says.
        margins
            Of the job on that device. Only `erring` counts: times are as predicted, not at the confidence.
        """
        spot = self.scenario.hardware.spot if facts.offer.price_model == "spot" else None
        ratio = ratio_on(self.under_way, facts.device.id)

        def predicted() -> Way:
            machine = training_machine(
                facts.device, facts.shape, job, self.arch, self.catalog, facts.inter_node_bytes_per_s
            )
            spec = training_spec(job, self.arch, facts.device, facts.shape, ratio, spot, margins.erring)
            layout = layout_of(split, nodes * facts.shape.devices)
            time = self._answered(
                "time", (spec, layout, machine), lambda: training_time(self.arch, spec, layout, machine)
            )
            return Way(spec, float(machine.mfu), time.row(0), float(time.total) / 3600.0)

        key = ("way", job.name, facts.shape.id, facts.shape.devices, spot is None, nodes, ratio, *sorted(split.items()))
        return self.memo.of(key, predicted)

    def _offer(self, asked: TrainingJob | ServingFleet, row: Allocation, facts: OfferFacts) -> Iterator[Finding]:
        """Price, place and permission."""
        offer, shape, device = facts.offer, facts.shape, facts.device
        yield from cell_findings("wrong-offer", asked.name, row, place_cells(offer, shape))
        if row["price_microusd_per_hour"] != offer.price_microusd_per_hour:
            price = offer.price_microusd_per_hour
            yield Finding(
                "wrong-price", f"{asked.name}: {row['price_microusd_per_hour']} stated, the catalog has {price}"
            )
        if row["count"] < 1 or ("shared" not in row and row["devices"] != row["count"] * shape.devices):
            yield Finding(
                "wrong-count", f"{asked.name}: {row['count']} × {shape.devices} is not {row['devices']} devices"
            )
        if facts.owned is None and not self.allowed(offer, device):
            yield Finding("not-allowed", f"{asked.name}: the scenario does not allow {row['offer']}")
        if not in_its_regions(asked, offer):
            yield Finding("not-allowed", f"{asked.name}: {row['offer']} is in none of its regions")
        if offer.price_model == "spot" and isinstance(asked, ServingFleet) and not asked.max_spot_share:
            yield Finding("not-allowed", f"{asked.name}: {row['offer']} is a spot offer, which does not serve")
        use = "training" if isinstance(asked, TrainingJob) else "serving"
        if use not in device.uses:
            yield Finding("not-allowed", f"{asked.name}: {device.id} is not for {use}")
        # all that is held of it at one time is a limit on the plan; of the nodes of a pool this is said here alone
        if offer.max_shapes is not None and row["count"] > offer.max_shapes * jobs_of(row):
            yield Finding("limit-exceeded", f"{asked.name}: {row['offer']} is sold up to {offer.max_shapes}")

    def allowed(self, offer: Offer, device: Device) -> bool:
        """Whether the scenario allows what is rented."""
        hardware = self.scenario.hardware
        return (
            any(device_matches(device, pattern) for pattern in hardware.allow)
            and not any(device_matches(device, pattern) for pattern in hardware.deny)
            and any(region_matches(offer, pattern) for pattern in hardware.regions)
            and offer.price_model in (*hardware.pricing, RESERVED)  # what reserves nodes is checked where it is bought
        )

    def _training(self, job: TrainingJob, row: TrainingAllocation, facts: OfferFacts) -> Iterator[Finding]:
        per_job = row["count"] // max(row["jobs"], 1)
        if row["jobs"] < 1 or per_job * row["jobs"] != row["count"]:
            yield Finding("wrong-count", f"{job.name}: {row['count']} shapes for {row['jobs']} jobs")
            return
        if per_job > 1 and facts.inter_node_bytes_per_s is None:
            yield Finding("network-unknown", f"{job.name}: {row['offer']} may run only what fits one shape")
            return
        if not runs_on(job.framework, facts.device.frameworks):
            yield Finding("not-allowed", f"{job.name}: {job.framework} does not run on {facts.device.id}")
        if not facts.device.peak_flop_per_s.get(job.precision):
            yield Finding("not-allowed", f"{job.name}: {facts.device.id} has no {job.precision}")
            return
        layout = layout_of(row["layout"], per_job * facts.shape.devices)
        margins = self.margins(job, facts, per_job, row["layout"])
        if facts.shape.max_shapes_per_job is not None and per_job > facts.shape.max_shapes_per_job:
            most = facts.shape.max_shapes_per_job
            yield Finding("limit-exceeded", f"{job.name}: {facts.shape.id} connects up to {most} to one job")
        shared = "mix" in row
        problems = list(
            training_layout_findings(job, self.arch, row["layout"], facts.shape, layout.devices, shared=shared)
        )
        yield from problems
        if not problems:
            yield from self._software(job, row, facts, per_job)
            yield from self._memory(job, row, layout, facts, margins)
        if not problems and not shared and "switch" not in row:
            yield from self._time(job, row, facts, per_job, margins)

    def _software(
        self, job: TrainingJob, row: TrainingAllocation, facts: OfferFacts, per_job: int
    ) -> Iterator[Finding]:
        """The programs that run it are those of the table."""
        asked = asked_on(job, self.arch, {**row["layout"]}, facts.device, facts.shape, per_job, mixed="mix" in row)
        if row.get("software") != able(asked):
            programs = ", ".join(able(asked)) or "no program"
            yield Finding("wrong-software", f"{job.name}: {row.get('software')} stated, it is run by {programs}")

    def _mixes(self, job: TrainingJob, rows: list[TrainingAllocation]) -> Iterator[Finding]:
        """Rows that share jobs among several offers, together."""
        names = list(dict.fromkeys(row["mix"]["name"] for row in rows if "mix" in row))
        for name in names:
            pairs = [
                (row, facts_of_row(row, self.scenario, self.catalog))
                for row in rows
                if "mix" in row and row["mix"]["name"] == name
            ]
            known = [(row, facts) for row, facts in pairs if facts is not None]
            if len(known) == len(pairs):
                check = MixCheck(
                    scenario=self.scenario, catalog=self.catalog, arch=self.arch, job=job, under_way=self.under_way
                )
                yield from check.findings(known)

    def _switches(self, job: TrainingJob, rows: list[TrainingAllocation]) -> Iterator[Finding]:
        """Rows of jobs that change machines, together."""
        check = self.switch_check(job)
        for pairs in self.switched(rows):
            yield from check.findings(pairs)

    def switch_check(self, job: TrainingJob) -> SwitchCheck:
        """What works the switches of a job out again."""
        return SwitchCheck(
            scenario=self.scenario, catalog=self.catalog, arch=self.arch, job=job, part_of=partial(self._part, job)
        )

    def switched(self, rows: Sequence[TrainingAllocation]) -> Iterator[list[tuple[TrainingAllocation, OfferFacts]]]:
        """Rows of each switch whose offers are known."""
        for name in dict.fromkeys(row["switch"]["name"] for row in rows if "switch" in row):
            pairs = [
                (row, facts)
                for row in rows
                if "switch" in row and row["switch"]["name"] == name
                if (facts := facts_of_row(row, self.scenario, self.catalog)) is not None
            ]
            if pairs:
                yield pairs

    def _part(self, job: TrainingJob, row: TrainingAllocation, facts: OfferFacts) -> SwitchedPart:
        """A row of a switch with the whole run on its machines."""
        ratio, nodes = ratio_on(self.under_way, facts.device.id), row["count"] // row["jobs"]
        margins = self.margins(job, facts, nodes, row["layout"])
        way = self.way(job, row["layout"], nodes, facts, margins)
        return SwitchedPart(row, facts, margins, way.spec, way.mfu, way.seconds, way.busy_s, ratio)

    def _chance(self, job: TrainingJob, way: Way, facts: OfferFacts, devices: int) -> float:
        """What a run on machines that are taken away is longer than its mean at the confidence of the job."""
        spot, run = self.scenario.hardware.spot, way.spec.run
        if facts.offer.price_model != "spot" or spot is None or run is None:
            return 1.0
        size = checkpoint_bytes_of(self.arch, way.spec)
        return float(np.max(preemption_margin(way.busy_s, devices, size, run, job.confidence_share)))

    def _memory(
        self, job: TrainingJob, row: TrainingAllocation, layout: Layout, facts: OfferFacts, margins: Margins
    ) -> Iterator[Finding]:
        terms = self.memory(job, row["layout"], layout.devices, facts.device.family)
        needed, usable = float(terms.total), usable_bytes(facts.device, facts.shape)
        cells = memory_cells(terms.row(0), usable)
        yield from cell_findings("wrong-memory", job.name, row["memory"], cells, scale=usable)
        if needed * margins.memory > usable * (1 + 1e-12):
            at = f" at {job.confidence_share:.0%}" if margins.memory > 1 else ""
            message = f"needs {needed * margins.memory:.6g} B{at} of {usable:.6g} B usable"
            yield Finding("does-not-fit", f"{job.name}: {message}")

        yield from self._hosts(job, layout, facts)

    def _hosts(self, job: TrainingJob, layout: Layout, facts: OfferFacts) -> Iterator[Finding]:
        """What is offloaded must be held by hosts of known memory."""
        if not job.offload:
            return
        most = host_bytes_per_device(facts.shape)
        asked = float(host_bytes(self.arch, training_spec(job, self.arch), layout, facts.device.family).total)
        if most is None or asked > most:
            yield Finding("does-not-fit", f"{job.name}: offloads {asked:.6g} B a device, hosts hold {most or 0:.6g} B")

    def _time(
        self, job: TrainingJob, row: TrainingAllocation, facts: OfferFacts, per_job: int, margins: Margins
    ) -> Iterator[Finding]:
        way, devices = self.way(job, row["layout"], per_job, facts, margins), per_job * facts.shape.devices
        spec, hours = way.spec, way.hours
        spot = self.scenario.hardware.spot if facts.offer.price_model == "spot" else None
        yield from cell_findings("wrong-time", job.name, row, {"hours": hours})
        restart_s = spec.run.restart_s if spec.run is not None else 0.0
        margin = margins.time * self._chance(job, way, facts, devices)
        held = {"held_hours": hours * margin, "billed_hours": billed_hours(facts.bill, hours)}
        yield from cell_findings("wrong-time", job.name, row, held)
        yield from running_findings(job, row, facts, self.scenario, hours * margin, restart_s)
        if hours * 3600.0 * margin > job.deadline_s * (1 + 1e-12):
            at = f" at {job.confidence_share:.0%} confidence" if margin > 1 else ""
            when = f"{hours * margin:.6g} h{at}"
            yield Finding("late", f"{job.name}: {when} is after the deadline of {job.deadline_s / 3600:.6g} h")
        shares = "shared" in row  # what it bears of nodes that are there all the time is checked with their other users
        yield from band_findings(job, row, margins, hours, fixed=shares)
        yield from cell_findings("wrong-time", job.name, row, training_cells(job, row, way.seconds, hours))
        ratio = ratio_on(self.under_way, facts.device.id)
        yield from cell_findings("wrong-time", job.name, row, {"step_time_ratio": ratio})
        yield from run_findings(job, self.arch, spec, facts.shape, row, way.seconds, spot)
        speed = speed_cells(job, self.arch, self.catalog, facts, way.mfu, way.busy_s, devices)
        yield from cell_findings("wrong-time", job.name, row, speed)
        yield from cell_findings("wrong-time", job.name, row["work"], speed["work"])  # each by its own size
        energy = energy_cells(self.catalog, facts, row["count"], hours)
        yield from cell_findings("wrong-energy", job.name, row, {} if shares else energy)
        cost = training_cost(row, facts, per_job, hours)
        if row["cost_microusd"] != cost and not shares:
            yield Finding("wrong-cost", f"{job.name}: {row['cost_microusd']} micro-dollars stated, {cost} computed")


def _rows_of_job(row: TrainingAllocation) -> int:
    """Rows that tell of one job together: groups of a mix, parts of a switch."""
    return row["mix"]["groups"] if "mix" in row else row["switch"]["parts"] if "switch" in row else 1


def in_its_regions(asked: TrainingJob | ServingFleet, offer: Offer) -> bool:
    """Whether a workload may stand where an offer, or what is owned, stands."""
    return any(region_matches(offer, pattern) for pattern in asked.regions)
