"""Error bands of a plan, worked out again from the catalog: quantiles, margins, sums, and what the margins cost.

Shares EQ-BAND-1 to EQ-BAND-3 with the search, not the way they are put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from planner.architecture.model import Architecture
from planner.catalog.model import Band, Catalog, Device
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding, cell_findings, proven_microusd
from planner.equations.bands import band_quantile, lognormal_p90, widened_quantile
from planner.estimate.bands import NEAR, StepMeasured
from planner.estimate.resolve import measured_mfu, sequence_length_of
from planner.scenario.schema import DEFAULT_ESTIMATOR, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument, Workload
    from planner.plan.model.rows import Spread, TrainingAllocation, TrainingLayout


class ErrorCells(TypedDict):
    """A measured error without the margin that follows from it."""

    p10: float
    p50: float
    p90: float
    rows: int
    sources: int
    median_error: float
    mean_error: float
    p90_error: float


class BandNames(TypedDict):
    """Which prediction a band is of."""

    confidence: float
    tier: str
    family: str
    constants: str
    inherited_from: str
    tag: str


class Margins(NamedTuple):
    """What time and memory are multiplied with to hold at the confidence of a job, and the bands they are from."""

    time: float
    memory: float
    time_band: ErrorCells | None
    memory_band: ErrorCells | None
    names: BandNames
    erring: float = 1.0  # what times are multiplied with, where the scenario says to which quantile they err


def power_outside(
    job: TrainingJob,
    arch: Architecture,
    catalog: Catalog,
    facts: OfferFacts,
    measured: StepMeasured,
    row: Placed | None,
) -> float:
    """By which power the band of times is wider, since a job lies outside of the rows behind it.

    Parameters
    ----------
    job
        Its sequence length, tier and given speeds count.
    arch
        Its parameters count.
    catalog
        What rows of each family cover, and how much further off predictions are outside.
    facts
        What it runs on.
    measured
        Whether a step of the job was timed on such devices: its model and sequences are no guess.
    row
        How many shapes a run has, and its layout; None = a group of a mix, whose groups talk over the network.
    """
    family, tier = catalog.training_families.get(facts.device.family), _tier(job, arch, facts.device)
    if tier != "analytic" or family is None:
        return 1.0
    sizes: dict[str, float] = {}
    if not measured:
        sizes = {"parameters": arch.parameters, "sequence_length": sequence_length_of(job, arch)}
    if row is not None:
        sizes["devices"] = row.nodes * facts.shape.devices
        sizes |= {"pp": row.split["pp"], "cp": row.split["cp"], "ep": row.split["ep"]}
    found = [1.0]
    for name, (low, high) in family.validity.items():
        size = sizes.get(name, low)
        if size < low * (1 - NEAR) or size > high * (1 + NEAR):
            found.append(catalog.training_beyond.get(f"{name} {'below' if size < low else 'above'}", 1.0))
    fabric = catalog.fabrics.get(facts.shape.network_kind)
    strange = fabric is not None and fabric.sustained_share < 1 and facts.shape.inter_node_bytes_per_s_per_device
    if strange and (row is None or row.nodes > 1):
        found.append(catalog.training_beyond.get("devices above", 1.0))
    return max(found)


class Placed(NamedTuple):
    """A run as its row tells it."""

    nodes: int  # shapes
    split: TrainingLayout


def _tier(job: TrainingJob, arch: Architecture, device: Device) -> str:
    tier = "rule" if not arch.layers else DEFAULT_ESTIMATOR if job.tier == "measured" else job.tier
    return tier if measured_mfu(device, job.mfu) is None else "measured"


def margins_on(
    job: TrainingJob,
    arch: Architecture,
    device: Device,
    catalog: Catalog,
    measured: StepMeasured,
    power: float = 1.0,
) -> Margins:
    """The margins of a job on a device.

    Parameters
    ----------
    job
        Its confidence, tier, adapters and given speeds count, and the quantile to which predictions are said to err.
    arch
        Whether layers are known, and whether some are of experts.
    device
        What it runs on.
    catalog
        The error bands of each family of devices, and the error of the rule of thumb.
    measured
        Whether a step was timed on such devices: in the layout that the job is held to times have no band.
    power
        By which the band of times is wider, see `power_outside`.
    """
    tier = _tier(job, arch, device)
    family = catalog.training_families.get(device.family)
    kind = "tuning" if job.lora is not None else "experts" if arch.is_moe else "dense"
    time: ErrorCells | None = None
    tag = "measured" if measured or tier == "measured" else ""
    if measured != "same" and tier == "analytic" and family:
        band = catalog.time_band_corrected(device, kind) if measured else family.time_band_of(device.id, kind)
        time, tag = error_cells(band) if band else None, tag or (band.tag if band else "")
    if measured != "same" and tier == "rule":
        time = _rule(catalog, device.family)
        tag = tag or ("" if time is None else "calibrated" if time["rows"] else "unfitted")
    memory = error_cells(family.memory_band_of(kind)) if family else None
    erring = 1.0 if job.errors_share is None else _margin(time, job.errors_share)
    if time is not None and power != 1.0:
        low, high = (float(widened_quantile(time["p50"], end, power)) for end in (time["p10"], time["p90"]))
        time = {**time, "p10": low, "p90": high}
    if job.errors_share is not None:
        time = None
    return Margins(
        time=_margin(time, job.confidence_share),
        memory=_margin(memory, job.confidence_share),
        time_band=time,
        memory_band=memory,
        names={
            "confidence": job.confidence_share,
            "tier": tier,
            "family": device.family,
            "constants": family.constants_id if family and tier == "analytic" else "",
            "inherited_from": family.inherited_from if family else "",
            "tag": tag,
        },
        erring=erring,
    )


def error_cells(band: Band) -> ErrorCells:
    """What was measured over predicted, and on what."""
    return {
        "p10": band.p10,
        "p50": band.p50,
        "p90": band.p90,
        "rows": band.rows,
        "sources": band.sources,
        "median_error": band.median_error,
        "mean_error": band.mean_error,
        "p90_error": band.p90_error,
    }


def _rule(catalog: Catalog, family: str) -> ErrorCells | None:
    error = catalog.rule_error
    if error is None:
        return None
    known = family == error.family
    other = error.max if error.elsewhere_mean is None else error.elsewhere_mean
    mean, runs = (error.mean, error.runs) if known else (other, 0)
    high = float(lognormal_p90(mean))
    return {
        "p10": 1.0 / high,
        "p50": 1.0,
        "p90": high,
        "rows": runs,
        "sources": runs,
        "median_error": error.median if known else mean,
        "mean_error": mean,
        "p90_error": high - 1.0,
    }


def _margin(band: ErrorCells | None, confidence: float) -> float:
    return 1.0 if band is None else max(1.0, float(band_quantile(band["p50"], band["p90"], confidence)))


def band_findings(
    job: TrainingJob,
    row: TrainingAllocation,
    margins: Margins,
    hours: float,
    *,
    spread: Spread | None = None,
    fixed: bool = False,
) -> Iterator[Finding]:
    """Everything wrong with what a row says of its own errors.

    Parameters
    ----------
    job
        The job that the row is of.
    row
        Its cost and its memory are taken as stated.
    margins
        Of the job on the device of the row; in a mix the time is that of the group that may be off most.
    hours
        Predicted time of the row, above 0.  [h]
    spread
        Hours of the row where errors of other rows move them, too, as in a switch; None = `hours` times its band.  [h]
    fixed
        Whether its cost is the same however long it runs.
    """
    stated = row["error_band"]
    if stated is None:
        yield Finding("wrong-band", f"{job.name}: the error band is missing")
        return
    time, memory = margins.time_band, margins.memory_band
    held = _spread(time, hours, margins.time) if spread is None else spread
    each_usd = row["cost_microusd"] / 1e6 / hours
    cells = {
        **margins.names,
        "time": None if time is None else {**time, "margin": margins.time},
        "memory": None if memory is None else {**memory, "margin": margins.memory},
        "hours": held,
        "cost_usd": _certain(row["cost_microusd"] / 1e6)
        if fixed
        else {
            "p10": each_usd * held["p10"],
            "p50": each_usd * held["p50"],
            "p90": each_usd * held["p90"],
            "at_confidence": each_usd * held["at_confidence"],
        },
        "needed_bytes": _spread(memory, row["memory"]["needed_bytes"], margins.memory),
    }
    yield from cell_findings("wrong-band", job.name, stated, cells)


def _spread(band: ErrorCells | None, value: float, margin: float) -> Spread:
    low, middle, high = (band["p10"], band["p50"], band["p90"]) if band else (1.0, 1.0, 1.0)
    return {"p10": value * low, "p50": value * middle, "p90": value * high, "at_confidence": value * margin}


def workload_band_findings(name: str, workload: Workload) -> Iterator[Finding]:
    """The band of a workload is the sum of its rows, quantile by quantile; its time is that of the last row."""
    banded = [cast("TrainingAllocation", row) for row in workload["allocations"] if row.get("error_band")]
    rows = [row["error_band"] for row in banded]
    stated = workload["error_band"]
    if not rows or stated is None:
        if bool(rows) != (stated is not None):
            yield Finding("wrong-band", f"{name}: rows and workload do not agree that there is an error band")
        return
    cells = {
        "confidence": rows[0]["confidence"],
        "tiers": sorted({row["tier"] for row in rows}),
        "families": sorted({row["family"] for row in rows}),
        "hours": _largest(_in_turn(banded)),
        "cost_usd": _summed([row["cost_usd"] for row in rows]),
    }
    yield from cell_findings("wrong-band", name, stated, cells)


def _in_turn(rows: Sequence[TrainingAllocation]) -> list[Spread]:
    """Hours of each way: of a job that changes machines the first part and the second."""
    found: dict[object, list[Spread]] = {}
    for number, row in enumerate(rows):
        found.setdefault(row["switch"]["name"] if "switch" in row else number, []).append(row["error_band"]["hours"])
    return [cast("Spread", _summed(parts)) for parts in found.values()]


def _largest(parts: Sequence[Spread]) -> Mapping[str, float]:
    spreads = cast("Sequence[Mapping[str, float]]", parts)
    return {key: max(spread[key] for spread in spreads) for key in spreads[0]}


def _summed(parts: Sequence[Spread]) -> Mapping[str, float]:
    spreads = cast("Sequence[Mapping[str, float]]", parts)
    return {key: sum(spread[key] for spread in spreads) for key in spreads[0]}


def _certain(cost_usd: float) -> Spread:
    return {"p10": cost_usd, "p50": cost_usd, "p90": cost_usd, "at_confidence": cost_usd}


def total_band_findings(document: PlanDocument) -> Iterator[Finding]:
    """The band of the total, and the cost of the margins as the difference of two costs."""
    summary, workloads = document["summary"], document["workloads"]
    plain = [_certain(workload["cost_usd"]) for workload in workloads if not workload["error_band"]]
    banded = [workload["error_band"] for workload in workloads if workload["error_band"]]
    bought = [_certain(contract["cost_usd"]) for contract in document["contracts"]]
    bought += [_certain(copy["cost_usd"]) for copy in document["copies"]]
    parts = [*plain, *bought, *(band["cost_usd"] for band in banded)]
    yield from cell_findings("wrong-band", "summary", summary, {"cost_band": _summed(parts)})
    margins = summary["margins"]
    if margins is None:
        return
    median, cost = margins["median_cost_microusd"], proven_microusd(document)
    cells = {
        "confidence": max((band["confidence"] for band in banded), default=0.0),
        "median_cost_usd": median / 1e6,
        "margins_microusd": cost - median,
        "margins_usd": (cost - median) / 1e6,
    }
    yield from cell_findings("wrong-band", "margins", margins, cells)
    if document["status"] == "optimal" and median > cost:
        yield Finding("wrong-band", f"margins: the plan without them costs more, {median} micro-dollars")
