"""Plans of the shipped scenarios, each solved once in a run of the suite, whichever process asks first."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from planner import api

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
FOLDER = "PLAN_TESTS_FOLDER"


def plan_text(name: str, solver: str = "highs") -> str:
    """The file of a plan that was made in the root of the checkout, which no place in it names."""
    file = Path(os.environ[FOLDER]) / f"{name}.{solver}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with contextlib.chdir(ROOT):
                found = api.solve(api.load_scenario(f"scenarios/{name}.yaml"), solver=solver)
            file.write_text(found.to_json(), encoding="utf-8")
        return file.read_text(encoding="utf-8")


def plan(name: str, solver: str = "highs") -> dict[str, Any]:
    """Its document, to change at will."""
    document: dict[str, Any] = json.loads(plan_text(name, solver))
    return document
