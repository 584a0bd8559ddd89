"""A finished calibration: constants, bands and errors of every family, as YAML for the catalog and as a report."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from planner.calibrate.crossval import HeldOut, hold_out
from planner.calibrate.inherit import HEIRS
from planner.calibrate.priors import PRIORS
from planner.calibrate.training import Constants, Point, by_family, fit_constants, identifiability, points_of
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, TrainingFamily
from planner.errors import InputError
from planner.validate.rows import MeasuredRow
from planner.validate.score import why_left_out

FEWEST_ROWS = 10  # below it a band comes from all families of the kind (GPU, TPU)
SCHEMA = "catalog/training/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants with the errors that they showed on rows left out."""

    constants: Constants
    held_out: HeldOut
    memory: Band  # of peak memory, all families together
    others: Mapping[str, TrainingFamily]  # families of the catalog that the rows do not speak of
    mind: Mapping[str, Mapping[str, float]]  # by family: how much the rows mind each constant
    source: str
    as_of: str

    def to_yaml(self) -> str:
        """The file that the catalog reads, `calibration/training.yaml`."""
        lines = [*_HEAD, f"schema: {SCHEMA}", f"defaults: {{as_of: {self.as_of}, status: inferred}}", "families:"]
        for family, part in by_family(self.held_out.points):
            lines += self._family(family, part)
        for family, known in self.others.items():
            lines += _as_known(family, known)
        own = {*self.constants.families, *self.others}
        lines += [_heir(name, *heir) for name, heir in HEIRS.items() if heir[0] in own and name not in own]
        stacks = ", ".join(f"{name}: {_short(value)}" for name, value in self.constants.overheads.items())
        return "\n".join(
            [*lines, "# time of a stack's device work over that of a tuned one", f"stacks: {{{stacks}}}", ""]
        )

    def _family(self, family: str, part: Sequence[Point]) -> list[str]:
        errors = self.errors_of(family)
        own = self.constants.families[family]
        return [
            f"  {family}:",
            f"    source: {_quoted(self.source)}",
            f"    constants: {_mapping({name: own[name] for name in PRIORS})}",
            f"    time_band: {_band(self._time_band(family, experts=False))}",
            f"    expert_time_band: {_band(self._time_band(family, experts=True))}",
            f"    memory_band: {_band(self.memory)}",
            f"    by_source: {_by_source(part, errors)}",
            f"    validity: {_validity(part)}",
        ]

    def errors_of(self, family: str) -> np.ndarray:
        """|predicted / measured - 1| of the rows of a family, left out."""
        return np.abs(1.0 / self._own_ratio(family) - 1.0)

    def _time_band(self, family: str, *, experts: bool) -> Band:
        """Errors of the family's rows with or without experts; quantiles of all of its kind where they are few."""
        kind = [point.row.is_moe == experts for point in self.held_out.points]
        own = np.array([ok and p.family == family for ok, p in zip(kind, self.held_out.points, strict=True)])
        kin = [p.family.startswith("tpu") == family.startswith("tpu") for p in self.held_out.points]
        near = np.array(kind) & np.array(kin)
        pool = next(
            (mask for mask in (own, near, np.array(kind)) if mask.sum() >= FEWEST_ROWS), np.full(len(own), True)
        )
        ratio = self.held_out.measured_over_predicted
        shown = own if own.any() else pool
        sources = {point.source for point, chosen in zip(self.held_out.points, shown, strict=True) if chosen}
        return _band_of(ratio[pool], np.abs(1.0 / ratio[shown] - 1.0), len(sources))

    def _own_ratio(self, family: str) -> np.ndarray:
        mine = np.array([point.family == family for point in self.held_out.points])
        return np.asarray(self.held_out.measured_over_predicted[mine])

    def report(self) -> str:
        """Errors of each family and source, and what the rows say about each constant."""
        lines = []
        for family, part in by_family(self.held_out.points):
            errors = self.errors_of(family)
            lines.append(f"{family}: {len(part)} rows, {_errors(errors)}")
            for source, mine in _sources(part).items():
                lines.append(f"  without {source}: {len(mine)} rows, {_errors(errors[mine])}")
            for name, rise in self.mind.get(family, {}).items():
                value = self.constants.families[family][name]
                known = "decided by the rows" if rise > 0.003 else "weak" if rise > 0.0005 else "left at its prior"
                lines.append(f"  {name} {_short(value)} (prior {_short(PRIORS[name].value)}): {known}, {rise:+.4f}")
        return "\n".join(lines)


