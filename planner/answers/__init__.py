"""Answers as a script or a notebook holds them: a document, and ways to look at it.

`print` shows what the terminal shows, a notebook a small table, `to_frame()` a pandas DataFrame; no number is computed.
"""

from planner.answers.asked import CatalogTable, Comparison, Explanation, Frontier, Report, Reserve, Sweep
from planner.answers.plan_answer import Plan
from planner.answers.shown import Rows

__all__ = ["CatalogTable", "Comparison", "Explanation", "Frontier", "Plan", "Report", "Reserve", "Rows", "Sweep"]
