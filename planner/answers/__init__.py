"""Answers as a script or a notebook holds them: a document, and ways to look at it.

`print` shows what the terminal shows, a notebook a small table, `to_frame()` a pandas DataFrame; no number is computed.
"""

from planner.answers.catalog_table import CatalogTable
from planner.answers.comparison import Comparison
from planner.answers.explanation import Explanation
from planner.answers.frontier import Frontier
from planner.answers.plan import Plan
from planner.answers.report import Report
from planner.answers.reserve import Reserve
from planner.answers.rows import Rows
from planner.answers.sweep import Sweep

__all__ = ["CatalogTable", "Comparison", "Explanation", "Frontier", "Plan", "Report", "Reserve", "Rows", "Sweep"]
