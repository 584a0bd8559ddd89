"""Plan files, read back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner import files
from planner.errors import InputError, Place
from planner.plan.contained import demand_contained

if TYPE_CHECKING:
    from planner.plan.frontier.model import FrontierDocument

_LIMIT_BYTES = 64_000_000
_PLAN, _FRONTIER = "plan/result/v1", "plan/frontier/v1"


def read_plan(path: files.StrPath) -> dict[str, Any]:
    """A plan document; InputError when the file is not one, or would have files read that lie elsewhere."""
    document = _read(path, _PLAN, "a plan", "plan solve SCENARIO writes a plan")
    demand_contained(document)
    return document


def read_frontier(path: files.StrPath) -> FrontierDocument:
    """A frontier document; InputError when the file is not one."""
    hint = "plan frontier SCENARIO --over deadline=7d..60d -o json --out FILE writes a frontier"
    return cast("FrontierDocument", _read(path, _FRONTIER, "a frontier", hint))


def _read(source: files.StrPath, schema: str, noun: str, hint: str) -> dict[str, Any]:
    """A document of one schema."""
    path = os.fspath(source)
    text = files.read_text(path, limit_bytes=_LIMIT_BYTES)
    try:
        document = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Place(file=path, line=error.lineno, column=error.colno)
        raise InputError.of("bad-json", f"not JSON: {error.msg}", place=place) from None
    except (ValueError, RecursionError):
        raise InputError.of("bad-json", f"not {noun}", place=Place(file=path)) from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        hint = f"{noun} has schema {schema}" if Path(path).suffix == ".json" else hint
        raise InputError.of(f"not-{noun.replace(' ', '-')}", f"{path} is not {noun}", place=Place(file=path), hint=hint)
    return dict(document)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
