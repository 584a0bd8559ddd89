"""Reads calibration/serving.yaml: constants of serving, factors by engine and device family, and their errors.

`plan calibrate serving` writes such a file.
"""

from __future__ import annotations

from pathlib import Path

from planner.catalog.model import Provenance, ServingCalibration
from planner.catalog.reading import Problems
from planner.catalog.training_calibration import all_numbers, band_of, constants_id, head_of, listed, numbers

SCHEMA = "catalog/serving/v1"
METRICS = ("tpot", "ttft", "throughput")
FARTHEST = 100.0  # that a factor may be from 1


def read_serving(path: Path, problems: Problems) -> ServingCalibration | None:
    """Constants, factors and bands; None where the file has mistakes, which go to `problems`."""
    before = len(problems)
    fields, origin = head_of(path, SCHEMA, problems)
    source = fields.text("source", required=True)
    common = numbers(fields, "common", required=True, least=0.0, most=1e6)
    engines = {item.what: all_numbers(item, 1 / FARTHEST, FARTHEST) for item in listed(fields, "engines")}
    families = {item.what: all_numbers(item, 1 / FARTHEST, FARTHEST) for item in listed(fields, "families")}
    bands = {}
    for metric in listed(fields, "bands", required=True):
        found = {name: band_of(metric, name) for name in list(metric.left)}
        bands[metric.what] = {name: band for name, band in found.items() if band is not None}
    for name in METRICS:
        if "all" not in bands.get(name, {}) and len(problems) == before:
            problems.add("missing-field", f"bands has no '{name}' with 'all'", fields.node.place)
    by_source = {item.what: all_numbers(item, -1e6, 1e18) for item in listed(fields, "by_source")}
    fields.done()
    if len(problems) > before:
        return None
    return ServingCalibration(
        common=common,
        engines=engines,
        families=families,
        bands=bands,
        by_source=by_source,
        constants_id=constants_id(_flat(common, engines, families)),
        provenance=Provenance(source=source, as_of=origin.as_of, status=origin.status),
    )


def _flat(
    common: dict[str, float], engines: dict[str, dict[str, float]], families: dict[str, dict[str, float]]
) -> dict[str, float]:
    """Every number under one name, for the fingerprint."""
    found = dict(common)
    for kind, groups in (("engine", engines), ("family", families)):
        found |= {f"{kind} {group} {name}": value for group, own in groups.items() for name, value in own.items()}
    return found
