"""The door to pandas: what is missing is said in a line where it is not there."""

from __future__ import annotations

from typing import Any

from planner.errors import Problem, UsageError


def pandas(what: str) -> Any:
    """The package, for what wants it.

    Raises
    ------
    UsageError
        It is not installed here.
    """
    try:
        import pandas as package
    except ImportError:
        problem = Problem(reference="missing-package", message=f"{what} needs pandas, which is not installed here",
                          hint="pip install pandas; what does not make or read tables works without it")  # fmt: skip
        raise UsageError(problem) from None
    return package
