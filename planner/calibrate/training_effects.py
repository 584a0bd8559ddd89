"""Fits the constants of the step model as a mixed model in the logarithm of time.

A constant is that of all devices, moved by its family and by the machines and builds of each source; a part (B200,
GB200 ...) and a stack each work by a factor of their own on the device's work; a source on a device at a precision has
an offset, and each model in it another. What moves how far is said by priors: expectations are typical of their
generation (large matrix products reach 70 to 80 % of a dense peak, streaming kernels three quarters of the memory
bandwidth, collectives about 80 % of a link), and spreads are of the logarithm. How far sources move constants and the
sizes of the offsets are estimated (`mixed_model.py`). What is predicted is a new source's.

The step model is linearised at the constants found so far (Gauss and Newton); all counts of steps are fixed, so that
the result is a smooth function of the rows and the same on every processor.

Families without rows of their own take over the constants of a near generation, with a wider band. How much further
they may be off than families differ anyhow was fixed by what they share: vendor, years, instructions. That is a guess.
The software of another vendor works by a factor of its own, and keeps its own share of the rate of short formats: in
part as those of all such vendors do. How far is estimated from those that have rows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.calibrate import mixed_model
from planner.calibrate.mixed_model import (
    BAND_NORMAL,
    TAIL_WIDTH,
    Column,
    Effects,
    Index,
    Name,
    Problem,
    Rows,
    Values,
    Variances,
    grouping,
)
from planner.carriers import dataclass
from planner.estimate.constants import NAMES, StepConstants
from planner.validate.training import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Expectation of one constant, spread of its logarithm, and the largest value that makes sense."""

    value: float
    spread: float
    most: float = float("inf")
    meaning: str = ""


PRIORS: Mapping[str, Prior] = {
    "gemm": Prior(value=0.76, spread=0.12, most=0.95, meaning="share of the 16-bit peak, large products"),
    "wave": Prior(value=0.60, spread=0.40, meaning="waves of tiles at which half of the rate is lost"),
    "memory": Prior(value=0.75, spread=0.15, most=0.95, meaning="share of the memory bandwidth"),
    "attention": Prior(value=1.0, spread=0.12, meaning="rate of attention kernels over their published one"),
    "network": Prior(value=0.80, spread=0.15, most=1.0, meaning="share of the network"),
    "scale": Prior(value=0.12, spread=0.40, meaning="slowdown of the network per doubling of nodes"),
    "link": Prior(value=0.78, spread=0.08, most=0.95, meaning="share of the fast links (nccl-tests on A100)"),
    "contention": Prior(value=0.35, spread=0.40, most=1.0, meaning="share of overlapped time that is lost"),
    "host_s": Prior(value=0.0007, spread=0.15, meaning="launching a layer's pass  [s]"),
    "low_precision": Prior(value=1.0, spread=0.06, meaning="fp8 and fp4 products over 16-bit ones, shares of peaks"),
    "experts": Prior(value=0.65, spread=0.20, meaning="grouped products over plain ones"),
    "expert_host_s": Prior(value=0.0025, spread=0.40, meaning="what routing adds to launching a pass  [s]"),
}
SUSTAINED_OF_BEST = 0.90  # what a training step sustains of the best single product that was measured

