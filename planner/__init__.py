"""plan: which accelerators to rent for LLM training and serving, how to split each model, and what it costs.

plan = planner.solve("llama")            a shipped scenario by name, a file, or a loaded scenario
plan.verify(), plan.explain()            what a plan says of itself
planner.session("llama")                 several questions to one scenario
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Candidates",
    "Catalog",
    "CatalogTable",
    "Comparison",
    "Frontier",
    "Grid",
    "InfeasibleError",
    "InputError",
    "NotProvenError",
    "OutputError",
    "Plan",
    "PlanError",
    "Problem",
    "Question",
    "Reserve",
    "Rows",
    "Scenario",
    "Session",
    "StoppedError",
    "Sweep",
    "UsageError",
    "__version__",
    "best_decisions",
    "break_even",
    "candidates_table",
    "compare",
    "compare_catalogs",
    "enumerate_candidates",
    "explain",
    "export_plan",
    "frontier",
    "grid",
    "load_catalog",
    "load_model",
    "load_scenario",
    "marginal_values",
    "near_optimal",
    "repairs",
    "reserve",
    "session",
    "shipped_scenarios",
    "solve",
    "sweep",
    "verify",
    "why_not",
]

if TYPE_CHECKING:
    from planner.api import (
        Candidates,
        Catalog,
        CatalogTable,
        Comparison,
        Frontier,
        Grid,
        Plan,
        Question,
        Reserve,
        Rows,
        Scenario,
        Session,
        Sweep,
        best_decisions,
        break_even,
        candidates_table,
        compare,
        compare_catalogs,
        enumerate_candidates,
        explain,
        export_plan,
        frontier,
        grid,
        load_catalog,
        load_model,
        load_scenario,
        marginal_values,
        near_optimal,
        repairs,
        reserve,
        session,
        shipped_scenarios,
        solve,
        sweep,
        verify,
        why_not,
    )
    from planner.errors import (
        InfeasibleError,
        InputError,
        NotProvenError,
        OutputError,
        PlanError,
        Problem,
        StoppedError,
        UsageError,
    )
else:  # a type checker that sees this function takes every name for one of ours

    def __getattr__(name):
        """Public names are imported when first asked for: `plan --help` stays light."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'planner' has no attribute {name!r}")
        light = import_module("planner.errors")
        found = getattr(light, name, None) or getattr(import_module("planner.api"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
