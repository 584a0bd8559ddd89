"""The facts of commit e2d9ba0, kept as they were, so that a figure in dollars stays the same figure.

The folder `hardware/` here is that commit's: prices, machines, calibrations. It is never brought up to date.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner import api
from planner.answers import Plan
from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "hardware"
COMMIT = "e2d9ba0"
DIGEST = "c7af1c8b08fb52da487de12be9ca1e7e502efc54c2479b9902ca8474dea094b6"


@cache
def catalog() -> Catalog:
    """The frozen catalog with its calibration."""
    return api.load_catalog(FOLDER)


def scenario(name: str, *changes: str) -> Scenario:
    """A shipped scenario, with texts of `--set`."""
    return api.load_scenario(ROOT / "scenarios" / f"{name}.yaml", settings=changes)


def plan(name: str, *changes: str) -> Plan:
    """The plan of a shipped scenario with the frozen facts."""
    return api.solve(scenario(name, *changes), catalog())