# The mixed model. A constant differs between families about as much as all of them differ from what is
# expected; parts of a family by power and clock beyond what is measured of them; a tuned stack from another by some
# kernels. What launching costs is held tight: it decides small models alone, and a slow source of large ones would
# otherwise explain itself by it (these two spreads, 0.15, were set with the folds of the shipped rows in view).
SHARED = 0.5  # share of a constant's variance that all families have in common
EFFECTS: Mapping[str, float] = {
    "part": 0.06, "stack": 0.10, "experts": 0.15, "expert_part": 0.10, "host": 0.15, "dispatch": 0.5, "hybrid": 0.5,
}  # fmt: skip
# A cluster and the builds that a source ran move every constant of dense models too: without that, a hundred rows of
# one slow cluster say what all links and hosts do. How far is estimated, guessed to be as far as families go.
OF_A_SITE = ("gemm", "wave", "memory", "attention", "network", "scale", "link", "contention", "host_s")
# What the software of another vendor than NVIDIA or Google takes over a tuned one's work, and what it keeps of the rate
# of products in 8 bits and fewer: half of the variance is common to these vendors. How far is estimated, guessed to be
# as far as the slowest trainer on a tuned one (both guesses, and which two they are, with the rows of both in view).
VENDOR: Mapping[str, float] = {"work": 0.30, "low_precision": 0.20}
# guesses of what is estimated: offsets of a source on a device at a precision, of a model in it, and scatter
SOURCE_OFFSET: Mapping[str, float] = {"dense": 0.08, "experts": 0.15, "hybrid": 0.20, "tuning": 0.15}
MODEL_OFFSET: Mapping[str, float] = {"dense": 0.04, "experts": 0.10, "hybrid": 0.15, "tuning": 0.05}
SCATTER: Mapping[str, float] = {"dense": 0.04, "experts": 0.06, "hybrid": 0.06, "tuning": 0.05}


class Heir(NamedTuple):
    """What a family without rows takes over."""

    parent: str  # family
    because: str
    further: float  # deviation of its logarithm besides that between families, as guessed
    vendor: str = ""  # another than the parent's: the same on paper, not in the years that its software was tuned


HEIRS: dict[str, Heir] = {
    "kepler": Heir("ampere", "older card of the same vendor; no matrix units", 0.20),
    "pascal": Heir("ampere", "older card of the same vendor; no matrix units", 0.20),
    "volta": Heir("ampere", "the generation before", 0.05),
    "turing": Heir("ampere", "the generation before, less bandwidth", 0.10),
    "ada": Heir("hopper", "same generation, less memory bandwidth per FLOP", 0.05),
    "rubin": Heir("blackwell", "successor", 0.10),
    "cdna1": Heir("ampere", "same years, another vendor", 0.20, vendor="amd"),
    "cdna2": Heir("ampere", "same years, another vendor", 0.15, vendor="amd"),
    "cdna3": Heir("hopper", "same generation, another vendor", 0.10, vendor="amd"),
    "cdna4": Heir("blackwell", "same generation, another vendor", 0.10, vendor="amd"),
    "cdna5": Heir("blackwell", "successor, another vendor", 0.15, vendor="amd"),
    "gaudi2": Heir("ampere", "same years, another vendor", 0.15, vendor="intel"),
    "gaudi3": Heir("hopper", "same generation, another vendor", 0.15, vendor="intel"),
    "xe2": Heir("hopper", "same generation, another vendor", 0.20, vendor="intel"),
    "neuron-v2": Heir("hopper", "same years, another vendor", 0.20, vendor="aws"),
    "neuron-v3": Heir("hopper", "same generation, another vendor", 0.15, vendor="aws"),
    "neuron-v4": Heir("blackwell", "same generation, another vendor", 0.15, vendor="aws"),
    "tpu-v2": Heir("tpu-v4", "the oldest TPU with rows", 0.10),
    "tpu-v3": Heir("tpu-v4", "the oldest TPU with rows", 0.05),
    "tpu-v7x": Heir("tpu-v6e", "the newest TPU with rows", 0.10),
}


__all__ = ["BAND_NORMAL", "Effects"]

KINDS = ("dense", "experts", "hybrid", "tuning")
STEPS = 7  # linearisations
INNER = 4  # of the variances at each
_WORK = len(NAMES)  # after the constants: overhead of all of the work


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Of each row: what its effects are named after."""

    family: Sequence[str]
    part: Sequence[str]
    stack: Sequence[str]
    release: Sequence[str]
    size: Sequence[str]  # parameters, and those of a token
    kind: Sequence[str]
    source: Sequence[Hashable]  # source, device, precision, kind
    model: Sequence[Hashable]  # the same, and the model
    site: Sequence[str]  # machines and builds of a source


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows as arrays, with what was measured."""

    batch: Batch
    measured_s: Values
    weight: Values
    labels: Labels
    start: Mapping[str, Values]  # expectation of each constant of each row, before any row is seen
    ratio: Values  # large products of the part over its family's best, as measured or by power

    def __len__(self) -> int:
        """Rows."""
        return len(self.measured_s)


