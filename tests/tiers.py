"""How much the tests try: a little in `make test`, all of it in `make campaign` and `make soak`.

``PLAN_TESTS`` names the tier: "default", "campaign" or "soak". In the long ones tests that are marked `campaign` run,
those of modules that count their `cases` run with all of them, and those of random inputs with twenty times as
many; the rest is left to `make test`, which ran it. ``PLAN_TESTS_SECONDS`` bounds the time in which tests are started.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest

TIER = os.environ.get("PLAN_TESTS", "default")
if TIER not in ("default", "campaign", "soak"):
    raise ValueError(f"PLAN_TESTS is default, campaign or soak, not {TIER}")
LONG = TIER != "default"
SECONDS = float(os.environ.get("PLAN_TESTS_SECONDS", "inf"))
TIMES = 20  # as many random inputs in the long tier

# the same inputs on every machine; `dev` looks for others on each run, and so does `make soak`
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile(
    "campaign", derandomize=TIER != "soak", deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile("campaign" if LONG else "ci")


def cases(few: int, full: int) -> int:
    """How many cases a loop tries: `few` in `make test`, `full` in the long tier."""
    return full if LONG else few


def settings(max_examples: int = 100, **options: Any) -> hypothesis.settings:
    """Those of hypothesis, with twenty times the examples in the long tier."""
    return hypothesis.settings(max_examples=max_examples * (TIMES if LONG else 1), **options)


def sampled(values: Iterable[Any], few: int) -> list[Any]:
    """Cases of a parametrized test: `few` of them, evenly spread, in `make test`, the others in the long tier."""
    listed = list(values)
    kept = {round(index * (len(listed) - 1) / max(few - 1, 1)) for index in range(few)}
    return [one if k in kept else _long_only(one) for k, one in enumerate(listed)]


def _long_only(one: Any) -> Any:
    return pytest.param(*one if isinstance(one, tuple) else (one,), marks=pytest.mark.campaign)
