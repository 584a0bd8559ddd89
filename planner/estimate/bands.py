"""Which error a prediction of training carries, and what it takes to hold with some confidence.

The analytic tier has the band of its device family, the rule tier that of published budgets of whole runs; a speed
that the user measured has none: what is known is not estimated. A step time measured on a run under way takes with it
what a device's errors have in common, and leaves what layouts differ by. Memory is estimated the same way in every
tier, so that it always has the band of the family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device, RuleError
from planner.equations.bands import band_quantile, lognormal_p90, widened_quantile
from planner.equations.registry import FloatOrArray

StepMeasured = Literal["", "another", "same"]  # nowhere; in another layout or machine; as the job is held to
NEAR = 0.10  # relative: what lies so little outside the measurements is as good as within
MEDIAN = 0.5  # the confidence at which a prediction holds as often as not


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBand:
    """Measured over predicted, of time and of memory, where something is known of it."""

    tier: str  # rule | analytic | measured
    family: str
    constants_id: str  # "" where no constants were used
    inherited_from: str
    time: Band | None
    memory: Band | None
    tag: str = ""  # measured | calibrated | inherited | unfitted; "" where nothing is known of times

    def time_margin(self, confidence: float) -> float:
        """What a time is multiplied with to hold with a confidence; at least 1."""
        return margin(self.time, confidence)

    def time_margins(self, confidence: float, power: FloatOrArray) -> NDArray[np.float64]:
        """The same where the band is wider by a power, element by element; see `beyond_power`."""
        every, margins = np.asarray(power), np.full(np.shape(power), self.time_margin(confidence))
        left = every != 1.0
        if self.time is None or not left.any():
            return margins
        quantile = _quantile(self.time.p50, self.time.p90, confidence)
        while left.any():  # a few powers, of thousands of layouts: to look for each is sooner than to sort them
            one = every.flat[int(left.argmax())]
            same = left & (every == one)
            margins[same] = max(1.0, float(widened_quantile(self.time.p50, quantile, one)))
            left &= ~same
        return margins

    def widened(self, power: float) -> ErrorBand:
        """With the band of times wider by a power; rows and errors stay those measured."""
        if self.time is None or power == 1.0:
            return self
        return replace(self, time=wider(self.time, power))

    def memory_margin(self, confidence: float) -> float:
        """What needed memory is multiplied with to hold with a confidence; at least 1."""
        return margin(self.memory, confidence)


def margin(band: Band | None, confidence: float) -> float:
    """The quantile of a band at a confidence, never below 1: a plan whose own figures miss a limit is none."""
    if band is None:
        return 1.0
    return max(1.0, _quantile(band.p50, band.p90, confidence))


@lru_cache(maxsize=1024)  # some dozens of bands, asked of every machine
def _quantile(p50: float, p90: float, confidence: float) -> float:
    return float(band_quantile(p50, p90, confidence))


def inverse(band: Band) -> Band:
    """The band of a time whose rate has one."""
    return replace(band, p10=1.0 / band.p90, p50=1.0 / band.p50, p90=1.0 / band.p10)


def kind_of_job(*, experts: bool, adapters: bool) -> str:
    """Which rows a job is like: dense | experts | tuning (adapters on frozen weights)."""
    return "tuning" if adapters else "experts" if experts else "dense"


def error_band(
    catalog: Catalog, device: Device, tier: str, *, kind: str = "dense", measured: StepMeasured = ""
) -> ErrorBand:
    """The band of a prediction for a device by a tier.

    Parameters
    ----------
    catalog
        Holds the constants of the families and the error of the rule.
    device
        Bands are of this very device where it has rows, else wider ones of its family.
    tier
        rule, analytic or measured.
    kind
        Of the job, see `kind_of_job`.
    measured
        The prediction was scaled by a step time measured on such devices: nothing is left open in the same layout.
    """
    family = device.family
    known = catalog.training_families.get(family)
    time = None
    if tier == "analytic" and known is not None:
        time = catalog.time_band_corrected(device, kind) if measured else known.time_band_of(device.id, kind)
    elif tier == "rule":
        time = rule_band(catalog.rule_error, family)
    return ErrorBand(
        tier=tier,
        family=family,
        constants_id=known.constants_id if known and tier == "analytic" else "",
        inherited_from=known.inherited_from if known else "",
        time=None if measured == "same" else time,
        memory=known.memory_band_of(kind) if known else None,
        tag="measured" if measured or tier == "measured" else time.tag if time else "",
    )


def beyond(
    catalog: Catalog,
    family: str,
    sizes: Mapping[str, FloatOrArray],
    *,
    strange_network: bool | NDArray[np.bool_] = False,
) -> dict[str, NDArray[np.bool_]]:
    """In what jobs lie outside the rows behind the constants of a family, such as "devices above"; nothing if in none.

    Parameters
    ----------
    catalog
        Holds what the rows of each family cover.
    family
        Of the device.
    sizes
        Of the jobs, by the names of `TrainingFamily.validity`: numbers, or (n,).
    strange_network
        Whether machines talk over a network of a kind that no row used, number or (n,).
    """
    known, found = catalog.training_families.get(family), dict[str, NDArray[np.bool_]]()
    if known is None:
        return found
    for name, size in sizes.items():
        low, high = known.validity.get(name, (0.0, np.inf))
        below, above = np.asarray(size < low * (1 - NEAR)), np.asarray(size > high * (1 + NEAR))
        found |= {f"{name} {where}": which for where, which in (("below", below), ("above", above)) if which.any()}
    if np.any(strange_network):
        found["network"] = np.asarray(strange_network, dtype=bool)
    return found


def beyond_power(catalog: Catalog, outside: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.float64]:
    """By which power bands are wider outside of what rows cover: as rows kept from the fit were off, see `beyond`.

    Of several sizes the one that errs most counts, since rows that lie beyond in one do so in others. A network that
    no row used widens it as more devices than any row had do.

    Parameters
    ----------
    catalog
        Its `training_beyond` holds the powers.
    outside
        What lies outside, by name.
    """
    power = np.ones(())
    for name, which in outside.items():
        own = catalog.training_beyond.get("devices above" if name == "network" else name, 1.0)
        power = np.maximum(power, np.where(which, own, 1.0))
    return power


def wider(band: Band, power: float) -> Band:
    """A band of times that is wider by a power (EQ-BAND-3); its rows and errors stay those measured."""
    low, high = (float(widened_quantile(band.p50, end, power)) for end in (band.p10, band.p90))
    return replace(band, p10=low, p90=high)


def rule_band(error: RuleError | None, family: str) -> Band | None:
    """The band of the rule of thumb: log-normal, from its mean error on budgets of whole runs (EQ-BAND-2)."""
    if error is None:
        return None
    own = family == error.family
    elsewhere = error.max if error.elsewhere_mean is None else error.elsewhere_mean
    mean = error.mean if own else elsewhere
    p90 = float(lognormal_p90(mean))
    return Band(
        p10=1.0 / p90,
        p50=1.0,
        p90=p90,
        rows=error.runs if own else 0,
        sources=error.runs if own else 0,
        median_error=error.median if own else mean,
        mean_error=mean,
        p90_error=p90 - 1.0,
        tag="calibrated" if own else "unfitted",
    )
