"""Reads calibration/serving.yaml: constants of serving, what moves them, and how far a new campaign may be off.

`plan calibrate serving` writes such a file.
"""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Provenance, ServingCalibration, ServingSpread, ServingTrait
from planner.catalog.reading import Fields, Problems
from planner.catalog.training_calibration import all_numbers, constants_id, head_of, listed, number_of, numbers, ranges

SCHEMA = "catalog/serving/v2"
LEVELS = {
    "engine": "engines", "family": "families", "part": "parts", "pair": "pairs", "format": "formats",
    "layout": "layouts", "mixture": "mixtures", "protocol": "protocols", "card": "cards",
}  # fmt: skip
LATER = ("mixture", "protocol", "card")  # levels that files of before do not have: they say nothing of them
SENSES = ("work", "first")
KINDS = ("tpot", "ttft", "throughput")  # without which no fleet is sized
FARTHEST = 100.0  # that a factor may be from 1
WIDEST = 5.0  # deviation of a logarithm


def read_serving(path: Path, problems: Problems) -> ServingCalibration | None:
    """Constants, factors and bands; None where the file has mistakes, which go to `problems`."""
    before = len(problems)
    fields, origin = head_of(path, SCHEMA, problems)
    if len(problems) > before:  # of another form: no line of it can be judged
        return None
    source = fields.text("source", required=True)
    common = numbers(fields, "common", required=True, least=0.0, most=1e6)
    unknown = {item.what: _senses(item) for item in listed(fields, "unknown", required=True)}
    traits = {level: {item.what: _trait(item) for item in listed(fields, key)} for level, key in LEVELS.items()}
    traits = {level: own for level, own in traits.items() if own or level not in LATER}
    bands = {item.what: _spreads(item) for item in listed(fields, "bands", required=True)}
    for name in KINDS:
        if set(bands.get(name, {})) != {"dense", "experts"} and len(problems) == before:
            message = f"bands has no '{name}' with 'dense' and 'experts'"
            problems.add("missing-field", message, fields.node.place)
    for level in LEVELS:
        if level not in unknown and level not in LATER and len(problems) == before:
            problems.add("missing-field", f"unknown has no '{level}'", fields.node.place)
    fields.done()
    if len(problems) > before:
        return None
    return ServingCalibration(
        common=common,
        traits=traits,
        unknown=unknown,
        bands={name: {of: band for of, band in own.items() if band} for name, own in bands.items()},
        constants_id=identity(common, traits),
        provenance=Provenance(source=source, as_of=origin.as_of, status=origin.status),
    )


def _senses(fields: Fields) -> dict[str, float]:
    found = {name: number_of(fields, name, least=0.0, most=WIDEST) for name in SENSES}
    fields.done()
    return {name: value or 0.0 for name, value in found.items()}


def _trait(fields: Fields) -> ServingTrait:
    factors = numbers(fields, "factors", least=1 / FARTHEST, most=FARTHEST)
    spread = numbers(fields, "spread", required=True, least=0.0, most=WIDEST)
    rows = {name: (int(most), int(least)) for name, (least, most) in ranges(fields, "rows").items()}
    fields.done()
    for name in SENSES:
        if name not in spread:
            fields.problems.add("missing-field", f"spread of {fields.what} has no '{name}'", fields.node.place)
    return ServingTrait(factors=factors, spread=spread, rows=rows)


def _spreads(fields: Fields) -> dict[str, ServingSpread | None]:
    return {item.what: _spread(item) for name in list(fields.left) for item in [_below(fields, name)]}


def _below(fields: Fields, name: str) -> Fields:
    node = fields.take(name, required=True)
    assert node is not None
    return Fields(node, fields.problems, name)


def _spread(fields: Fields) -> ServingSpread | None:
    own = all_numbers(fields, -WIDEST, WIDEST)
    names = ("spread", "p10", "p50", "p90", "median_error", "mean_error", "p90_error")
    for name in names:
        if name not in own:
            fields.problems.add("missing-field", f"{fields.what} has no '{name}'", fields.node.place)
            return None
    if not own["p10"] <= own["p50"] <= own["p90"] or own["spread"] <= 0:
        message = f"p10, p50 and p90 of {fields.what} do not rise, or its spread is none"
        fields.problems.add("out-of-range", message, fields.node.place, "they are scores: about -1.3, 0 and 1.3")
        return None
    return ServingSpread(
        spread=own["spread"],
        scores=(own["p10"], own["p50"], own["p90"]),
        median_error=own["median_error"],
        mean_error=own["mean_error"],
        p90_error=own["p90_error"],
    )


def identity(common: dict[str, float], traits: dict[str, dict[str, ServingTrait]]) -> str:
    """Fingerprint of every number that moves a prediction."""
    found = dict(common)
    for level, names in traits.items():
        for name, trait in names.items():
            found |= {f"{level} {name} {move}": factor for move, factor in trait.factors.items()}
    return constants_id(found)
