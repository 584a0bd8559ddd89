"""Documents that come from outside, held against their types before anything else looks at them.

A plan file may come from anywhere: what it would have read lies in the folder where it is read.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner import files
from planner.errors import InputError, Place, Problem
from planner.files import demand_inside, leads_out
from planner.scenario.shipped import folder_of, is_shipped

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from planner.plan.model.frontier_document import FrontierDocument
    from planner.plan.model.plan import PlanDocument


NAMING = ("catalog", "config", "trace", "histogram", "profile", "load_profile", "include")  # keys that name files


def demand_contained(plan: Mapping[str, Any]) -> None:
    """Refuse a plan whose copy of the scenario names files of a folder outside of the working folder.

    Where the scenario was, the plan says itself; a scenario that names no file may have been anywhere.

    Raises
    ------
    InputError
        It does, and that was not allowed (`planner.files.outside_allowed`).
    """
    file = plan.get("scenario_file")
    if isinstance(file, str) and not is_shipped(file) and any(_files_named(plan.get("scenario"))):
        demand_inside(".", folder_of(file) or ".")


def needs_outside(plan: Mapping[str, Any], *, from_here: bool = False) -> bool:
    """Whether files that a scenario names are read with --allow-outside alone.

    Parameters
    ----------
    plan
        Any document with a scenario and its file.
    from_here
        Whether the plan is read, which may name what lies in the working folder; else the scenario, and its folder.
    """
    file = plan.get("scenario_file")
    if not isinstance(file, str) or is_shipped(file):
        return False
    home = folder_of(file) or "."
    named = list(_files_named(plan.get("scenario")))
    return any(leads_out(home, Path(home) / one) for one in named) or (
        from_here and bool(named) and leads_out(".", home)
    )


def _files_named(scenario: Any) -> Iterator[str]:
    waiting = [scenario]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield from (value[key] for key in NAMING if isinstance(value.get(key), str))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


_MOST = 10  # problems that are told; the first of them are enough to mend a file by
_LIMIT_BYTES = 64_000_000
_DIGITS = 100  # of a whole number that are read: Python reads no more than a few thousand, and far fewer are too many
_LARGEST = 2**63 - 1  # of whole numbers: micro-dollars are 64 bits wide
_FARTHEST = 1e100  # of others: in any smaller unit they are numbers still
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: what no file can hold
_WRITES_FRONTIER = "plan frontier SCENARIO --over deadline=7d..60d -o json --out FILE writes a frontier"
_SHOWN = 40  # characters of a value that is refused


def read_plan(source: files.StrPath) -> PlanDocument:
    """The plan document of a file; InputError when the file holds none, one that `read_document` refuses, or one that
    would have files read that lie elsewhere."""
    document = read_document(*_parsed(source, "a plan", "plan solve SCENARIO writes one to .plan/"))
    demand_contained(document)
    return document


def read_frontier(source: files.StrPath) -> FrontierDocument:
    """The frontier document of a file; InputError when the file holds none, or one that is refused."""
    return read_frontier_document(*_parsed(source, "a frontier", _WRITES_FRONTIER))


def _parsed(source: files.StrPath, noun: str, way: str) -> tuple[object, str]:
    """What a JSON file holds, and its name; numbers that no document can hold too, so that their path can be told."""
    path = os.fspath(source)
    text = files.read_text(path, limit_bytes=_LIMIT_BYTES)
    try:
        return json.loads(text, parse_constant=float, parse_int=lambda digits: int(digits[:_DIGITS])), path
    except json.JSONDecodeError as error:
        place = Place(file=path, line=error.lineno, column=error.colno)
        raise InputError.of(
            "bad-json", f"not JSON: {error.msg}", place=place, hint=f"{noun} is wanted here: {way}"
        ) from None
    except RecursionError:
        raise InputError.of("bad-json", f"not {noun}", place=Place(file=path), hint=way) from None


def read_document(value: object, file: str = "") -> PlanDocument:
    """A plan document, as it is, once everything in it has the type that it must have.

    Parameters
    ----------
    value
        What a JSON text held.
    file
        Where it is from, for messages.

    Raises
    ------
    InputError
        It is no plan, a plan of another version, or keys are missing, unknown or of another type: each with its path.
    """
    return cast("PlanDocument", _read(value, file, "a plan", "plan/result/v1", "solve the scenario again: plan solve"))


def read_frontier_document(value: object, file: str = "") -> FrontierDocument:
    """A frontier document, as `read_document` does a plan."""
    return cast("FrontierDocument", _read(value, file, "a frontier", "plan/frontier/v1", _WRITES_FRONTIER))


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """What holds a document against its type: no key that the type does not name, no number in words."""
    from pydantic import ConfigDict, TypeAdapter

    kind.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    return TypeAdapter(kind)


@cache  # made when the first file is read: it takes a moment
def _adapter(schema: str) -> TypeAdapter[Any]:
    from planner.plan.model import frontier_document, plan

    return adapter_of(plan.PlanDocument if schema == "plan/result/v1" else frontier_document.FrontierDocument)


def _read(value: object, file: str, noun: str, schema: str, hint: str) -> Mapping[str, Any]:
    places = (Place(file=file),) if file else ()
    found = value.get("schema") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or found != schema:
        version = isinstance(found, str) and found.startswith(schema.rstrip("0123456789"))
        said = f"{noun} of version {found}; this planner reads {schema}" if version else f"not {noun}"
        reference, way = ("unknown-schema", hint) if version else (f"not-{noun.replace(' ', '-')}", "")
        way = way or (f"{noun} has schema {schema}" if file.endswith(".json") or not file else hint)
        raise InputError(Problem(reference=reference, message=f"{file or 'this'} is {said}", places=places, hint=way))
    wrong = dict(_unfit(value)) or dict(_of_other_types(value, schema))
    if not wrong:
        return value
    told = [f"{path} {what}" for path, what in wrong.items()]
    if len(told) > _MOST:
        told = [*told[: _MOST - 1], f"and {len(told) - _MOST + 1} more places"]
    reference = f"malformed-{noun.split()[-1]}"
    raise InputError(*(Problem(reference=reference, message=each, places=places, hint=hint) for each in told))


def _unfit(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Numbers and texts that JSON may hold and a document may not, wherever they stand."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += ((_inside(path, key), part) for key, inner in value.items() for part in (key, inner))
        elif isinstance(value, list | tuple):
            waiting += ((f"{path}[{index}]", inner) for index, inner in enumerate(value))
        elif isinstance(value, float) and not math.isfinite(value):
            yield path, "is no finite number"
        elif isinstance(value, float) and not -_FARTHEST <= value <= _FARTHEST:
            yield path, f"is beyond {_FARTHEST:g}"
        elif isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
            yield path, "is a whole number of more than 63 bits"
        elif isinstance(value, str) and not value.isascii() and _HALF.search(value):
            yield path, "holds half a character"


def _of_other_types(document: Mapping[str, Any], schema: str) -> Iterator[tuple[str, str]]:
    """What is missing, unknown or of another type."""
    from pydantic import ValidationError

    try:
        _adapter(schema).validate_python(document)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            path = _path(document, one["loc"])
            if one["type"] == "missing":
                yield path, "is missing"
            elif one["type"] == "extra_forbidden":
                yield path, "is not known"
            elif one["type"] == "union_tag_not_found":
                yield _inside(path, one["ctx"]["discriminator"].strip("'")), "is missing"
            elif one["type"] == "union_tag_invalid":
                yield _inside(path, one["ctx"]["discriminator"].strip("'")), f"is none of {one['ctx']['expected_tags']}"
            else:
                yield path, f"is {_shown(one['input'])}, {one['msg'].removeprefix('Input ').replace('None', 'null')}"


def _path(document: Any, parts: tuple[int | str, ...]) -> str:
    """Where an error is, as --set writes it, without the names of the types that were tried."""
    path, value = "", document
    for number, part in enumerate(parts):
        if isinstance(value, list) and isinstance(part, int):
            path, value = f"{path}[{part}]", value[part]
        elif isinstance(value, Mapping) and (part in value or number == len(parts) - 1):
            path, value = _inside(path, part), value.get(part)
    return path


def _inside(path: str, key: object) -> str:
    name = str(key) if _WORD.fullmatch(str(key)) else json.dumps(str(key)[:_SHOWN])
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    """A value in short, without characters that a terminal would obey."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
