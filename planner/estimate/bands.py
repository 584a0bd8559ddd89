"""Which error a prediction of training carries, and what it takes to hold with some confidence.

The analytic tier has the band of its device family, the rule tier that of published budgets of whole runs; a speed
that the user measured has none: what is known is not estimated. A step time measured on a run under way takes with it
what a device's errors have in common, and leaves what layouts differ by. Memory is estimated the same way in every
tier, so that it always has the band of the family.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device, RuleError
from planner.equations.bands import band_quantile, lognormal_p90

StepMeasured = Literal["", "another", "same"]  # nowhere; in another layout or machine; as the job is held to
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
