"""Reads calibration/training.yaml and serving.yaml: constants that were fitted, and how far off they may be.

`plan calibrate` writes such files. Of training they go by device family, with the error that they showed. A family
without rows of its own inherits from one that has, by generation and vendor; it says why, and its bands are wider by
the power `widen`: 1.5 makes a p90 of 1.10 one of 1.15. Of serving it is told what moves them, and how far a new
campaign may be off.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.catalog.model import (
    Band,
    Provenance,
    ServingCalibration,
    ServingSpread,
    ServingTrait,
    TrainingFamily,
    TrainingPart,
)
from planner.catalog.reading import Fields, Origin, Problems, defaults_of, is_date, open_yaml
from planner.errors import Place

TRAINING_SCHEMA = "catalog/training/v1"
TAGS = ("calibrated", "inherited", "unfitted")
_BAND_KEYS = {"dense": "time_band", "experts": "expert_time_band", "tuning": "tuning_time_band"}
MOST_ENTRIES = 500  # of any one mapping
WIDEST = 10.0  # measured over predicted, or its inverse: a band beyond it is a slip of the pen
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/ -]{0,99}")


def read_training(
    path: Path, problems: Problems
) -> tuple[dict[str, TrainingFamily], dict[str, float], dict[str, float]]:
    """Constants and bands by device family, what software stacks take over a tuned one, and where bands widen.

    Parameters
    ----------
    path
        The file.
    problems
        Where mistakes go, with file, line and column.

    Returns
    -------
    Families by name; time of a stack over that of a tuned one, by name; see `Catalog.training_beyond`.
    """
    fields, origin = head_of(path, TRAINING_SCHEMA, problems)
    families: dict[str, TrainingFamily] = {}
    heirs: list[Fields] = []
    for item in listed(fields, "families", required=True):
        if "inherits" in item.left:
            heirs.append(item)
        elif found := _own(item, origin):
            families[item.what] = found
    owners = dict(families)
    for item in heirs:
        if heir := _heir(item, origin, owners):
            families[item.what] = heir
    stacks = numbers(fields, "stacks", least=0.1, most=WIDEST)
    beyond = numbers(fields, "beyond", least=1.0, most=WIDEST)
    fields.done()
    return families, stacks, beyond


def head_of(path: Path, schema: str, problems: Problems) -> tuple[Fields, Origin]:
    """A calibration file and where its numbers come from.

    Parameters
    ----------
    path
        The file; its name stands for it in messages.
    schema
        What its key schema has to say.
    problems
        Where mistakes go that leave the rest readable.

    Raises
    ------
    InputError
        The file cannot be read, or is not YAML.
    """
    fields = open_yaml(path, schema, problems)
    origin, defaults = defaults_of(fields)
    if defaults:
        defaults.done()
    if origin.as_of and not is_date(origin.as_of):
        problems.add("bad-date", f"as_of is '{origin.as_of}'", fields.node.place, "write 2026-11-21")
    return fields, origin


def check_training(needed: Iterable[str], known: Iterable[str], file: Path, problems: Problems) -> None:
    """Every family that trains needs constants, own or inherited.

    Parameters
    ----------
    needed
        Families of devices that train.
    known
        Families that have constants.
    file
        Where the constants should stand, which messages name.
    problems
        Where mistakes go.
    """
    for family in sorted(set(needed) - set(known)):
        hint = f"add {family}: {{inherits: ..., because: ..., widen: 1.5}} to calibration/training.yaml"
        problems.add("unknown-family", f"no training constants for the family {family}", Place(file=str(file)), hint)


def constants_id(constants: Mapping[str, float]) -> str:
    """Short fingerprint of a set of constants, printed beside what they predict."""
    text = json.dumps({name: float(value) for name, value in constants.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def listed(fields: Fields, key: str, *, required: bool = False) -> list[Fields]:
    """The mappings under a key, each named by its own key.

    Parameters
    ----------
    fields
        The mapping that holds the key.
    key
        Is taken; where it is absent or null, nothing is listed.
    required
        The key has to be there, and not null.
    """
    node = fields.take(key, required=required)
    if node is None:
        return []
    rows = Fields(node, fields.problems, key)
    return [Fields(item, fields.problems, name) for name, item in rows.left.items() if bounded(rows, name)]


def bounded(rows: Fields, name: str) -> bool:
    """Whether a name may stand in a mapping that is not too long; a problem otherwise."""
    if len(rows.left) > MOST_ENTRIES:
        rows.problems.add("too-many", f"{rows.what} has {len(rows.left)} entries", rows.node.place, f"{MOST_ENTRIES}")
        rows.left.clear()
        return False
    if not _NAME.fullmatch(name):
        rows.problems.add("unsafe-name", f"'{name[:60]}' cannot be a name in {rows.what}", rows.node.place)
        return False
    return True


def _own(fields: Fields, above: Origin) -> TrainingFamily | None:
    before, origin = len(fields.problems), fields.origin(above)
    constants = numbers(fields, "constants", required=True, least=0.0, most=1e6)
    work = _work(fields)
    time, experts, memory = (band_of(fields, key) for key in ("time_band", "expert_time_band", "memory_band"))
    tuning = band_of(fields, "tuning_time_band") if "tuning_time_band" in fields.left else None
    small = band_of(fields, "tuning_memory_band") if "tuning_memory_band" in fields.left else None
    parts = {item.what: part for item in listed(fields, "parts") if (part := _part(item))}
    sources = {item.what: all_numbers(item, -1e6, 1e18) for item in listed(fields, "by_source")}
    validity = ranges(fields, "validity")
    fields.text("derivation")
    fields.done()
    if time is None or experts is None or memory is None or len(fields.problems) > before:
        return None
    return TrainingFamily(
        family=fields.what,
        constants=constants,
        work=work,
        constants_id=constants_id(_all_of(constants, work)),
        inherited_from="",
        time_band=time,
        expert_time_band=experts,
        memory_band=memory,
        by_source=sources,
        validity=validity,
        provenance=origin.provenance,
        tuning_time_band=tuning,
        tuning_memory_band=small,
        parts=parts,
    )


def _work(fields: Fields) -> float:
    """Of a device over a tuned vendor's, where the family says it."""
    return (number_of(fields, "work", least=0.1, most=WIDEST) or 1.0) if "work" in fields.left else 1.0


