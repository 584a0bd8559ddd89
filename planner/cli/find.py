"""Which scenario and which catalog a command means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner import files
from planner.errors import UsageError

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.scenario.schema import Scenario

DEFAULT_SCENARIO = "scenario.yaml"


def scenario_file(given: str | None) -> str:
    """The file given, else scenario.yaml, else the only file in scenarios/."""
    if given:
        return given
    found = scenarios_here()
    if found[:1] == [DEFAULT_SCENARIO] or len(found) == 1:
        return found[0]
    if not found:
        raise UsageError.of(
            "no-scenario", "no scenario given, and none found here", hint="plan init writes one; or name a file"
        )
    raise UsageError.of(
        "many-scenarios", f"which scenario? Here are {', '.join(found)}", hint=f"name one of them: {found[0]}"
    )


def plan_or_scenario(given: str | None) -> str:
    """The file given, else the only plan in .plan/, else the scenario that is found here."""
    if given:
        return given
    plans = plans_here()
    if len(plans) > 1:
        raise UsageError.of(
            "many-plans", f"which plan? Here are {', '.join(plans)}", hint=f"name one of them: {newest_first(plans)[0]}"
        )
    return plans[0] if plans else scenario_file(None)


def scenarios_here() -> list[str]:
    """scenario.yaml, then the files in scenarios/ by name; those that exist."""
    own = [DEFAULT_SCENARIO] if Path(DEFAULT_SCENARIO).is_file() else []
    folder = Path("scenarios")
    return own + [str(path) for path in sorted(folder.glob("*.y*ml")) if path.is_file()]


def plans_here() -> list[str]:
    """The plans in .plan/, by name."""
    return [str(path) for path in files.list_files(".plan", "*.plan.json")]


def newest_first(paths: Sequence[str]) -> list[str]:
    """Files by the time of their last change."""
    return sorted(paths, key=lambda path: Path(path).stat().st_mtime, reverse=True)


def load(
    given: str | None, *, settings: Sequence[str] | None, case: str | None, hardware: str | None
) -> tuple[Scenario, Catalog]:
    """The scenario, and the catalog: --hardware, else the scenario's own, else the packaged one."""
    from planner.scenario import load_scenario

    scenario = load_scenario(scenario_file(given), settings=tuple(settings or ()), case=case)
    from planner import api  # after the scenario: its mistakes are told before anything heavy is imported

    return scenario, api.catalog_of(scenario, hardware)
