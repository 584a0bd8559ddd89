"""How much the tests try: a little in `make test`, all of it in `make campaign` and `make soak`.

``PLAN_TESTS`` names the tier: "default", "campaign" or "soak". In the long ones tests that are marked `campaign` run,
those of modules that count their `cases` run with all of them, and those of random inputs with twenty times as
many; the rest is left to `make test`, which ran it. ``PLAN_TESTS_SECONDS`` bounds the time in which tests are started.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import hypothesis
import pytest

TIER = os.environ.get("PLAN_TESTS", "default")
if TIER not in ("default", "campaign", "soak"):
    raise ValueError(f"PLAN_TESTS is default, campaign or soak, not {TIER}")
LONG = TIER != "default"
SECONDS = float(os.environ.get("PLAN_TESTS_SECONDS", "inf"))
STARTED = time.monotonic()
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


Case = TypeVar("Case")


def time_is_up() -> bool:
    """Whether the time of the campaign is over, when nothing more is begun."""
    return time.monotonic() - STARTED > SECONDS


def while_time_lasts(listed: Iterable[Case]) -> Iterator[Case]:
    """The cases of a long loop until the time of the campaign is over; then it says how many there were."""
    for done, one in enumerate(listed):
        if time_is_up():
            warnings.warn(f"the time of the campaign is over after {done:,} cases", stacklevel=2)
            return
        yield one


def first_and_last(paths: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Of paths into a document that differ in numbers of rows alone the first and the last; all in the long tier."""
    listed = list(paths)
    if LONG:
        return set(listed)
    alike: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in listed:
        alike.setdefault(tuple("*" if isinstance(step, int) else step for step in path), []).append(path)
    return {path for same in alike.values() for path in (same[0], same[-1])}


def settings(max_examples: int = 100, *, few: int = 0, **options: Any) -> hypothesis.settings:
    """Those of hypothesis, with twenty times the examples in the long tier; in `make test` `few`, where given."""
    return hypothesis.settings(max_examples=max_examples * TIMES if LONG else few or max_examples, **options)


def sampled(values: Iterable[Any], few: int) -> list[Any]:
    """Cases of a parametrized test: `few` of them, evenly spread, in `make test`, the others in the long tier."""
    listed = list(values)
    kept = {round(index * (len(listed) - 1) / max(few - 1, 1)) for index in range(few)}
    return [one if k in kept else _long_only(one) for k, one in enumerate(listed)]


def _long_only(one: Any) -> Any:
    if hasattr(one, "marks"):  # made by pytest.param, as one value that is a tuple must be
        return pytest.param(*one.values, marks=pytest.mark.campaign, id=one.id)
    return pytest.param(*one if isinstance(one, tuple) else (one,), marks=pytest.mark.campaign)