def _all_of(constants: Mapping[str, float], work: float) -> Mapping[str, float]:
    return constants if work == 1.0 else {**constants, "work": work}


def _part(fields: Fields) -> TrainingPart | None:
    """What is known of one device beyond its family."""
    work, experts = (number_of(fields, key, least=0.1, most=WIDEST) for key in ("work", "expert_work"))
    bands = {kind: band_of(fields, key) for kind, key in _BAND_KEYS.items() if key in fields.left}
    fields.done()
    if work is None or experts is None:
        return None
    return TrainingPart(work=work, expert_work=experts, bands={kind: band for kind, band in bands.items() if band})


def _heir(fields: Fields, above: Origin, owners: Mapping[str, TrainingFamily]) -> TrainingFamily | None:
    node, reason = fields.take("inherits", required=True), fields.text("because", required=True)
    widen = number_of(fields, "widen", least=1.0, most=WIDEST)
    moved, work = numbers(fields, "constants", least=0.0, most=1e6), _work(fields)  # by another vendor's software
    fields.done()
    parent = owners.get(str(node.value)) if node else None
    if parent is None:
        if node:
            hint = "name a family that has constants of its own in this file"
            fields.problems.add("unknown-family", f"{fields.what} inherits from '{node.value}'", node.place, hint)
        return None
    if widen is None:
        return None
    source = f"{parent.provenance.source} (taken over from {parent.family}: {reason})"
    return TrainingFamily(
        family=fields.what,
        constants=(constants := {**parent.constants, **moved}),
        work=work,
        constants_id=constants_id(_all_of(constants, work)),
        inherited_from=parent.family,
        time_band=_unfitted(parent.time_band, widen),
        expert_time_band=_unfitted(parent.expert_time_band, widen),
        tuning_time_band=_unfitted(parent.tuning_time_band or parent.time_band, widen),
        memory_band=parent.memory_band,  # of all families
        tuning_memory_band=parent.tuning_memory_band,
        by_source=parent.by_source,
        validity=parent.validity,
        provenance=Provenance(source=source, as_of=above.as_of, status="inferred"),
    )


def _unfitted(band: Band, power: float) -> Band:
    """A wider band of a family that has no rows: nothing was measured on its devices."""
    return replace(widened(band, power), rows=0, sources=0, tag="unfitted")


def widened(band: Band, power: float) -> Band:
    """A band whose quantiles lie further from its median, by a power; its rows and errors stay those measured."""
    return replace(band, p10=band.p50 * (band.p10 / band.p50) ** power, p90=band.p50 * (band.p90 / band.p50) ** power)