def constants_of(start: Mapping[str, Values], moved: Mapping[str, Values]) -> StepConstants:
    """Constants at their expectation moved by a logarithm each; those with a largest value near it ever less."""
    values = {}
    for name in NAMES:
        most, first = PRIORS[name].most, np.asarray(start[name], dtype=np.float64)
        if np.isinf(most):
            values[name] = first * np.exp(moved[name])
        else:
            room = first / (most - first) * np.exp(moved[name] / (1.0 - first / most))
            values[name] = most * room / (1.0 + room)
    return StepConstants(**values)


def log_time(sample: Sample, moved: Mapping[str, Values], overhead: Values) -> Values:
    """Logarithm of the predicted step times.

    Parameters
    ----------
    sample
        Rows; what was measured of them is not looked at.
    moved
        By constant: the logarithm that each row's expectation of it is moved by, (rows,).
    overhead
        Logarithm of the device's work over a tuned stack's, (rows,).
    """
    constants = constants_of(sample.start, moved)
    total = sample.batch.predict(replace(constants, gemm=constants.gemm * sample.ratio), np.exp(overhead)).total
    return np.asarray(np.log(np.asarray(total, dtype=np.float64)))


def columns_of(labels: Labels) -> list[Column]:
    """Every coefficient, with the constant that it moves (the last: the overhead) and its rows."""
    rows = np.arange(len(labels.family))
    families, parts, stacks = (np.array(part) for part in (labels.family, labels.part, labels.stack))
    releases, kinds = np.array(labels.release), np.array(labels.kind)
    experts, hybrid = np.isin(kinds, ("experts", "hybrid")), kinds == "hybrid"
    found: list[tuple[Name, int, Index]] = []
    for i, name in enumerate(NAMES):
        found.append((("all", name), i, rows))
        found += [((family, name), i, rows[families == family]) for family in sorted(set(families.tolist()))]
    sites = np.array(labels.site)
    for name in OF_A_SITE:
        i = NAMES.index(name)
        found += [((f"site {name}", site), i, rows[sites == site]) for site in sorted(set(sites.tolist()))]
    work = _WORK
    found += [(("part", part), work, rows[parts == part]) for part in sorted(set(parts.tolist()))]
    found += [(("stack", stack), work, rows[stacks == stack]) for stack in sorted(set(stacks.tolist()))]
    vendors = np.array([vendor_of(family) for family in labels.family])
    for name in VENDOR if (vendors != "").any() else ():
        which = work if name == "work" else NAMES.index(name)
        found.append(((f"vendor {name}", "others"), which, rows[vendors != ""]))
        found += [((f"vendor {name}", one), which, rows[vendors == one]) for one in sorted({*vendors.tolist()} - {""})]
    host, expert_host = NAMES.index("host_s"), NAMES.index("expert_host_s")
    found += [(("host", stack), host, rows[stacks == stack]) for stack in sorted(set(stacks.tolist()))]
    for group, names, which in (
        ("experts", stacks, work),
        ("expert_part", parts, work),
        ("dispatch", releases, expert_host),
    ):
        for name in sorted(set(names[experts].tolist())):
            found.append(((group, name), which, rows[(names == name) & experts]))
    if hybrid.any():
        found.append((("hybrid", "all"), work, rows[hybrid]))
    sizes = np.array(labels.size)
    found += [(("hybrid", size), work, rows[hybrid & (sizes == size)]) for size in sorted(set(sizes[hybrid].tolist()))]
    return [Column(name=name, moves=((which, 1.0),), rows=own) for name, which, own in found]


def deviation(name: Name) -> float:
    """How far a coefficient is expected to go: a standard deviation of a logarithm."""
    if name[0].startswith("site "):
        return float(PRIORS[name[0].removeprefix("site ")].spread * np.sqrt(1.0 - SHARED))
    if name[0].startswith("vendor "):
        return float(VENDOR[name[0].removeprefix("vendor ")] * np.sqrt(SHARED if name[1] == "others" else 1.0 - SHARED))
    if name[0] in EFFECTS:
        return EFFECTS[name[0]]
    share = SHARED if name[0] == "all" else 1.0 - SHARED
    return float(PRIORS[name[1]].spread * np.sqrt(share))


