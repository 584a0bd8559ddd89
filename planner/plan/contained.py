"""A plan file may come from anywhere: what it would have read lies in the folder where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.files import demand_inside
from planner.scenario.shipped import folder_of, is_shipped

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
    if isinstance(file, str) and not is_shipped(file) and _names_files(plan.get("scenario")):
        demand_inside(".", folder_of(file) or ".")


def _names_files(scenario: Any) -> bool:
    waiting = [scenario]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if any(isinstance(value.get(key), str) for key in NAMING):
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False
