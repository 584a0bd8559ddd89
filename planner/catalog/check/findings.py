"""What a check finds: a problem with the file of the catalog that it is about."""

from __future__ import annotations

from planner.errors import Place, Problem


def error(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that no catalog may hold.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is wrong, and with which entry.
    file
        File or folder within the catalog, as offers/aws.csv or devices; empty: none in particular.
    hint
        What to do about it; empty: none.
    """
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint)


def warning(reference: str, message: str, file: str, hint: str = "") -> Problem:
    """Something that may be right, and was wrong elsewhere.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is odd, and about which entry.
    file
        File or folder within the catalog, as offers/aws.csv or devices; empty: none in particular.
    hint
        What to do about it; empty: none.
    """
    return Problem(reference=reference, message=message, places=(Place(file=file),), hint=hint, severity="warning")
