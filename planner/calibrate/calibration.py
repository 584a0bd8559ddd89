"""A finished calibration: constants, bands and errors of every family, as YAML for the catalog and as a report.

And the evidence of docs/validation.md: every fold fitted, every row predicted, with and without its source.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from planner.calibrate.serving import ServingCalibrationRun, calibrate_serving
from planner.calibrate.training import (
    CORNERS,
    Constants,
    HeldOut,
    Point,
    beyond,
    by_family,
    fit_constants,
    hold_out,
    points_of,
    power_beyond,
)
from planner.calibrate.training_effects import BAND_NORMAL, HEIRS, PRIORS, VENDOR, Heir
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, TrainingFamily, TrainingPart
from planner.errors import InputError
from planner.files import data_folder, read_text
from planner.validate.evidence import TOTALS_LIMITS, Evidence
from planner.validate.judgement import Judged, device_folds, source_folds, weighted_quantile, weights_of
from planner.validate.memory_rows import predict_peak_memory
from planner.validate.rows import COLLECTED, SHIPPED, MeasuredRow, shipped_totals, shipped_training_rows
from planner.validate.rows_setup import sizes_of
from planner.validate.score import Scored, why_left_out
from planner.validate.serving import predict_serving
from planner.validate.serving_entries import Entry, entries_of
from planner.validate.serving_evidence import ServingEvidence
from planner.validate.serving_rows import SHIPPED_SERVING, shipped_serving_rows
from planner.validate.serving_score import ServingFold, score_points
from planner.validate.totals import predict_totals, score_totals
from planner.validate.training import Prediction, predict_training

SCHEMA = "catalog/training/v1"
BANDS = {"dense": "time_band", "experts": "expert_time_band", "tuning": "tuning_time_band"}
_WIDEST = 10.0
_MEDIAN_NORMAL, _MEAN_NORMAL = 0.6744897501960817, 0.7978845608028654  # of |x|, x normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants with the errors that they showed on rows left out."""

    constants: Constants
    held_out: HeldOut
    memory: Band  # of peak memory as devices and allocators report it, all families together
    tuning_memory: Band  # of trainers that fine-tune
    corners: Mapping[str, tuple[Judged, Judged]]  # rows that lie beyond others; see `training.beyond`
    others: Mapping[str, TrainingFamily]  # families of the catalog that the rows do not speak of
    catalog: Catalog
    source: str
    as_of: str

    @property
    def points(self) -> tuple[Point, ...]:
        """The rows that were fitted."""
        return self.held_out.points

    def to_yaml(self) -> str:
        """The file that the catalog reads, `calibration/training.yaml`."""
        lines = [*_HEAD, f"schema: {SCHEMA}", f"defaults: {{as_of: {self.as_of}, status: inferred}}", "families:"]
        for family, part in by_family(self.points):
            lines += self._family(family, part)
        for family, known in self.others.items():
            lines += _as_known(family, known)
        own = {*(point.family for point in self.points), *self.others}
        lines += [self._heir(name, heir) for name, heir in HEIRS.items() if heir.parent in own and name not in own]
        return "\n".join(
            [*lines, "# work of a stack on the device, and of launching on the host, over a tuned one's",
             f"stacks: {_mapping(self.constants.stacks)}",
             "# by which power a band is wider where a job lies outside of the validity of its family",
             f"beyond: {_mapping(self.beyond)}", ""]
        )  # fmt: skip

    @property
    def beyond(self) -> dict[str, float]:
        """Powers of `Catalog.training_beyond`: learnt from these rows, else as the catalog has them."""
        own = {name: power_beyond(*pair) for name, pair in self.corners.items()}
        return {
            corner.name: own.get(corner.name, self.catalog.training_beyond.get(corner.name, 1.0)) for corner in CORNERS
        }

    def _family(self, family: str, part: Sequence[Point]) -> list[str]:
        constants = self.constants.of_family(family, self.catalog)
        lines = [
            f"  {family}:",
            f"    source: {_quoted(self.source)}",
            f"    constants: {_mapping({name: constants[name] for name in PRIORS})}",
            *_work(self.constants.work_of(family)),
        ]
        lines += [f"    {key}: {_band(self._of_another(family, kind))}" for kind, key in BANDS.items()]
        lines += [
            f"    memory_band: {_band(self.memory)}",
            f"    tuning_memory_band: {_band(self.tuning_memory)}",
            "    parts:",
        ]
        for device in sorted({point.part for point in part}):
            lines += self._part(device, [point for point in part if point.part == device])
        errors = self.errors_of(family)
        return [*lines, f"    by_source: {_by_source(part, errors)}", f"    validity: {_validity(part)}"]

    def _part(self, device: str, part: Sequence[Point]) -> list[str]:
        effects = self.constants.effects
        factors = {
            "work": float(np.exp(effects.value("part", device))),
            "expert_work": float(np.exp(effects.value("expert_part", device))),
        }
        lines = [f"      {device}:"]
        lines += [f"        {name}: {_short(value)}" for name, value in factors.items()]
        for kind, key in BANDS.items():
            mine = [point for point in part if point.kind == kind]
            if mine:
                lines.append(f"        {key}: {_band(self._own_band(mine))}")
        return lines

    def _own_band(self, part: Sequence[Point]) -> Band:
        """The band of a new source on a device that has rows, with the errors that its rows showed when left out."""
        chosen = {id(point) for point in part}
        index = [i for i, point in enumerate(self.points) if id(point) in chosen]
        errors = np.abs(1.0 / self.held_out.measured_over_predicted[index] - 1.0)
        weight = weights_of(part)
        return replace(
            band_of_spread(self._spread(part), rows=len(part), sources=len({point.source for point in part})),
            median_error=weighted_quantile(errors, weight, 0.5),
            mean_error=float(np.average(errors, weights=weight)),
            p90_error=weighted_quantile(errors, weight, 0.9),
        )

    def _of_another(self, family: str, kind: str) -> Band:
        """The band of a device of a family that has no rows of a kind: its part is as uncertain as its prior."""
        own = [point for point in self.points if point.family == family and point.kind == kind]
        tag = "inherited" if own else "unfitted"
        rows = own or self._nearest(family, kind)
        return replace(band_of_spread(self._spread(rows, family=family, another=True)), tag=tag)

    def _nearest(self, family: str, kind: str) -> list[Point]:
        """Rows of a kind: of the same maker's devices, else of all."""
        every = [point for point in self.points if point.kind == kind] or list(self.points)
        kin = [point for point in every if point.family.startswith("tpu") == family.startswith("tpu")]
        return kin or every

    def _spread(self, part: Sequence[Point], *, family: str = "", another: bool = False) -> float:
        """Mean deviation of a new source's logarithms from predictions of these rows."""
        _, spread = self.constants.predict(part, self.catalog, family=family, another=another)
        return float(np.sqrt(np.average(spread**2, weights=weights_of(part)))) * self.held_out.stretch

    def _heir(self, name: str, heir: Heir) -> str:
        """A family without rows: its parent's constants, moved by its vendor, as far off as these and parts differ."""
        rows = [point for point in self.points if point.family == heir.parent and point.kind == "dense"]
        near = self._spread(rows, another=True) if rows else 1.0
        far = self._spread(rows, family=name, another=True) if rows else 1.0 + heir.further
        widen = min(max(far / near, 1.0), _WIDEST)
        line = f"  {name}: {{inherits: {heir.parent}, because: {_quoted(heir.because)}, widen: {_short(widen)}"
        if heir.vendor and rows:
            own = self.constants.of_family(name, self.catalog)
            moved = _mapping({key: own[key] for key in VENDOR if key in own})
            line += f", work: {_short(self.constants.work_of(name))}, constants: {moved}"
        return line + "}"

    def errors_of(self, family: str) -> np.ndarray:
        """|predicted / measured - 1| of the rows of a family, left out."""
        mine = np.array([point.family == family for point in self.points])
        return np.asarray(np.abs(1.0 / self.held_out.measured_over_predicted[mine] - 1.0))


