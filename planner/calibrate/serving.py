"""Calibrates serving: fits all rows, holds every figure against fits that have not seen its device, model or source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.calibrate.serving_fit import Sample, ServingFactors, ServingFit
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog
from planner.errors import InputError
from planner.validate.serving import batch_of, entries_of
from planner.validate.serving_points import Point, points_of
from planner.validate.serving_rows import ServingRow

Values = NDArray[np.float64]
SCHEMA = "catalog/serving/v1"
FOLDS: Mapping[str, Callable[[Point], object]] = {
    "device": lambda point: point.device,
    "model": lambda point: point.model,
    "source": lambda point: point.source,
}
# Figures that a band of plans is drawn from.
BANDS: Mapping[str, Callable[[Point], bool]] = {
    "tpot": lambda point: point.metric == "tpot_s" and point.row.load == "closed",
    "ttft": lambda point: point.metric == "ttft_s" and point.row.load == "closed",
    "throughput": lambda point: point.metric == "output_tokens_per_s" and point.row.load in ("offline", "mlperf"),
}
FEWEST_ROWS = 20  # below it a family has the band of all


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCalibrationRun:
    """Constants with the errors that they showed on rows left out."""

    points: tuple[Point, ...]
    families: tuple[str, ...]  # device family of each point
    factors: ServingFactors
    fitted: Values  # prediction of each point by the fit of all
    held_out: Mapping[str, Values]  # device | model | source -> prediction of each point by a fit without it
    known_bands: Mapping[str, Mapping[str, Band]]  # of the catalog: kept for figures that the rows do not have
    source: str
    as_of: str

    def ratio(self, fold: str) -> Values:
        """Measured over predicted of every point, left out in a fold."""
        return np.array([point.measured for point in self.points]) / self.held_out[fold]

    def bands(self) -> dict[str, dict[str, Band]]:
        """Quantiles of measured over predicted, over all three folds; by family where it has rows enough."""
        found: dict[str, dict[str, Band]] = {}
        for metric, holds in BANDS.items():
            counts = np.array([holds(point) and not point.left_out for point in self.points])
            groups = {"all": counts}
            for family in sorted(set(self.families)):
                own = counts & np.array([name == family for name in self.families])
                if own.sum() >= FEWEST_ROWS:
                    groups[family] = own
            own_bands = {name: self._band(mask) for name, mask in groups.items() if mask.any()}
            found[metric] = own_bands or dict(self.known_bands.get(metric, {}))
        return found

    def _band(self, mask: NDArray[np.bool_]) -> Band:
        ratio = np.concatenate([self.ratio(fold)[mask] for fold in FOLDS])
        errors = np.abs(1.0 / ratio - 1.0)
        p10, p50, p90 = (float(value) for value in np.quantile(ratio, (0.1, 0.5, 0.9)))
        return Band(
            p10=p10,
            p50=p50,
            p90=p90,
            rows=int(mask.sum()),
            sources=len({point.source for point, counts in zip(self.points, mask, strict=True) if counts}),
            median_error=float(np.median(errors)),
            mean_error=float(np.mean(errors)),
            p90_error=float(np.quantile(errors, 0.9)),
        )

    def by_source(self) -> dict[str, dict[str, float]]:
        """Errors of each publication, left out: its figures that count."""
        found: dict[str, dict[str, float]] = {}
        errors = np.abs(1.0 / self.ratio("source") - 1.0)
        for source in sorted({point.source for point in self.points}):
            mine = [i for i, p in enumerate(self.points) if p.source == source and not p.left_out]
            if mine:
                part = errors[mine]
                found[source] = {"figures": len(mine), "median": float(np.median(part)), "mean": float(np.mean(part))}
        return found

    def to_yaml(self) -> str:
        """The file that the catalog reads, `calibration/serving.yaml`."""
        lines = [*_HEAD, f"schema: {SCHEMA}", f"defaults: {{as_of: {self.as_of}, status: inferred}}"]
        lines += [f'source: "{self.source}"', f"common: {_mapping(self.factors.common)}", "engines:"]
        lines += [f"  {_name(engine)}: {_mapping(own)}" for engine, own in self.factors.engines.items()]
        lines += ["families:", *(f"  {name}: {_mapping(own)}" for name, own in self.factors.families.items()), "bands:"]
        for metric, groups in self.bands().items():
            lines.append(f"  {metric}:")
            lines += [f"    {name}: {_mapping(_cells(band))}" for name, band in groups.items()]
        lines += ["by_source:", *(f'  "{name}": {_mapping(own)}' for name, own in self.by_source().items()), ""]
        return "\n".join(lines)


def calibrate_serving(
    rows: Sequence[ServingRow],
    catalog: Catalog,
    *,
    source: str,
    as_of: str,
    tell: Callable[[str], None] = lambda text: None,
) -> ServingCalibrationRun:
    """Fit everything that the rows measured, then again without each device, model and source.

    Raises
    ------
    InputError
        No row can be fitted: unknown devices or shapes, or nothing measured.
    """
    entries = entries_of(rows, catalog)
    batch = batch_of(entries) if entries else None
    points = points_of(rows, batch) if batch else []
    if batch is None or not points:
        hint = "a row needs a device of the catalog, the shape of its model, its load, and a latency or tokens/s"
        raise InputError.of("nothing-to-fit", "no row of the table can be fitted", hint=hint)
    sample = Sample.of(batch, points)
    fit = ServingFit(sample)
    tell("all rows")
    every = np.ones(len(points), dtype=bool)
    whole = fit.fit(every)
    held_out = {name: _without(fit, points, key, tell) for name, key in FOLDS.items()}
    family_of = {entry.row: entry.device.family for entry in entries}
    return ServingCalibrationRun(
        points=tuple(points),
        families=tuple(family_of[point.position] for point in points),
        factors=fit.factors(whole, every),
        fitted=fit.predict(whole),
        held_out=held_out,
        known_bands=catalog.serving.bands if catalog.serving else {},
        source=source,
        as_of=as_of,
    )


def _without(
    fit: ServingFit, points: Sequence[Point], key: Callable[[Point], object], tell: Callable[[str], None]
) -> Values:
    """Every point by a fit from the expectations on, without what shares its key."""
    keys = [key(point) for point in points]
    predicted = np.full(len(points), np.nan)
    for each in dict.fromkeys(keys):
        tell(str(each))
        out = np.array([own == each for own in keys])
        predicted[out] = fit.predict(fit.fit(~out))[out]
    return predicted


_HEAD = (
    "# The analytic tier of serving: constants that every engine and device shares, factors on them by engine and by",
    "# device family, and the error that they showed on rows whose device, model or source was not used to fit (p10,",
    "# p50, p90: quantiles of measured over predicted; errors are absolute shares).",
    "# Written by `plan calibrate serving`; `make calibrate` makes the shipped one from the shipped rows.",
)


def _mapping(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in values.items()) + "}"


def _cells(band: Band) -> dict[str, float]:
    return {name: getattr(band, name) for name in Band.__slots__ if name != "tag"}


def _name(engine: str) -> str:
    return engine if engine.replace("-", "").replace(".", "").isalnum() else f'"{engine}"'


def _short(value: float) -> str:
    """Five digits; YAML wants a point in a number with an exponent."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.5g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