def calibrate(
    rows: Sequence[MeasuredRow],
    catalog: Catalog,
    *,
    source: str,
    as_of: str,
    tell: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Fit all families that the rows speak of, cross-validate, and measure what is identifiable.

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
    held_out = hold_out(points, constants, catalog, tell)
    mind = identifiability(points, constants, catalog)
    known = {f: own for f, own in catalog.training_families.items() if not own.inherited_from}
    return Calibration(
        constants=constants,
        held_out=held_out,
        memory=_memory_band(rows, catalog) or next(iter(known.values())).memory_band,
        others={family: own for family, own in known.items() if family not in constants.families},
        mind=mind,
        source=source,
        as_of=as_of,
    )


def _memory_band(rows: Sequence[MeasuredRow], catalog: Catalog) -> Band | None:
    """Measured over predicted peak memory of the rows that count; None where none was measured."""
    from planner.validate.memory import predict_peak_memory

    found, sources = [], set()
    for row in rows:
        measured = row.measured_memory_bytes if why_left_out(row) is None else None
        predicted = predict_peak_memory(row, catalog) if measured else None
        if measured and predicted:
            found.append(measured / predicted)
            sources.add(row.source_key)
    ratio = np.array(found)
    return _band_of(ratio, np.abs(1.0 / ratio - 1.0), len(sources)) if found else None


def _sources(part: Sequence[Point]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, point in enumerate(part):
        found.setdefault(point.source, []).append(i)
    return dict(sorted(found.items()))


def _errors(errors: np.ndarray) -> str:
    return f"median {np.median(errors):.1%}, mean {np.mean(errors):.1%}, p90 {np.quantile(errors, 0.9):.1%}"


def _band_of(ratio: np.ndarray, errors: np.ndarray, sources: int) -> Band:
    """Quantiles of measured over predicted, and the absolute errors of the rows."""
    p10, p50, p90 = (float(value) for value in np.quantile(ratio, (0.1, 0.5, 0.9)))
    return Band(
        p10=p10,
        p50=p50,
        p90=p90,
        rows=len(errors),
        sources=sources,
        median_error=float(np.median(errors)),
        mean_error=float(np.mean(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
    )


def _band(band: Band) -> str:
    return _mapping({name: getattr(band, name) for name in Band.__slots__})


def _as_known(family: str, known: TrainingFamily) -> list[str]:
    """A family of the catalog as it stands there."""
    sources = ", ".join(f"{_quoted(name)}: {_mapping(errors)}" for name, errors in known.by_source.items())
    ranges = ", ".join(f"{name}: [{_short(low)}, {_short(high)}]" for name, (low, high) in known.validity.items())
    return [
        f"  {family}:",
        f"    source: {_quoted(known.provenance.source)}",
        f"    constants: {_mapping(known.constants)}",
        f"    time_band: {_band(known.time_band)}",
        f"    expert_time_band: {_band(known.expert_time_band)}",
        f"    memory_band: {_band(known.memory_band)}",
        f"    by_source: {{{sources}}}",
        f"    validity: {{{ranges}}}",
    ]


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
    seen = {
        "devices": [float(p.row.n_accel or 1) for p in part],
        "parameters": [(p.row.n_params_b or 0.0) * 1e9 for p in part if p.row.n_params_b],
        "sequence_length": [float(p.row.seq_len or 0) for p in part if p.row.seq_len],
    }
    return "{" + ", ".join(f"{k}: [{_short(min(v))}, {_short(max(v))}]" for k, v in seen.items() if v) + "}"


def _heir(name: str, parent: str, because: str, widen: float) -> str:
    return f"  {name}: {{inherits: {parent}, because: {_quoted(because)}, widen: {widen}}}"


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
    "# The analytic tier: constants of a training step by device family, with the error that they showed on rows that",
    "# were not used to fit them (p10, p50, p90: quantiles of measured over predicted; errors are absolute shares).",
    "# Written by `plan calibrate training`; `make calibrate` makes the shipped one from the shipped rows.",
]
