"""A finished calibration: constants, bands and errors of every family, as YAML for the catalog and as a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibrate.crossval import HeldOut, hold_out
from planner.calibrate.inherit import HEIRS
from planner.calibrate.priors import PRIORS
from planner.calibrate.training import Constants, Point, by_family, fit_constants, identifiability, points_of
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.validate.rows import MeasuredRow, shipped_left_out

FEWEST_ROWS = 10  # below it a band comes from all families of the kind (GPU, TPU)
SCHEMA = "catalog/training/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Constants with the errors that they showed on rows left out."""

    constants: Constants
    held_out: HeldOut
    memory_ratio: np.ndarray  # measured over predicted peak memory of every row that has one
    memory_sources: int
    mind: Mapping[str, Mapping[str, float]]  # by family: how much the rows mind each constant
    source: str
    as_of: str

    def to_yaml(self) -> str:
        """The file that the catalog reads, `calibration/training.yaml`."""
        lines = [*_HEAD, f"schema: {SCHEMA}", f"defaults: {{as_of: {self.as_of}, status: inferred}}", "families:"]
        for family, part in by_family(self.held_out.points):
            lines += self._family(family, part)
        own = self.constants.families
        lines += [_heir(name, *heir) for name, heir in HEIRS.items() if heir[0] in own and name not in own]
        stacks = ", ".join(f"{name}: {_short(value)}" for name, value in self.constants.overheads.items())
        return "\n".join(
            [*lines, "# time of a stack's device work over that of a tuned one", f"stacks: {{{stacks}}}", ""]
        )

    def _family(self, family: str, part: Sequence[Point]) -> list[str]:
        ratio = self.ratio_of(family)
        errors = self.errors_of(family)
        own = self.constants.families[family]
        return [
            f"  {family}:",
            f"    source: {_quoted(self.source)}",
            f"    constants: {_mapping({name: own[name] for name in PRIORS})}",
            f"    time_band: {_band(ratio, errors, len({point.source for point in part}))}",
            f"    memory_band: {_band(self.memory_ratio, np.abs(1 / self.memory_ratio - 1), self.memory_sources)}",
            f"    by_source: {_by_source(part, errors)}",
            f"    validity: {_validity(part)}",
        ]

    def errors_of(self, family: str) -> np.ndarray:
        """|predicted / measured - 1| of the rows of a family, left out."""
        return np.abs(1.0 / self._own_ratio(family) - 1.0)

    def ratio_of(self, family: str) -> np.ndarray:
        """Measured over predicted: of the family's rows, or of its kind where they are few."""
        own = self._own_ratio(family)
        if len(own) >= FEWEST_ROWS:
            return own
        kin = [family.startswith("tpu") == p.family.startswith("tpu") for p in self.held_out.points]
        return np.asarray(self.held_out.measured_over_predicted[np.array(kin)])

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
    memory, sources = _memory_ratio(rows, catalog)
    return Calibration(
        constants=constants,
        held_out=held_out,
        memory_ratio=memory,
        memory_sources=sources,
        mind=mind,
        source=source,
        as_of=as_of,
    )


def _memory_ratio(rows: Sequence[MeasuredRow], catalog: Catalog) -> tuple[np.ndarray, int]:
    """Measured over predicted peak memory, and sources that measured it; 1 where no row has a memory."""
    from planner.validate.memory import predict_peak_memory

    left_out = shipped_left_out()
    found, sources = [], set()
    for row in rows:
        counts = row.trust != "C" and ("training.csv", row.id or "") not in left_out
        measured = row.measured_memory_bytes if counts else None
        predicted = predict_peak_memory(row, catalog) if measured else None
        if measured and predicted:
            found.append(measured / predicted)
            sources.add(row.source_key)
    return np.array(found or [1.0]), max(len(sources), 1)


def _sources(part: Sequence[Point]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, point in enumerate(part):
        found.setdefault(point.source, []).append(i)
    return dict(sorted(found.items()))


def _errors(errors: np.ndarray) -> str:
    return f"median {np.median(errors):.1%}, mean {np.mean(errors):.1%}, p90 {np.quantile(errors, 0.9):.1%}"


def _band(ratio: np.ndarray, errors: np.ndarray, sources: int) -> str:
    p10, p50, p90 = np.quantile(ratio, (0.1, 0.5, 0.9))
    return _mapping(
        {
            "p10": p10,
            "p50": p50,
            "p90": p90,
            "rows": len(errors),
            "sources": sources,
            "median_error": float(np.median(errors)),
            "mean_error": float(np.mean(errors)),
            "p90_error": float(np.quantile(errors, 0.9)),
        }
    )


def _by_source(part: Sequence[Point], errors: np.ndarray) -> str:
    items = {
        source: _mapping({"rows": len(mine), "median": np.median(errors[mine]), "mean": np.mean(errors[mine])})
        for source, mine in _sources(part).items()
    }
    return "{" + ", ".join(f"{source}: {text}" for source, text in items.items()) + "}"


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
    if value == round(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{max(4 - math.floor(math.log10(abs(value))), 0)}f}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'


_HEAD = [
    "# The analytic tier: constants of a training step by device family, with the error that they showed on rows that",
    "# were not used to fit them (p10, p50, p90: quantiles of measured over predicted; errors are absolute shares).",
    "# Written by `plan calibrate training`; `make calibrate` makes the shipped one from the shipped rows.",
]
