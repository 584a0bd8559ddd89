"""One training job with its defaults filled in: what the search asks of every site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.layouts import BATCH_TOLERANCE, RECOMPUTE, SHARDING, LayoutRules
from planner.candidates.offers import Numbered, Site
from planner.candidates.under_way import UnderWay, under_way
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Shape
from planner.estimate.bands import MEDIAN, ErrorBand, StepMeasured, beyond, beyond_power
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.recall import Recall, figures_of
from planner.estimate.resolve import (
    band_on,
    base_tier,
    batch_bounds,
    errors_ratio,
    sequence_length_of,
    sequences_of,
    step_measured,
    strange_network,
    tier_on,
    training_machine,
    training_spec,
)
from planner.estimate.run import checkpoint_bytes_of, preemption_margin
from planner.estimate.sources import training_equations
from planner.estimate.training import training_memory
from planner.estimate.training_memory import ALIKE, SHARDED
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.schema import Scenario, TrainingJob

EVERY = slice(None)


class _Seen(NamedTuple):
    """A machine as a job sees it, with what it was made of."""

    device: Device
    shape: Shape
    machine: Machine
    figures: bytes


Machines: TypeAlias = dict[tuple[str, int, float | None], _Seen]
Bands: TypeAlias = dict[tuple[str, StepMeasured], tuple[Device, Catalog, TrainingJob, ErrorBand]]
MACHINES_BYTES = 1 << 18  # of those that a question keeps, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """One job with everything that the search needs, resolved."""

    job: TrainingJob
    arch: Architecture
    spec: TrainingSpec
    rules: LayoutRules
    scenario: Scenario
    catalog: Catalog
    state_bytes: float  # of the whole model, unsharded
    under_way: UnderWay | None = None  # where a step time was measured
    physics: bytes = b""  # digest of what the layouts and the time of a step follow from, machines apart
    recall: Recall = field(default_factory=Recall)  # what was answered of layouts on machines
    patience_s: float | None = None  # keep ways that take so long, to tell which deadline could be met
    involved: int | None = None  # of a layout at most, and then the fastest of each degree; None: the fastest of all
    machines: Machines = field(default_factory=dict, compare=False)  # of questions that see machines alike
    bands: Bands = field(default_factory=dict, compare=False)

    @property
    def switches(self) -> bool:
        """Whether the job may begin on spot and end on demand: not in mixes."""
        job, scenario = self.job, self.scenario
        sold = {"spot", "on_demand"} <= set(scenario.hardware.pricing)
        return job.switch_within_job and sold and self.patience_s is None

    @property
    def latest_s(self) -> float:
        """Ways that take longer are dropped: those past the deadline, unless there is more patience.  [s]"""
        return self.job.deadline_s if self.patience_s is None else max(self.patience_s, self.job.deadline_s)

    def machine(self, site: Site) -> Machine:
        """The machine of a site at this job's precision."""
        return self._seen(site).machine

    def machine_figures(self, site: Site) -> bytes:
        """A digest of every figure of that machine."""
        return self._seen(site).figures

    def _seen(self, site: Site) -> _Seen:
        key = site.shape.id, site.shape.devices, site.inter_node_bytes_per_s  # asked some times of each group of sites
        seen = self.machines.get(key)
        if seen is None or seen.device is not site.device or seen.shape is not site.shape:
            between = site.inter_node_bytes_per_s
            machine = training_machine(site.device, site.shape, self.job, self.arch, self.catalog, between)
            seen = _Seen(site.device, site.shape, machine, figures_of(machine, texts=True))
            self.machines[key] = seen
        return seen

    def tier(self, site: Site) -> str:
        """The tier that predicts on a site."""
        return tier_on(self.job, self.arch, site.device)

    def band(self, site: Site) -> ErrorBand:
        """The error that predictions for a site carry."""
        key = site.device.id, self._step_measured(site)
        known = self.bands.get(key)
        if known is None or known[0] is not site.device or known[1] is not self.catalog or known[2] is not self.job:
            band = band_on(self.job, self.arch, site.device, self.catalog, measured=key[1])
            known = self.bands[key] = site.device, self.catalog, self.job, band
        return known[3]

    def power(
        self, site: Site, nodes: NDArray[np.int64], layout: Layout, rows: NDArray[np.int64] | slice = EVERY
    ) -> NDArray[np.float64]:
        """(n,) by which power the band of times is wider there, outside of what rows cover; see `bands.beyond_power`.

        Parameters
        ----------
        site
            The machine.
        nodes
            (n,) shapes of each run.
        layout
            How they are split.
        rows
            (n,) which of the layouts.
        """
        power = self.powers([site], np.zeros(np.size(nodes), dtype=np.int64), np.ravel(nodes), layout, rows)
        return power.reshape(np.shape(nodes))

    def powers(
        self,
        sites: Sequence[Site],
        machine: NDArray[np.int64],
        nodes: NDArray[np.int64],
        layout: Layout,
        rows: NDArray[np.int64] | slice = EVERY,
    ) -> NDArray[np.float64]:
        """(n,) the same of layouts on several machines.

        Parameters
        ----------
        sites
            The machines.
        machine
            (n,) which of them each run is on.
        nodes
            (n,) shapes of each run.
        layout
            How they are split.
        rows
            (n,) which of the layouts.
        """
        sizes = {name: np.ravel(getattr(layout, name))[rows] for name in ("pp", "cp", "ep")}
        sizes["devices"] = nodes * np.array([site.shape.devices for site in sites], dtype=np.int64)[machine]
        alike: dict[tuple[str, str, StepMeasured, bool], list[int]] = {}
        for number, site in enumerate(sites):
            figures = self.tier(site), site.device.family, self._step_measured(site)
            alike.setdefault((*figures, bool(strange_network(site.shape, self.catalog))), []).append(number)
        power, kind = np.ones(len(machine)), np.zeros(len(sites), dtype=np.int64)
        for place, numbers in enumerate(alike.values()):
            kind[numbers] = place
        for place, ((*_, strange), numbers) in enumerate(alike.items()):
            mine = np.flatnonzero(kind[machine] == place) if len(alike) > 1 else EVERY
            own = {name: size[mine] for name, size in sizes.items()}
            power[mine] = self._power(sites[numbers[0]], own, (nodes[mine] > 1) & strange)
        return power

    def power_figures(self, site: Site) -> tuple[object, ...]:
        """Everything besides sizes of runs that `power` follows from on a site."""
        known = self.catalog.training_families.get(site.device.family)
        validity = () if known is None else tuple(sorted(known.validity.items()))
        beyond = tuple(sorted(self.catalog.training_beyond.items()))
        strange = float(strange_network(site.shape, self.catalog))
        return self.tier(site), self._step_measured(site), strange, validity, beyond

    def _power(
        self, site: Site, sizes: Mapping[str, NDArray[Any]], strange: bool | NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Of sizes of runs; where a step of the job was measured, its model and sequences are no guess."""
        if self.tier(site) != "analytic":
            return np.ones(())
        own: dict[str, Any] = dict(sizes)
        if not self._step_measured(site):
            own |= {"parameters": float(self.arch.parameters), "sequence_length": float(self.spec.sequence_length)}
        return beyond_power(self.catalog, beyond(self.catalog, site.device.family, own, strange_network=strange))

    def time_margins(
        self,
        site: Site,
        confidence: float,
        nodes: NDArray[np.int64],
        layout: Layout,
        rows: NDArray[np.int64] | slice = EVERY,
    ) -> NDArray[np.float64]:
        """(n,) what times are multiplied with to hold with a confidence.

        Parameters
        ----------
        site
            The machine.
        confidence
            With which the run is to be over by then.
        nodes
            (n,) shapes of each run.
        layout
            How they are split.
        rows
            (n,) which of the layouts.
        """
        return self.band(site).time_margins(confidence, self.power(site, nodes, layout, rows))

    def row_band(self, site: Site, nodes: int, layout: Layout, row: int) -> ErrorBand:
        """The error of one layout on shapes of a site: wider where it lies outside of what rows cover.

        Parameters
        ----------
        site
            The machine.
        nodes
            Shapes of the run.
        layout
            How runs are split.
        row
            Which of the layouts.
        """
        (power,) = self.power(site, np.array([nodes]), layout, np.array([row]))
        return self.band(site).widened(float(power))

    def row_powers(self, sites: Sequence[Site], nodes: NDArray[np.int64], layout: Layout) -> NDArray[np.float64]:
        """(n,) the powers of rows on several sites.

        Parameters
        ----------
        sites
            (n,) machine of each row.
        nodes
            (n,) shapes of each run.
        layout
            (n,) how each is split.
        """
        every = Numbered(sites)
        return self.powers(every.different, every.number, nodes, layout)

    def mix_band(self, site: Site) -> ErrorBand:
        """The error of a group of a mix: its groups talk over its network, and how many there are is left out."""
        return self.band(site).widened(float(self._power(site, {}, strange_network(site.shape, self.catalog))))

    @property
    def confidences(self) -> tuple[float, ...]:
        """Confidences to search at: the one asked for, and the median, which tells what the margin costs."""
        return tuple(dict.fromkeys((self.spec.confidence, MEDIAN)))

    def spec_on(self, site: Site) -> TrainingSpec:
        """The job on a site: a speed that the user measured there replaces the rule and its penalties."""
        spot = self.scenario.hardware.spot if site.spot else None
        ratio, erring = self.step_time_ratio(site), self.erring(site)
        return training_spec(self.job, self.arch, site.device, site.shape, ratio, spot, erring)

    def preemption_margin(
        self, site: Site, busy_s: NDArray[np.float64], nodes: NDArray[np.int64], confidence: float
    ) -> NDArray[np.float64]:
        """What mean run times on shapes of a site are multiplied with to hold whatever is taken away; 1 off spot.

        Parameters
        ----------
        site
            The machine.
        busy_s
            (n,) time of the optimizer steps alone; one that is not finite counts as a second.  [s]
        nodes
            (n,) shapes of each run.
        confidence
            With which the run is to be over by then.
        """
        spec = self.spec_on(site)
        if not site.spot or spec.run is None:
            return np.ones(len(busy_s))
        devices = np.asarray(nodes) * site.shape.devices
        busy_s = np.where(np.isfinite(busy_s), busy_s, 1.0)  # what is unknown is never on time
        return preemption_margin(busy_s, devices, checkpoint_bytes_of(self.arch, spec), spec.run, confidence)

    def step_time_ratio(self, site: Site) -> float | None:
        """Measured over predicted step time on such devices; None where none was measured."""
        return self.under_way.ratio if self.under_way and self.under_way.device == site.device.id else None

    def erring(self, site: Site) -> float:
        """What predicted times are multiplied with, where the scenario says to which quantile they err; else 1."""
        return errors_ratio(self.job, self.arch, site.device, self.catalog, measured=self._step_measured(site))

    def _step_measured(self, site: Site) -> StepMeasured:
        return step_measured(self.job, site.shape, self.under_way.measured if self.under_way else None)

    @property
    def base_tier(self) -> str:
        """The tier that predicts where nothing was measured."""
        return base_tier(self.job, self.arch)

    @property
    def estimator(self) -> str:
        """The tier that predicts, and where something measured takes its place."""
        base = self.base_tier
        given = [name for name in ("mfu", "step_time") if getattr(self.job, name)]
        return f"measured where {' or '.join(given)} is given, else {base}" if given else base

    def demand(self) -> dict[str, float]:
        """What is asked for, in base units."""
        return {
            "tokens": self.job.tokens,
            "epochs": self.job.epochs,
            "progress_tokens": self.spec.progress_tokens,
            "sequence_length": self.spec.sequence_length,
            "deadline_hours": self.job.deadline_s / 3600.0,
            "start_hours": self.job.start_s / 3600.0,
        }

    def equations(self) -> list[str]:
        """Ids of the equations behind the numbers."""
        return training_equations(self.base_tier, mixed=self.job.mix_within_job)


def resolve_training(
    job: TrainingJob, arch: Architecture, scenario: Scenario, catalog: Catalog, recall: Recall | None = None
) -> TrainingQuestion:
    """The job with its defaults filled in; `recall` holds what was answered of layouts on machines before.

    Parameters
    ----------
    job
        As the scenario says it.
    arch
        Its model.
    scenario
        Of which it is a part.
    catalog
        With what the scenario adds to it.
    recall
        Answers are taken from there and kept there; None: a new one.

    Raises
    ------
    InputError
        It is under way, and no legal layout is as its measured step time says, or none fits those machines.
    """
    sequence_length, recall = sequence_length_of(job, arch), recall or Recall()
    batches, batch_range = asked_batches(job, arch, sequence_length)
    rules = LayoutRules(
        sequence_length=sequence_length,
        batches=batches,
        batch_range=batch_range,
        sharding=tuple(sorted({SHARDING.index(stage) for stage in job.sharding})),
        recompute=tuple(sorted({RECOMPUTE.index(level) for level in job.recompute})),
        domain_devices=1,
        pinned=tuple((job.layout.sizes if job.layout else {}).items()),
    )
    spec = training_spec(job, arch)
    return TrainingQuestion(
        job=job,
        arch=arch,
        spec=spec,
        rules=rules,
        scenario=scenario,
        catalog=catalog,
        state_bytes=_state_bytes(arch, spec, max(batch_range[0], 1.0)),
        under_way=under_way(job, arch, rules, scenario, catalog),
        physics=figures_of(arch, replace(spec, tokens=0.0, epochs=1.0, progress_tokens=0.0, confidence=0.0,
                                         critical_batch_tokens=None, run=None, step_time_s=None), rules, texts=True),
        recall=recall,
        machines=_machines(job, arch, catalog, recall),
    )  # fmt: skip


def _machines(job: TrainingJob, arch: Architecture, catalog: Catalog, recall: Recall) -> Machines:
    """Those that questions share which see machines alike: further ones and other jobs of a precision."""
    facts = catalog.training_families, catalog.efficiencies, catalog.training_stacks
    key = "machines", job.precision, tuple(sorted(job.mfu.items())), base_tier(job, arch)
    kept: tuple[tuple[object, ...], Machines] | None = recall.known(key)
    if kept is None or any(known is not own for known, own in zip(kept[0], facts, strict=True)):
        kept = facts, {}
        recall.keep(key, kept, nbytes=MACHINES_BYTES)
    return kept[1]


def asked_batches(
    job: TrainingJob, arch: Architecture, sequence_length: int
) -> tuple[tuple[float, ...], tuple[float, float]]:
    """Global batches to try [sequences] and the range they must stay in.

    One figure may move by `BATCH_TOLERANCE` to the nearest multiple that a layout allows; a
    range is tried at both ends, at powers of two between, and at the critical batch.

    Parameters
    ----------
    job
        As the scenario says it.
    arch
        Its model, of whose size a batch follows that is not said.
    sequence_length
        [tokens]
    """
    low, high = batch_bounds(job, arch, sequence_length)
    if high <= low * (1 + 1e-12):
        most = max(sequences_of(job, sequence_length), low)
        return (low,), (low * (1 - BATCH_TOLERANCE), min(low * (1 + BATCH_TOLERANCE), most))
    tries = {low, high, *(low * 2**k for k in range(1, 40) if low * 2**k < high)}
    if job.critical_batch_tokens:
        tries.add(min(max(job.critical_batch_tokens / sequence_length, low), high))
    return tuple(sorted(tries)), (low, high)


def _state_bytes(arch: Architecture, spec: TrainingSpec, batch: float) -> float:
    """Weights, gradients and optimizer state of the whole model, unsharded.  [B]"""
    one = dict.fromkeys(("devices", "dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch"), 1)
    some = (Layout(**one, sharding=stage, recompute=0, global_batch=batch) for stage in (0, SHARDED))
    every = [training_memory(arch, spec, layout, ALIKE[0]) for layout in some]  # programs keep other copies
    return min(sum(float(memory[name]) for name in ("weights", "gradients", "optimizer")) for memory in every)
