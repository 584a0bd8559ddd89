"""What a check finds: a problem with the file of the catalog that it is about."""

from __future__ import annotations

from planner.errors import Place, Problem


def error(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that no catalog may hold."""
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint)


def warning(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that may be right, and was wrong elsewhere."""
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint, severity="warning")