def vendor_of(family: str) -> str:
    """Whose software a family runs, where it is neither NVIDIA's nor Google's; else ""."""
    return HEIRS[family].vendor if family in HEIRS else ""


def moved_of(effects: Effects, family: str) -> dict[str, float]:
    """By which logarithm constants and the work of a family are moved: by what all have, the family, and its vendor.

    Parameters
    ----------
    effects
        Of a fit; where it has no rows of the family, that which the family inherits from stands for it.
    family
        Of the catalog.
    """
    known = (family, NAMES[0]) in effects.coefficients or family not in HEIRS
    own, vendor = family if known else HEIRS[family].parent, vendor_of(family)
    found = {name: effects.value("all", name) + effects.value(own, name) for name in NAMES} | {"work": 0.0}
    for name in VENDOR if vendor else ():
        found[name] += effects.value(f"vendor {name}", "others") + effects.value(f"vendor {name}", vendor)
    return found


def fit_effects(sample: Sample, near: Effects | None = None, steps: int | None = None) -> Effects:
    """Coefficients, their covariance and the variances of all offsets.

    Parameters
    ----------
    sample
        Rows, with what was measured.
    near
        A fit to begin at, of nearly the same rows: fewer `steps` come to the same end.
    steps
        Linearisations; None = `STEPS`.
    """
    return mixed_model.fit(
        _problem(sample),
        np.log(sample.measured_s),
        _rows(sample),
        _guess(),
        steps=STEPS if steps is None else steps,
        inner=INNER,
        near=near,
        sources=sample.labels.source,
        estimated=tuple([f"site {name}" for name in OF_A_SITE] + [f"vendor {name}" for name in VENDOR]),
    )


def _problem(sample: Sample) -> Problem:
    return Problem(
        columns=columns_of(sample.labels),
        curve=lambda moved: log_time(sample, dict(zip(NAMES, moved[:_WORK], strict=True)), moved[_WORK]),
        moves=_WORK + 1,
        rows=len(sample),
        deviation=deviation,
    )


def _guess() -> Variances:
    return Variances(
        source=np.array([SOURCE_OFFSET[kind] ** 2 for kind in KINDS]),
        model=np.array([MODEL_OFFSET[kind] ** 2 for kind in KINDS]),
        scatter=np.array([SCATTER[kind] ** 2 for kind in KINDS]),
    )


def _rows(sample: Sample) -> Rows:
    labels = sample.labels
    kind = np.array([KINDS.index(name) for name in labels.kind], dtype=np.intp)
    return Rows(
        weight=sample.weight,
        kind=kind,
        source=grouping(labels.source, kind),
        model=grouping(labels.model, kind),
    )


def predicted(sample: Sample, effects: Effects, parents: Mapping[str, Heir]) -> tuple[Values, Values]:
    """Logarithm of predicted step times, and the standard deviation of what a new source would measure.

    Parameters
    ----------
    sample
        Rows; what was measured of them is not looked at.
    effects
        Of a fit. What it does not know (a family, a part, a stack) is at its expectation, as uncertain as its prior.
    parents
        The family from which a family without rows takes its constants, and how much further it may be off.
    """

    def alias(name: Name, order: Collection[Name]) -> Name:
        """The coefficient that stands for one: itself, or its parent family's where the fit has none."""
        parent = (parents[name[0]].parent if name[0] in parents else name[0], *name[1:])
        return parent if name not in order and parent in order else name

    base, variance = mixed_model.predict(_problem(sample), effects, alias)
    further = {name: own.further for name, own in parents.items() if (name, NAMES[0]) not in effects.coefficients}
    variance = variance + np.array([further.get(family, 0.0) ** 2 for family in sample.labels.family])
    kinds = np.array([KINDS.index(kind) for kind in sample.labels.kind], dtype=np.intp)
    offsets = effects.variances
    variance = variance + offsets.source[kinds] + offsets.model[kinds] + TAIL_WIDTH * offsets.scatter[kinds]
    return base, np.asarray(np.sqrt(variance))
