"""A plan file may come from anywhere: what it would have read lies in the folder where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planner.files import demand_inside, leads_out
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
