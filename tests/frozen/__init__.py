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
DIGEST = "f8261eba5bc6377044fb10189d58fb67417d354d69963261b8a293320ef2d94f"


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