def band_of_spread(spread: float, *, rows: int = 0, sources: int = 0) -> Band:
    """A log-normal band; its errors are those to expect of it.

    Parameters
    ----------
    spread
        Standard deviation of ln(measured / predicted).
    rows, sources
        That the band is known from; without rows it is tagged unfitted.
    """
    return Band(
        p10=math.exp(-BAND_NORMAL * spread),
        p50=1.0,
        p90=math.exp(BAND_NORMAL * spread),
        rows=rows,
        sources=sources,
        median_error=math.expm1(_MEDIAN_NORMAL * spread),
        mean_error=math.expm1(_MEAN_NORMAL * spread),
        p90_error=math.expm1(BAND_NORMAL * spread),
        tag="calibrated" if rows else "unfitted",
    )


def calibrate(
    rows: Sequence[MeasuredRow],
    catalog: Catalog,
    *,
    source: str,
    as_of: str,
    tell: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Fit all families that the rows speak of, and predict every row without its source.

    Parameters
    ----------
    rows
        Measured; `points_of` takes those whose time is fitted, `memory_band` those of memory.
    catalog
        Devices of the rows; families that they do not speak of are kept as it has them.
    source, as_of
        Where the rows are from, and their ISO date: provenance of the written file.
    tell
        Called with what is fitted next: all rows, then each fold by name.

    Raises
    ------
    InputError
        No row can be fitted: no step time, unknown device or shape.
    """
    points = points_of(rows, catalog)
    if not points:
        hint = "a row needs a device of the catalog, the shape of its model, its layout, and a step time or tokens/s"
        raise InputError.of("nothing-to-fit", "no row of the table can be fitted", hint=hint)
    tell("all rows")
    constants = fit_constants(points, catalog)
    held_out = hold_out(points, source_folds(points), catalog, tell)
    fitted = {point.family for point in points}
    known = {f: own for f, own in catalog.training_families.items() if not own.inherited_from}
    some = next(iter(known.values()))
    return Calibration(
        constants=constants,
        held_out=held_out,
        corners=beyond(held_out, catalog, tell),
        memory=memory_band(rows, catalog, ("reserved", "process"), tuning=False) or some.memory_band,
        tuning_memory=memory_band(rows, catalog, ("allocated", "reserved", "process"), tuning=True)
        or some.tuning_memory_band
        or some.memory_band,
        others={family: own for family, own in known.items() if family not in fitted},
        catalog=catalog,
        source=source,
        as_of=as_of,
    )


def memory_band(rows: Sequence[MeasuredRow], catalog: Catalog, kinds: Sequence[str], *, tuning: bool) -> Band | None:
    """How far a new source's peak memory may be off, of readings of some kinds; None where none was measured.

    Four fifths of what is drawn lies within, where first a source is drawn and then a row of it: a source counts as
    much as any other, however long its table.

    Parameters
    ----------
    rows
        Measured; of trust C, and those whose peak cannot be predicted, are left out.
    catalog
        Devices of the rows.
    kinds
        Of readings that count: allocated, reserved, process, formula.
    tuning
        Rows of trainers that fine-tune alone; False: all others.
    """
    found: dict[str, list[float]] = {}
    for row in rows:
        measured = row.measured_memory_bytes if why_left_out(row) is None else None
        if not measured or row.memory_kind not in kinds or (row.kind == "tuning") != tuning:
            continue
        if predicted := predict_peak_memory(row, catalog):
            found.setdefault(row.source_key or "", []).append(math.log(measured / predicted))
    if not found:
        return None
    ratios = np.concatenate([np.array(part) for part in found.values()])
    weights = np.concatenate([np.full(len(part), 1.0 / len(part)) for part in found.values()])
    errors = np.abs(np.expm1(-ratios))
    half = _within(np.abs(ratios), weights, 0.8)
    return replace(
        band_of_spread(half / BAND_NORMAL, rows=len(errors), sources=len(found)),
        median_error=float(np.median(errors)),
        mean_error=float(np.mean(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
    )


def _within(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The least value up to which a share of the weight lies."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(total, share * total[-1] * (1 - 1e-9)))])


def _sources(part: Sequence[Point]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, point in enumerate(part):
        found.setdefault(point.source, []).append(i)
    return dict(sorted(found.items()))


def _band(band: Band) -> str:
    cells = {name: getattr(band, name) for name in Band.__slots__ if name != "tag"}
    return _mapping(cells)[:-1] + f", tag: {band.tag}}}"


def _work(work: float) -> list[str]:
    """Of a family over a tuned vendor's, where it is another one's."""
    return [f"    work: {_short(work)}"] if work != 1.0 else []


def _as_known(family: str, known: TrainingFamily) -> list[str]:
    """A family of the catalog as it stands there."""
    sources = ", ".join(f"{_quoted(name)}: {_mapping(errors)}" for name, errors in known.by_source.items())
    ranges = ", ".join(f"{name}: [{_short(low)}, {_short(high)}]" for name, (low, high) in known.validity.items())
    optional = {"tuning_time_band": known.tuning_time_band, "tuning_memory_band": known.tuning_memory_band}
    parts = [line for name, part in known.parts.items() for line in _known_part(name, part)]
    return [
        f"  {family}:",
        f"    source: {_quoted(known.provenance.source)}",
        f"    constants: {_mapping(known.constants)}",
        *_work(known.work),
        f"    time_band: {_band(known.time_band)}",
        f"    expert_time_band: {_band(known.expert_time_band)}",
        *(f"    {key}: {_band(band)}" for key, band in optional.items() if band),
        f"    memory_band: {_band(known.memory_band)}",
        *(["    parts:", *parts] if parts else []),
        f"    by_source: {{{sources}}}",
        f"    validity: {{{ranges}}}",
    ]


def _known_part(name: str, part: TrainingPart) -> list[str]:
    lines = [f"      {name}:", f"        work: {_short(part.work)}", f"        expert_work: {_short(part.expert_work)}"]
    return lines + [f"        {BANDS[kind]}: {_band(band)}" for kind, band in part.bands.items()]


def _by_source(part: Sequence[Point], errors: np.ndarray) -> str:
    items = {
        source: _mapping({"rows": len(mine), "median": np.median(errors[mine]), "mean": np.mean(errors[mine])})
        for source, mine in _sources(part).items()
    }
    return "{" + ", ".join(f"{_quoted(_name(source))}: {text}" for source, text in items.items()) + "}"


def _name(source: str) -> str:
    """A publication as a name that the catalog takes: letters, digits and a few signs."""
    plain = re.sub(r"[^A-Za-z0-9_.+/ -]", "-", source).lstrip("_.+/ -")[:100]
    return plain or "own rows"


def _validity(part: Sequence[Point]) -> str:
    seen: dict[str, list[float]] = {}
    for point in part:
        for name, size in sizes_of(point.row).items():
            seen.setdefault(name, []).append(size)
    return "{" + ", ".join(f"{name}: [{_short(min(own))}, {_short(max(own))}]" for name, own in seen.items()) + "}"


def _mapping(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in values.items()) + "}"


def _short(value: float) -> str:
    """Five significant digits; whole numbers without a point."""
    if value == round(value) and abs(value) < 1e15:  # 0 too, which has no logarithm
        return str(int(value))
    return f"{value:.{max(4 - math.floor(math.log10(abs(value))), 0)}f}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'


_HEAD = [
    "# The analytic tier: constants of a training step by device family, and how far a source that was not fitted may",
    "# be off (p10, p50, p90 of measured over predicted; errors: absolute shares, of rows left out, or expected).",
    "# Written by `plan calibrate training`; `make calibrate` makes the shipped one from the shipped rows.",
]


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
# "fitted on MPT + vTrain, tested on Korthikanti Table 5": which publication is which
_FITTED_ON = ("mosaicml/llm-foundry", "VIA-Research/vTrain")
_TESTED_ON = "calculon-ai/calculon"


def gather(catalog: Catalog, tell: Callable[[str], None] = lambda text: None) -> Evidence:
    """All evidence for the shipped constants, from the shipped rows; takes a minute or two.

    Raises
    ------
    InputError
        The shipped constants are not what the shipped rows give.
    """
    rows = shipped_training_rows()
    found = calibrate(rows, catalog, source=SHIPPED, as_of=COLLECTED, tell=tell)
    _demand_shipped(found)
    shipped = predict_training(rows, catalog)
    return Evidence(
        rows=rows,
        shipped=shipped,
        held_out=without_source(rows, shipped, found.held_out),
        sources=found.held_out.judged(),
        devices=hold_out(found.points, device_folds(found.points), catalog, tell).judged(),
        beyond={corner.title: found.corners[corner.name] for corner in CORNERS if corner.name in found.corners},
        korthikanti=_korthikanti(points_of(rows, catalog), catalog),
        totals={tier: _totals(catalog, tier) for tier in TOTALS_LIMITS},
    )


def same_constants(found: str, shipped: str) -> bool:
    """Whether two texts say the same but for one unit in the last digit of a number.

    What lies half-way between two digits is rounded up here and down there, as sums are taken in another order.

    Examples
    --------
    >>> same_constants("p10: -0.94563", "p10: -0.94564"), same_constants("p10: -0.9456", "p10: -0.94564")
    (True, False)
    """
    if _NUMBER.sub("", found) != _NUMBER.sub("", shipped):
        return False
    pairs = zip(map(Decimal, _NUMBER.findall(found)), map(Decimal, _NUMBER.findall(shipped)))
    return all(
        one == other or (one.as_tuple().exponent == other.as_tuple().exponent and abs(one - other) <= _last_digit(one))
        for one, other in pairs
    )


def _last_digit(number: Decimal) -> Decimal:
    return Decimal(1).scaleb(int(number.as_tuple().exponent))


def _demand_shipped(found: Calibration) -> None:
    shipped = read_text(data_folder("hardware") / "calibration" / "training.yaml")
    if not same_constants(found.to_yaml(), shipped):
        message = "the shipped constants are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")


def without_source(rows: Sequence[MeasuredRow], shipped: Sequence[Prediction], held_out: HeldOut) -> list[Prediction]:
    """Predictions of a fit without the row's source; those of rows that no fit uses stay as they are.

    Parameters
    ----------
    rows, shipped
        One prediction a row, by the shipped constants, in the same order.
    held_out
        The rows that a fit may use, each as predicted without its source; matched by name.
    """
    times = {point.row.name: float(s) for point, s in zip(held_out.points, held_out.predicted_s, strict=True)}
    return [_at(said, times[row.name]) if row.name in times else said for row, said in zip(rows, shipped, strict=True)]


def _at(said: Prediction, step_time_s: float) -> Prediction:
    """The same prediction with another step time; the tokens and FLOPs of a step stay."""
    if said.step_time_s is None:
        return said
    faster = said.step_time_s / step_time_s
    tokens, tflops = said.tokens_per_s_per_device, said.tflops_per_device
    return dataclasses.replace(
        said,
        step_time_s=step_time_s,
        tokens_per_s_per_device=None if tokens is None else tokens * faster,
        tflops_per_device=None if tflops is None else tflops * faster,
        terms={},
    )


def _korthikanti(points: Sequence[Point], catalog: Catalog) -> list[Scored]:
    constants = fit_constants([point for point in points if point.source in _FITTED_ON], catalog)
    tested = [point for point in points if point.source == _TESTED_ON]
    return [
        Scored(
            row=point.row,
            family=point.row.family or point.family,
            constants=point.family,
            predicted=float(seconds),
            measured=point.measured_s,
            target=point.measured_s,
        )
        for point, seconds in zip(tested, np.exp(constants.predict(tested, catalog)[0]), strict=True)
    ]


def _totals(catalog: Catalog, tier: str) -> list[tuple[str, float, float]]:
    rows = shipped_totals()
    scored = score_totals(rows, predict_totals(rows, catalog, tier))
    return [(item.row.name, item.predicted, item.measured) for item in scored]


def gather_serving(catalog: Catalog, tell: Callable[[str], None] = lambda text: None) -> ServingEvidence:
    """All evidence for the shipped constants, from the shipped rows; takes minutes.

    Raises
    ------
    InputError
        The shipped constants are not what the shipped rows give.
    """
    rows = shipped_serving_rows()
    found = calibrate_serving(
        rows, catalog, source=SHIPPED_SERVING, as_of=COLLECTED, folds=("campaign", "device"), tell=tell
    )
    _demand_serving_shipped(found)
    entries = entries_of(rows, catalog)
    return ServingEvidence(
        rows=rows,
        entries=entries,
        shipped=predict_serving(rows, catalog),
        folds=folds_of(found, entries),
    )


def folds_of(found: ServingCalibrationRun, entries: Sequence[Entry]) -> dict[str, ServingFold]:
    """Every figure left out, with its band: bands take their scores from the other campaigns."""
    folds = {}
    for name, own in found.held_out.items():
        known = np.isfinite(own.log_predicted)
        points = [point for point, usable in zip(own.sample.points, known, strict=True) if usable]
        folds[name] = ServingFold(
            scored=score_points(points, np.exp(own.log_predicted[known]), entries),
            judged=own.judged(found.held_out["campaign"]).chosen(known),
        )
    return folds


def _demand_serving_shipped(found: ServingCalibrationRun) -> None:
    if not same_constants(found.to_yaml(), read_text(data_folder("hardware") / "calibration" / "serving.yaml")):
        message = "the shipped constants of serving are not those that the shipped rows give"
        raise InputError.of("stale-constants", message, hint="make calibrate first")
