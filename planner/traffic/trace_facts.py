"""What `plan traffic` says of a trace, as a document of plain data."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

import numpy as np
from typing_extensions import TypedDict

from planner.traffic.model import HIGHEST_P95_OVER_MEAN, Array, Traffic
from planner.traffic.request_trace import DAY_HOURS, Trace

_PERCENTILES = (50, 90, 95, 99)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EQUATIONS = ("EQ-TRF-3", "EQ-TRF-4")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


class Lengths(TypedDict):
    """Tokens of prompts or answers."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    squared_variation: float


class BucketSeen(TypedDict):
    """Requests of one bucket of lengths."""

    bucket: str
    share: float
    input_tokens: float
    output_tokens: float
    requests_per_s: float


class DaySeen(TypedDict):
    """Weights of the hours of a day."""

    day: str
    weights: list[float]


class TrafficDocument(TypedDict):
    """What a trace shows, and the scenario lines that say the same."""

    file: str
    sha256: str
    requests: int
    seconds: float
    calendar: bool
    requests_per_s: float
    requests_per_minute: float
    peak_factor: float
    peak_of: str
    arrival_variability: float
    input_tokens: Lengths
    output_tokens: Lengths
    buckets: list[BucketSeen]
    profile: list[DaySeen]
    equations: list[str]
    scenario_trace: str
    scenario_numbers: list[str]


def traffic_document(trace: Trace) -> TrafficDocument:
    """Rate, burstiness, lengths, buckets, profile and peak of a trace, and the scenario lines that say the same."""
    traffic = trace.traffic()
    prompts, answers = _lengths(trace.input_tokens), _lengths(trace.output_tokens)
    return {
        "file": trace.file,
        "sha256": trace.sha256,
        "requests": int(trace.arrival_s.size),
        "seconds": trace.seconds,
        "calendar": trace.calendar,
        "requests_per_s": traffic.requests_per_s,
        "requests_per_minute": traffic.requests_per_s * 60,
        "peak_factor": traffic.peak_factor,
        "peak_of": "busiest hour of the profile" if traffic.profile else "busiest of all but 1 % of the minutes",
        "arrival_variability": traffic.arrival_variability,
        "input_tokens": prompts,
        "output_tokens": answers,
        "buckets": _buckets(traffic),
        "profile": _profile(traffic, trace.calendar),
        "equations": list(_EQUATIONS),
        "scenario_trace": f"trace: {_path(trace.file)}",
        "scenario_numbers": [
            f"qpm: {_short(traffic.requests_per_s * 60)}",
            f"peak_factor: {_short(traffic.peak_factor)}",
            f"arrival_variability: {_short(traffic.arrival_variability)}",
            f"input_tokens: {_distribution(prompts)}",
            f"output_tokens: {_distribution(answers)}",
        ],
    }


def _lengths(tokens: Array) -> Lengths:
    p50, p90, p95, p99 = map(float, np.percentile(tokens, _PERCENTILES))
    return {
        "mean": float(tokens.mean()),
        "p50": p50,
        "p90": p90,
        "p95": p95,
        "p99": p99,
        "max": float(tokens.max()),
        "squared_variation": float(tokens.var() / tokens.mean() ** 2),
    }


def _buckets(traffic: Traffic) -> list[BucketSeen]:
    return [
        {
            "bucket": name,
            "share": float(traffic.share[i]),
            "input_tokens": float(traffic.input_tokens[i]),
            "output_tokens": float(traffic.output_tokens[i]),
            "requests_per_s": float(traffic.bucket_requests_per_s[i]),
        }
        for i, name in enumerate(traffic.buckets)
    ]


def _profile(traffic: Traffic, calendar: bool) -> list[DaySeen]:
    """One row a day: its name and the weights of its hours."""
    days = [list(traffic.profile[i : i + DAY_HOURS]) for i in range(0, len(traffic.profile), DAY_HOURS)]
    names = [f"day {number + 1}" for number in range(len(days))]
    if calendar and len(days) == len(_DAYS):
        names = list(_DAYS)
    return [{"day": name if len(days) > 1 else "every day", "weights": day} for name, day in zip(names, days)]


def _distribution(facts: Lengths) -> str:
    mean, p95 = round(facts["mean"]), round(facts["p95"])
    if mean and 1 <= p95 / mean <= HIGHEST_P95_OVER_MEAN:
        return f"{{mean: {mean}, p95: {p95}}}"
    return _short(facts["mean"])


def _short(value: float) -> str:
    """Four digits, without an exponent."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def _path(file: str) -> str:
    name = PurePath(file).name
    return name if _PLAIN.fullmatch(name) else json.dumps(name)
