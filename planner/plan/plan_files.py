"""Plan files that come from outside: held against their types, with the catalog that they were made with loaded again.

A file may come from anywhere: what it would have read lies in the folder where it is read. Its scenario or its catalog
may have been edited since, and then it does not answer them any more (reliability.md F7).
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner import files
from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import InputError, Place, Problem
from planner.files import demand_inside, leads_out
from planner.scenario.load import load_scenario, parse_scenario
from planner.scenario.schema import Scenario
from planner.scenario.shipped import folder_of, is_shipped
from planner.units import NO_RATES

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from planner.plan.model.frontier_document import FrontierDocument
    from planner.plan.model.plan import CatalogUsed, PlanDocument


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


def catalog_used(catalog: Catalog, scenario: Scenario) -> CatalogUsed:
    """What documents say of the catalog that they were made with: enough to find it again, and to know it."""
    used: CatalogUsed = {"name": catalog.name, "as_of": catalog.as_of, "sha256": catalog.digest}
    if catalog.own_prices:
        used["own_prices"] = list(catalog.own_prices)
    if catalog.named and catalog.named != scenario.hardware.catalog:
        used["hardware"] = catalog.named
    return used


def catalog_of_plan(
    plan: Mapping[str, Any],
    hardware: str | None = None,
    *,
    prices: Iterable[str] | None = None,
    price: Iterable[str] | None = None,
) -> Catalog:
    """The catalog of a plan: the one that was named for it, its scenario's own or the packaged one, at its own prices.

    A folder that was named is read where it lies in the working folder, as what plans name is, unless that was
    allowed. Whether the catalog still is what it was, its digest tells.

    Parameters
    ----------
    plan
        A plan document.
    hardware
        A folder or frozen file in place of the scenario's.
    prices, price
        As on the command line, in place of those that the plan records.

    Raises
    ------
    InputError, UsageError
        The catalog or a file of prices is gone or invalid.
    """
    scenario = _scenario(plan)
    rates = NO_RATES if scenario is None else scenario.rates
    own = OwnPrices.of(prices, price, rates)
    if not own.flags:
        own = OwnPrices.from_flags(_recorded(plan), rates)
        for file in own.files:
            _demand_inside(file)
    if hardware is None and (named := hardware_of(plan)) and not outside(named):
        hardware = named
    return load_priced(hardware or (scenario.hardware.catalog if scenario is not None else None), own)


def hardware_of(plan: Mapping[str, Any]) -> str:
    """The folder or file that was named for a plan in place of its scenario's own catalog; "" where none was."""
    try:
        named = plan["provenance"]["catalog"].get("hardware", "")
    except (LookupError, TypeError, AttributeError):
        return ""
    return named if isinstance(named, str) else ""


def outside(path: str) -> bool:
    """Whether a path that a plan names is not followed: it leads out of the working folder, or to nothing."""
    try:
        demand_inside(".", path)
        return not Path(path).exists()
    except (InputError, OSError, ValueError):
        return True


def _demand_inside(file: str) -> None:
    try:
        demand_inside(".", file)
    except InputError:
        message = f"this plan was made with prices of '{file}', a file outside of the working folder"
        hint = "name its prices again, all of them (--prices, --price), or allow it: --allow-outside"
        raise InputError.of("unsafe-path", message, hint=hint) from None


def _recorded(plan: Mapping[str, Any]) -> list[str]:
    """The flags that a plan records; none where the document is not a plan."""
    try:
        flags = plan["provenance"]["catalog"].get("own_prices", [])
    except (LookupError, TypeError, AttributeError):
        return []
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


def _scenario(plan: Mapping[str, Any]) -> Scenario | None:
    """The scenario of a plan, its paths seen from the scenario's file; None where it cannot be read."""
    try:
        return parse_scenario(json.dumps(plan["scenario"]), file=plan["scenario_file"])
    except (InputError, LookupError, TypeError, ValueError, RecursionError):  # what is wrong, `verify` says
        return None


def scenario_of(plan: Mapping[str, Any]) -> Scenario | None:
    """The scenario file of a plan as it is now, with the case and the --set texts of the plan.

    None: not readable, or outside of the working folder, where a plan is not followed unless that was allowed.
    """
    try:
        if not is_shipped(plan["scenario_file"]):
            demand_inside(".", plan["scenario_file"])
        return load_scenario(plan["scenario_file"], settings=plan.get("settings", ()), case=plan["case"])
    except InputError:
        return None


def question_of(plan: Mapping[str, Any], scenario: Scenario | None) -> Scenario | None:
    """The question that a plan answers: its scenario file where that did not change, else the plan's own copy.

    None: what the copy names, a file of requests or a model, is not here.
    """
    if scenario is not None and asks_the_same(plan["scenario"], scenario.resolved):
        return scenario
    try:
        return parse_scenario(json.dumps(plan["scenario"]), file=plan["scenario_file"])
    except InputError:
        return None


def stale_problems(plan: Mapping[str, Any], catalog: Catalog, scenario: Scenario | None) -> list[Problem]:
    """What changed since the plan was made, a problem each; empty: nothing.

    Parameters
    ----------
    scenario
        Its scenario file as it is now; None: gone or no longer valid, and the plan is as good as its own copy.
    """
    found = []
    if scenario is not None and not asks_the_same(plan["scenario"], scenario.resolved):
        keys = ", ".join(changed_keys(plan["scenario"], scenario.resolved))
        found.append(_stale(f"the scenario changed since this plan was made: {keys}", plan["scenario_file"]))
    made_with = plan["provenance"]["catalog"]
    if catalog.digest != made_with["sha256"]:
        found.append(
            _stale(
                f"the catalog changed since this plan was made: it was {made_with['name']} {made_with['as_of']} "
                f"(sha256 {made_with['sha256'][:8]}…), it is {catalog.name} {catalog.as_of} "
                f"(sha256 {catalog.digest[:8]}…)",
                hint=f"or name the catalog that it was made with: --hardware {_where(plan, catalog)}",
            )
        )
    return found


def _where(plan: Mapping[str, Any], catalog: Catalog) -> str:
    """The folder that was named for a plan, for a shell; DIR where it is the very one that is another now."""
    named = hardware_of(plan)
    return "DIR" if named in ("", catalog.named) else shlex.quote(named)


def asks_the_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two resolved scenarios have the same answer; how it is reported is no part of the question."""
    return {**before, "report": None} == {**after, "report": None}


def changed_keys(before: Any, after: Any, path: str = "") -> list[str]:
    """Paths at which two resolved scenarios differ, as --set writes them; parts of lists by their names.

    Parameters
    ----------
    before, after
        Two resolved scenarios, or what they have at one path.
    path
        Where that stands; empty: the whole scenario.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        return [
            line
            for key in keys
            for line in changed_keys(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
        ]
    was, now = _by_name(before), _by_name(after)
    if was is not None and now is not None:
        return changed_keys(was, now, path)
    return [] if before == after else [path]


def _by_name(entries: Any) -> dict[str, Any] | None:
    """A list of workloads by their names; None where they have none."""
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries):
        return None
    return {entry["name"]: entry for entry in entries}


def _stale(message: str, file: str = "", hint: str = "") -> Problem:
    return Problem(
        reference="stale-plan",
        message=message,
        places=(Place(file=file),) if file else (),
        hint="; ".join(filter(None, ["plan solve it again", hint, "or go on with the plan as it is: --allow-stale"])),
    )
