"""Reading a plan file back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner import files
from planner.errors import InputError, Place

_LIMIT_BYTES = 64_000_000
_SCHEMA = "plan/result/v1"


def read_plan(path: str) -> dict[str, Any]:
    """A plan document; InputError when the file is not one."""
    text = files.read_text(path, limit_bytes=_LIMIT_BYTES)
    try:
        document = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Place(file=path, line=error.lineno, column=error.colno)
        raise InputError.of("bad-json", f"not JSON: {error.msg}", place=place) from None
    except (ValueError, RecursionError):
        raise InputError.of("bad-json", "not a plan", place=Place(file=path)) from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != _SCHEMA:
        hint = f"a plan has schema {_SCHEMA}" if Path(path).suffix == ".json" else "plan solve SCENARIO writes a plan"
        raise InputError.of("not-a-plan", f"{path} is not a plan", place=Place(file=path), hint=hint)
    return dict(document)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
