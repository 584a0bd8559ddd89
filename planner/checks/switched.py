"""The two rows of a switch, worked out again together: work, hours, deadline, money, errors.

Shares the equations of runs with the search, not the way they are put together: what spot surely does before the
switch is found by halving an interval, hours and shares are followed row by row from the whole run on each machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.checks.bands import ErrorCells, Margins, band_findings
from planner.checks.calendar import training_cost
from planner.checks.cells import energy_cells, speed_cells, training_cells
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding, cell_findings
from planner.checks.layout import BATCH_TOLERANCE
from planner.checks.run import Chance, chance_of, run_cells, switch_s
from planner.equations.preemption import preempted_quantile
from planner.estimate.bill import billed_hours
from planner.scenario.schema import Scenario, TrainingJob

if TYPE_CHECKING:
    from planner.estimate.training_spec import TrainingSpec
    from planner.plan.model.rows import RunFigures, Spread, TrainingAllocation

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
        problems = list(self._shape(rows))
        yield from problems
        if problems:
            return
        first, second = (self.part_of(row, facts) for row, facts in sorted(rows, key=lambda one: _number(one[0])))
        course = self._course(first, second)
        if course is None:
            yield Finding("wrong-switch", f"{self.job.name}: nothing is left, or nothing done, at the switch")
            return
        yield from self._worth(first, second, course)
        until, held = course.hours[0], course.held[1]
        if (until + held) * 3600.0 > self.job.deadline_s * (1 + 1e-12):
            late = f"{until + held:.6g} h at {self.job.confidence_share:.0%} confidence"
            yield Finding(
                "late", f"{self.job.name}: {late} is after the deadline of {self.job.deadline_s / 3600:.6g} h"
            )
        whole = first.whole_s, second.whole_s
        for number, part in enumerate((first, second)):
            yield from self._row(part, number, course, whole, (first.margins.time_band, second.margins.time_band))

    def _shape(self, rows: Sequence[tuple[TrainingAllocation, OfferFacts]]) -> Iterator[Finding]:
        """Two parts: spot, then on demand, of one shape in one place, for like batches."""
        name = self.job.name
        if not self.job.switch_within_job or self.job.mix_within_job:
            yield Finding("not-allowed", f"{name}: switch_within_job is false, but it changes machines")
        if self.scenario.scheduled or self.scenario.uncertainty:
            yield Finding("not-allowed", f"{name}: no job changes machines in a calendar or in several futures")
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
        devices, calibrated = part.per_job * part.facts.shape.devices, part.row["step_time_ratio"] is not None
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
        cells = {
            "share": share,
            "share_at_confidence": (course.surely, 1.0 - course.surely)[number],
            "checkpoint_s": course.saved_s,
            "restart_s": course.restart_s,
        }
        yield from cell_findings("wrong-switch", name, row["switch"], cells)
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
