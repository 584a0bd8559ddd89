"""Launch files from a plan: what was chosen, in the words of the programs that run it.

`launches_of` reads a plan document, `export` writes the files of one format. Nothing is computed anew, and what a
target has no words for is refused with the reason rather than left out.
"""

from __future__ import annotations

from planner.export.from_plan import launches_of
from planner.export.launch import ExportFile, Launch, NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.registry import FORMATS, Export, Format, Refusal, export, launching, suggested

__all__ = [
    "FORMATS",
    "Export",
    "ExportFile",
    "Format",
    "Launch",
    "NotExpressible",
    "Refusal",
    "ServingLaunch",
    "TrainingLaunch",
    "export",
    "launches_of",
    "launching",
    "suggested",
]
