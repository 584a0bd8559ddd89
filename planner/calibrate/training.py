"""Fits the constants of the analytic training tier, family by family, and measures the error on rows left out.

Order: the dense constants of each family on dense rows; the overhead of plain stacks that several
sources share, over all families; the dense constants again; the constants of experts on rows with
experts. A family is left with its priors where it has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from planner.calibrate.fit import Sample, Values, curvature, fit
from planner.calibrate.priors import DENSE, EXPERTS, LOW_PRECISION, OVERHEAD_PULL, PRIORS, SUSTAINED_OF_BEST
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.estimate.constants import StepConstants
from planner.estimate.device_constants import product_share
from planner.validate.measured import measured_step_time_s
from planner.validate.rows import MeasuredRow
from planner.validate.rows_setup import layout_of
from planner.validate.score import why_left_out
from planner.validate.training import architecture_of, batch_of, device_of, framework_of, refusal

# Stacks whose overhead is fitted: at least two sources must show it, or it would serve one.
SHARED_STACKS = ("megatron",)
# Tokens per device and step below which what a step costs once (optimizer, clipping, logging) hides what experts cost.
FEWEST_TOKENS = 8192.0
_MOST_ROWS_OF_A_SOURCE = 16  # that count towards the overhead of a stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One row that a fit may use."""

    row: MeasuredRow
    family: str  # of the catalog
    framework: str
    measured_s: float

    @property
    def source(self) -> str:
        """Publication of the row."""
        return self.row.source_key or self.row.file

    @property
    def tokens_per_device(self) -> float:
        """Tokens of a step on each device."""
        layout = layout_of(self.row)
        return layout["global_batch"] * float(self.row.seq_len or 0) / layout["devices"]

    @property
    def model(self) -> tuple[object, ...]:
        """What makes two rows the same model."""
        return (self.row.hidden, self.row.layers, self.row.n_experts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The result of one fit."""

    families: Mapping[str, Mapping[str, float]]  # constants by device family
    overheads: Mapping[str, float]  # by framework
    fitted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names that rows decided, by family

    def of(self, family: str, catalog: Catalog) -> StepConstants:
        """Constants of a family; the priors where it has none."""
        return StepConstants(**(self.families.get(family) or priors(family, catalog)))

    def predict(self, points: Sequence[Point], catalog: Catalog) -> Values:
        """Step time of each point  [s]."""
        return np.concatenate([self._group(family, part, catalog) for family, part in by_family(points)])

    def _group(self, family: str, part: Sequence[Point], catalog: Catalog) -> Values:
        batch = batch_of([point.row for point in part], catalog)
        return np.asarray(batch.predict(self.of(family, catalog), self.overheads).total)


def priors(family: str, catalog: Catalog) -> dict[str, float]:
    """Every constant at its expectation; of products, a share of the best one measured on the family's devices."""
    found = {name: prior.value for name, prior in PRIORS.items()}
    shares = [product_share(device) for device in catalog.devices.values() if device.family == family]
    best = max((share for share in shares if share is not None), default=None)
    return found if best is None else found | {"gemm": SUSTAINED_OF_BEST * best}


def points_of(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[Point]:
    """The rows that may be fitted, sorted by family: pre-training, trust A and B, shape and time known."""
    found = [_point(row, catalog) for row in rows]
    return sorted((point for point in found if point is not None), key=lambda point: point.family)


def _point(row: MeasuredRow, catalog: Catalog) -> Point | None:
    if why_left_out(row) is not None or refusal(row, catalog) is not None:
        return None
    measured = measured_step_time_s(row)
    device = device_of(row, catalog)
    if measured is None or device is None or not architecture_of(row).layers:
        return None
    return Point(row=row, family=device.family, framework=framework_of(row).name, measured_s=measured)


def by_family(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Points of each family, in the order in which families appear; the points must be sorted by family."""
    families = dict.fromkeys(point.family for point in points)
    return [(family, [point for point in points if point.family == family]) for family in families]


def fit_constants(points: Sequence[Point], catalog: Catalog, overheads: Mapping[str, float] | None = None) -> Constants:
    """All constants from these points alone; overheads of stacks as given, else from the points too."""
    groups = by_family(points)
    dense = {family: [p for p in part if not p.row.is_moe] for family, part in groups}
    routed = {f: [p for p in part if p.row.is_moe and p.tokens_per_device >= FEWEST_TOKENS] for f, part in groups}
    start = {family: priors(family, catalog) for family in dense}
    if overheads is None:
        first = {f: start[f] | _fit(dense[f], _dense_names(dense[f]), start[f], {}, catalog) for f in dense}
        overheads = _overheads(dense, first, catalog)
    second = {f: start[f] | _fit(dense[f], _dense_names(dense[f]), start[f], overheads, catalog) for f in dense}
    whole = {f: second[f] | _fit(routed[f], EXPERTS, second[f], overheads, catalog) for f in dense}
    names = {family: (*_dense_names(dense[family]), *(EXPERTS if routed[family] else ())) for family in dense}
    return Constants(families=whole, overheads=overheads, fitted=names)


def _dense_names(points: Sequence[Point]) -> tuple[str, ...]:
    """Constants that dense rows decide; low precision only where a row uses it."""
    low = any(point.row.precision_class in ("fp8", "fp4") for point in points)
    return DENSE + (LOW_PRECISION if low else ()) if points else ()


def sample_of(points: Sequence[Point], catalog: Catalog) -> Sample:
    """Points as arrays, weighted by source."""
    return Sample(
        batch=batch_of([point.row for point in points], catalog),
        measured_s=np.array([point.measured_s for point in points]),
        sources=tuple(point.source for point in points),
    )


def _fit(
    points: Sequence[Point],
    names: Sequence[str],
    known: Mapping[str, float],
    overheads: Mapping[str, float],
    catalog: Catalog,
) -> dict[str, float]:
    if not points or not names:
        return {}
    return fit(sample_of(points, catalog), names, known, overheads)


def _overheads(
    dense: Mapping[str, Sequence[Point]], constants: Mapping[str, Mapping[str, float]], catalog: Catalog
) -> dict[str, float]:
    """Median excess of each shared stack by (family, source), averaged and pulled to 1."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in SHARED_STACKS}
    for family, part in dense.items():
        own = StepConstants(**constants[family])
        for name, source in dict.fromkeys((p.framework, p.source) for p in part):
            if name in found:
                rows = [p for p in part if p.framework == name and p.source == source]
                ratio = sample_of(rows, catalog).ratio(own, {})
                weight = min(len(rows), _MOST_ROWS_OF_A_SOURCE) ** 0.5
                found[name].append((-float(np.median(np.log(ratio))), weight))
    return {name: _pulled(pairs) for name, pairs in found.items() if pairs}


def _pulled(pairs: Sequence[tuple[float, float]]) -> float:
    values, weights = np.array(pairs).T
    return float(np.exp((values @ weights) / (weights.sum() + OVERHEAD_PULL)))


def identifiability(points: Sequence[Point], constants: Constants, catalog: Catalog) -> dict[str, dict[str, float]]:
    """By family: how much its rows mind each constant (see `fit.curvature`)."""
    found = {}
    for family, part in by_family(points):
        names = constants.fitted.get(family, ())
        found[family] = curvature(sample_of(part, catalog), names, constants.families[family], constants.overheads)
    return found
