"""The library behind the command line: load, enumerate, optimise, verify; ask, sweep.

sessions.py holds a scenario with its candidates, and answers; solving.py, asking.py and others ask it one thing;
checking.py verifies; frontiers.py sweeps a limit; taking.py reads what is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers import CatalogTable, Comparison, Frontier, Plan, Reserve, Rows, Sweep
from planner.api.asking import break_even, explain, export_plan, marginal_values, margins, repairs, why_not
from planner.api.checking import verify
from planner.api.comparing import compare, side_of, side_of_plan
from planner.api.listing import enumerate_candidates
from planner.api.reserving import reserve
from planner.api.schemas import (
    compare_schema,
    frontier_schema,
    plan_schema,
    report_schema,
    reserve_schema,
    sweep_schema,
    validation_schema,
)
from planner.api.sessions import Session
from planner.api.solving import best_decisions, candidates_table, near_optimal, session, solve
from planner.api.taking import PlanLike, ScenarioLike, catalog_of
from planner.brief import shows
from planner.candidates.search import Candidates
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.optimize.solve import optimize
from planner.plan.references import load_model
from planner.scenario.load import load_scenario
from planner.scenario.schema import Scenario
from planner.scenario.shipped import shipped_scenarios

if TYPE_CHECKING:
    from planner.api.frontiers import frontier, tradeoffs
    from planner.api.reporting import report
    from planner.api.sweeping import compare_catalogs, grid, sweep
    from planner.sweeps.axes import Grid
    from planner.sweeps.question import Question
else:
    _SWEEPING = {
        "frontiers": ("frontier", "tradeoffs"),
        "reporting": ("report",),
        "sweeping": ("compare_catalogs", "grid", "sweep", "Grid", "Question"),
    }

    def __getattr__(name):
        """What asks many questions is imported when it is first asked for: one question needs none of it."""
        from importlib import import_module

        home = next((home for home, names in _SWEEPING.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'planner.api' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"planner.api.{home}"), name)
        return found


__all__ = [
    "Candidates",
    "Catalog",
    "CatalogTable",
    "Comparison",
    "Frontier",
    "Grid",
    "Plan",
    "PlanLike",
    "Question",
    "Reserve",
    "Rows",
    "Scenario",
    "ScenarioLike",
    "Session",
    "Sweep",
    "best_decisions",
    "break_even",
    "candidates_table",
    "catalog_of",
    "compare",
    "compare_catalogs",
    "compare_schema",
    "enumerate_candidates",
    "explain",
    "export_plan",
    "frontier",
    "frontier_schema",
    "grid",
    "load_catalog",
    "load_model",
    "load_scenario",
    "marginal_values",
    "margins",
    "near_optimal",
    "optimize",
    "plan_schema",
    "repairs",
    "report",
    "report_schema",
    "reserve",
    "reserve_schema",
    "session",
    "shipped_scenarios",
    "side_of",
    "side_of_plan",
    "solve",
    "sweep",
    "sweep_schema",
    "tradeoffs",
    "validation_schema",
    "verify",
    "why_not",
]


def _in_a_notebook(thing: Any) -> str:
    """What a scenario, a catalog or candidates look like there; what draws it is imported when it is looked at."""
    from planner.report import notebook

    draw = getattr(notebook, f"{type(thing).__name__.lower()}_html")
    return str(draw(thing))


def _as_a_table(candidates: Candidates, kind: str | None) -> Any:
    from planner.plan.rows.candidate_rows import candidates_frame

    return candidates_frame(candidates, kind)


for _kind in (Candidates, Catalog, Scenario):
    shows(_kind.__name__, "html", _in_a_notebook)
shows(Candidates.__name__, "frame", _as_a_table)
