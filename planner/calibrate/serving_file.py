"""Writes a calibration of serving as the catalog reads it, `calibration/serving.yaml`."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.model import ServingCalibration, ServingSpread, ServingTrait
from planner.catalog.serving_calibration import LEVELS, SCHEMA

_HEAD = (
    "# The analytic tier of serving. Constants that all engines and devices share; factors of engines, families of",
    "# devices, parts, pairs, formats and layouts on them, of pairs for models with experts (mixtures), of cards in",
    "# engines of one card, and of contests (protocols), which no plan takes; what each leaves open, as deviation of a",
    "# logarithm (work: times and rates, first: times to a first token), and that of a name without rows; and bands:",
    "# the deviation of a new campaign, and scores p10, p50, p90 of ln(measured / predicted) of campaigns left out.",
    "# Written by `plan calibrate serving`; `make calibrate` makes the shipped one from the shipped rows.",
)


def serving_yaml(found: ServingCalibration) -> str:
    """The text of the file."""
    lines = [*_HEAD, f"schema: {SCHEMA}", f"defaults: {{as_of: {found.provenance.as_of}, status: inferred}}"]
    lines += [f'source: "{found.provenance.source}"', f"common: {_mapping(found.common)}"]
    for level, key in LEVELS.items():
        traits = found.traits.get(level, {})
        lines += [f"{key}:" if traits else f"{key}: {{}}"]
        lines += [f"  {_name(name)}: {_trait(trait)}" for name, trait in traits.items()]
    lines += ["unknown:", *(f"  {level}: {_mapping(own)}" for level, own in found.unknown.items()), "bands:"]
    for kind, groups in found.bands.items():
        lines.append(f"  {kind}:")
        lines += [f"    {name}: {_mapping(_cells(spread))}" for name, spread in groups.items()]
    return "\n".join([*lines, ""])


def _trait(trait: ServingTrait) -> str:
    rows = {kind: f"[{campaigns}, {number}]" for kind, (number, campaigns) in trait.rows.items()}
    parts = {"factors": _mapping(trait.factors)} if trait.factors else {}
    parts["spread"] = _mapping(trait.spread)
    if rows:
        parts["rows"] = "{" + ", ".join(f"{kind}: {text}" for kind, text in rows.items()) + "}"
    return "{" + ", ".join(f"{name}: {text}" for name, text in parts.items()) + "}"


def _cells(spread: ServingSpread) -> dict[str, float]:
    low, middle, high = spread.scores
    return {
        "spread": spread.spread, "p10": low, "p50": middle, "p90": high, "median_error": spread.median_error,
        "mean_error": spread.mean_error, "p90_error": spread.p90_error,
    }  # fmt: skip


def _mapping(values: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {_short(value)}" for name, value in values.items()) + "}"


def _name(name: str) -> str:
    return name if name.replace("-", "").replace(".", "").isalnum() else f'"{name}"'


def _short(value: float) -> str:
    """Five digits; YAML wants a point in a number with an exponent."""
    text = f"{value:.5g}"
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
