"""plan: which accelerators to rent for LLM training and serving, how to split each model, and what it costs."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

__all__ = [
    "Plan",
    "__version__",
    "candidates_table",
    "compare",
    "enumerate_candidates",
    "export_plan",
    "frontier",
    "load_catalog",
    "load_model",
    "load_scenario",
    "solve",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Public names come from `planner.api`, imported when first asked for: `plan --help` stays light."""
    if name in __all__:
        from planner import api

        return getattr(api, name)
    raise AttributeError(f"module 'planner' has no attribute {name!r}")