def band_of(fields: Fields, key: str) -> Band | None:
    """A band under a key; a problem and None when its quantiles do not rise."""
    node = fields.take(key, required=True)
    if node is None:
        return None
    below = Fields(node, fields.problems, f"{key} of {fields.what}")
    quantiles = [number_of(below, name, least=1 / WIDEST, most=WIDEST) for name in ("p10", "p50", "p90")]
    errors = [number_of(below, name, least=0.0, most=WIDEST) for name in ("median_error", "mean_error", "p90_error")]
    rows, sources = below.whole("rows", required=True, least=0), below.whole("sources", required=True, least=0)
    tag = below.text("tag") or ("calibrated" if rows else "unfitted")
    below.done()
    if tag not in TAGS:
        fields.problems.add("unknown-value", f"the tag of {below.what} is '{tag[:60]}'", node.place, ", ".join(TAGS))
        return None
    p10, p50, p90 = quantiles
    median, mean, p90_error = errors
    if p10 is None or p50 is None or p90 is None or median is None or mean is None or p90_error is None:
        return None
    if not p10 <= p50 <= p90:
        message = f"p10, p50 and p90 of {below.what} do not rise: {p10:g}, {p50:g}, {p90:g}"
        fields.problems.add("out-of-range", message, node.place, "they are quantiles of measured over predicted")
        return None
    return Band(
        p10=p10,
        p50=p50,
        p90=p90,
        rows=rows,
        sources=sources,
        median_error=median,
        mean_error=mean,
        p90_error=p90_error,
        tag=tag,
    )


def number_of(fields: Fields, key: str, *, least: float, most: float) -> float | None:
    """A finite number in bounds; a problem and None otherwise.

    Parameters
    ----------
    fields
        The mapping that holds the key.
    key
        Is taken; that it is absent or null is a problem, too.
    least, most
        Bounds, both of which are allowed.
    """
    node = fields.take(key, required=True)
    if node is None:
        return None
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        fields.problems.add("wrong-type", f"'{key}' of {fields.what} wants a number", node.place)
        return None
    if not least <= value <= most:
        message = f"'{key}' of {fields.what} is {value:g}, outside {least:g} to {most:g}"
        fields.problems.add("out-of-range", message, node.place)
        return None
    return float(value)


def numbers(fields: Fields, key: str, *, least: float, most: float, required: bool = False) -> dict[str, float]:
    """A mapping of names to numbers under a key; those with mistakes are left out.

    Parameters
    ----------
    fields
        The mapping that holds the key.
    key
        Is taken; where it is absent or null, there are no numbers.
    least, most
        Bounds of each number, both of which are allowed.
    required
        The key has to be there, and not null.
    """
    node = fields.take(key, required=required)
    if node is None:
        return {}
    return all_numbers(Fields(node, fields.problems, f"{key} of {fields.what}"), least, most)


def all_numbers(rows: Fields, least: float, most: float) -> dict[str, float]:
    """All entries of a mapping, as numbers in bounds; those with mistakes are left out.

    Parameters
    ----------
    rows
        The mapping; its entries are taken.
    least, most
        Bounds of each number, both of which are allowed.
    """
    names = [name for name in list(rows.left) if bounded(rows, name)]
    found = {name: number_of(rows, name, least=least, most=most) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def ranges(fields: Fields, key: str) -> dict[str, tuple[float, float]]:
    """A mapping of names to [least, most]."""
    node = fields.take(key)
    if node is None:
        return {}
    rows = Fields(node, fields.problems, f"{key} of {fields.what}")
    ranges = {}
    for name in [name for name in list(rows.left) if bounded(rows, name)]:
        item = rows.left[name]
        values = [part.value for part in item.value] if type(item.value) is list else []
        if len(values) == 2 and all(type(value) in (int, float) for value in values) and values[0] <= values[1]:
            ranges[name] = (float(values[0]), float(values[1]))
        else:
            fields.problems.add("wrong-type", f"'{name}' of {rows.what} wants [least, most]", item.place)
    return ranges


SERVING_SCHEMA = "catalog/serving/v2"
LEVELS = {
    "engine": "engines", "family": "families", "part": "parts", "pair": "pairs", "format": "formats",
    "layout": "layouts", "mixture": "mixtures", "protocol": "protocols", "card": "cards",
}  # fmt: skip
LATER = ("mixture", "protocol", "card")  # levels that files of before do not have: they say nothing of them
SENSES = ("work", "first")
KINDS = ("tpot", "ttft", "throughput")  # without which no fleet is sized
FARTHEST = 100.0  # that a factor may be from 1
WIDEST_DEVIATION = 5.0  # deviation of a logarithm


def read_serving(path: Path, problems: Problems) -> ServingCalibration | None:
    """Constants, factors and bands; None where the file has mistakes, which go to `problems`."""
    before = len(problems)
    fields, origin = head_of(path, SERVING_SCHEMA, problems)
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
    found = {name: number_of(fields, name, least=0.0, most=WIDEST_DEVIATION) for name in SENSES}
    fields.done()
    return {name: value or 0.0 for name, value in found.items()}


def _trait(fields: Fields) -> ServingTrait:
    factors = numbers(fields, "factors", least=1 / FARTHEST, most=FARTHEST)
    spread = numbers(fields, "spread", required=True, least=0.0, most=WIDEST_DEVIATION)
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
    own = all_numbers(fields, -WIDEST_DEVIATION, WIDEST_DEVIATION)
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
