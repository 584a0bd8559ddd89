"""The door to pandas, which reads tables fast; what is missing is said in a line when it is not there."""

from __future__ import annotations

from functools import cache
from typing import Any

from planner.errors import Problem, UsageError


@cache
def pandas() -> Any:
    """The package.

    Raises
    ------
    UsageError
        It is not installed here.
    """
    try:
        import pandas as package
    except ImportError:
        problem = Problem(reference="missing-package", message="plan read needs pandas, which is not installed here",
                          hint="pip install pandas; the other commands work without it")  # fmt: skip
        raise UsageError(problem) from None
    return package
