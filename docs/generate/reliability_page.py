"""docs/reliability.md: promises, the tests that show them, and how much those try now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from counts import count
from markup import link, paragraphs, table

from planner.checks.leaves import told_paths
from planner.yamlfile import parse_yaml

HEAD = """\
# What may be relied on

<!-- made by `make docs` from docs/generate/promises.yaml and the tests; change those -->"""

INTRODUCTION = """\
Each row is a promise, the tests that show it, and what they try in `make campaign`. `make test` runs the same
tests, the long ones with fewer cases: a twentieth of the random inputs, the same ones on every machine, and a part
of the instances for brute force ([0034](decisions/0034-two-tiers-of-tests.md)). Numbers are read from the tests
themselves when this page is made, so that the page cannot promise more than is tried. How far predictions are off
is another matter: [validation](validation.md) has the figures.

Bugs of solvers, YAML readers and table writers that these tests guard against were measured, not guessed: a
solver that calls a feasible program infeasible, a time limit that is reported as "optimal", a merge key of 369
bytes that takes four seconds to read. More of them in [corrections](corrections.md) and in the
[decisions](decisions/README.md) on the [solver's process](decisions/0013-solver-process.md) and on
[the certificate](decisions/0016-certificate.md)."""

TOLD = """\
Every leaf of a plan is recomputed by the verifier, or held against the scenario, the catalog or the certificate, except
these ([0030](decisions/0030-verifier.md)): sentences, where they are from, and how the search went.
[`tests/plan/test_leaves.py`](../tests/plan/test_leaves.py) changes every other leaf, one at a time, and each change
must be found."""

PROMISES = Path(__file__).with_name("promises.yaml")
Promise = Mapping[str, Any]
_REFERENCE = re.compile(r"\{([^}]+)\}")


def reliability_page() -> dict[str, str]:
    """Path below docs/ -> text."""
    parts = [HEAD, paragraphs(INTRODUCTION)]
    for section in sections():
        rows = [[one["name"], one["says"], _tests(one), _tried(one)] for one in section["promises"]]
        parts += [f"## {section['section']}", table(("", "Promise", "Shown by", "Tried"), rows)]
    parts += ["## What a plan only tells", paragraphs(TOLD), ", ".join(f"`{path}`" for path in told_paths()) + "."]
    return {"reliability.md": "\n\n".join(parts) + "\n"}


@cache
def sections() -> tuple[Mapping[str, Any], ...]:
    """The promises as they are written down."""
    return tuple(parse_yaml(PROMISES.read_text(encoding="utf-8"), str(PROMISES)).data)


def promises() -> Iterator[Promise]:
    """Every promise."""
    for section in sections():
        yield from section["promises"]


def _tests(promise: Promise) -> str:
    shown = []
    for test in promise["shown_by"]:
        path, _, name = test.partition("::")
        shown.append(link(f"`{name or path.removeprefix('tests/')}`", f"../{path}"))
    return " · ".join(shown)


def _tried(promise: Promise) -> str:
    """The cases, with the numbers that the tests state; then what is not shown."""
    text = _REFERENCE.sub(lambda found: f"{count(found[1]):,}", promise["tried"])
    return f"{text}. *Not yet: {promise['not_yet']}.*" if "not_yet" in promise else text
