"""Lengths of prompts and answers as a scenario says them: a number, a mean with a percentile, a histogram."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from planner.scenario.fields import FIELD, Many, Share, Tokens, refuse
from planner.scenario.part import Part
from planner.traffic.lengths import HIGHEST_P95_OVER_MEAN, SHARE_TOLERANCE, LengthMoments

_RANGE = f"write a p95 of 1 to {HIGHEST_P95_OVER_MEAN:.2f} times the mean, or a histogram"


class Bucket(Part):
    """One class of a histogram of lengths."""

    tokens: Tokens = Field(description="tokens of this class")
    share: Share = Field(description="share of all requests; all classes add up to 1")


class Lengths(Part):
    """Tokens of a request: a mean, with a percentile, or a histogram."""

    mean: Tokens | None = Field(None, description="mean tokens")
    p95: Tokens | None = Field(
        None, description="95th percentile, 1 to 3.87 times the mean; lengths are log-normal then"
    )
    histogram: Many[Bucket] | None = Field(None, description="classes of lengths with their shares")

    @model_validator(mode="after")
    def _one_way(self) -> Lengths:
        if (self.mean is None) == (self.histogram is None):
            refuse("missing-field", f"{FIELD} wants a mean or a histogram", "write 1500 or {mean: 1500, p95: 4000}")
        if self.histogram is not None:
            self._whole(self.histogram)
        elif self.p95 is not None and not 1 <= self.p95 / (self.mean or 1) <= HIGHEST_P95_OVER_MEAN:
            refuse("out-of-range", f"{FIELD} has the mean {self.mean:g} and the p95 {self.p95:g}: no log-normal "
                   "distribution has both", _RANGE)  # fmt: skip
        return self

    def _whole(self, histogram: tuple[Bucket, ...]) -> None:
        if self.p95 is not None:
            refuse("conflict", f"{FIELD} has a histogram and a p95", "leave p95 out: the histogram says more")
        whole = sum(bucket.share for bucket in histogram)
        if abs(whole - 1) > SHARE_TOLERANCE:
            refuse("out-of-range", f"the shares of {FIELD} add up to {whole:.4g}; they must add up to 1",
                   "give every class its share of all requests")  # fmt: skip

    @property
    def moments(self) -> LengthMoments:
        """Mean and second moment: of one length, of a log-normal by mean and p95, or of the histogram."""
        if self.histogram is not None:
            return LengthMoments.histogram([(bucket.tokens, bucket.share) for bucket in self.histogram])
        mean = self.mean or 0.0
        return LengthMoments.constant(mean) if self.p95 is None else LengthMoments.lognormal(mean, self.p95)


def lengths_branch(value: object) -> object:
    """A bare number is a mean, a list a histogram."""
    if isinstance(value, list):
        return {"histogram": value}
    return value if isinstance(value, Mapping | Part) else {"mean": value}
