"""What is wrong with the cases of `uncertainty` and with `risk`: names, probabilities, objectives."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from planner.errors import Problem
from planner.scenario.schema import Scenario
from planner.yamlfile import Document, Steps

AS_WRITTEN = "as written"  # the case that needs no entry
STEPS = 10_000  # probabilities are whole hundredths of a percent


def probability(share: float) -> Fraction:
    """A probability as the whole hundredths of a percent that it is."""
    return Fraction(round(share * STEPS), STEPS)


def uncertainty_problems(scenario: Scenario, document: Document) -> list[Problem]:
    """Every mistake of what may happen."""
    return [
        Problem(reference=reference, message=message, places=(document.nearest(path)[0].place,), hint=hint)
        for reference, message, path, hint in _mistakes(scenario)
    ]


def _mistakes(scenario: Scenario) -> Iterator[tuple[str, str, Steps, str]]:
    names = [entry.name for entry in scenario.uncertainty]
    for i, entry in enumerate(scenario.uncertainty):
        if entry.name in names[:i] or entry.name == AS_WRITTEN:
            hint = "give each case a name of its own"
            yield "duplicate-name", f"two cases are named '{entry.name}'", ("uncertainty", i, "name"), hint
        exact = Fraction(repr(entry.probability))
        if probability(entry.probability) != exact:
            hint = "round it to a hundredth of a percent"
            yield "out-of-range", "the probability is finer than 0.01 %", ("uncertainty", i, "probability"), hint
    if sum(probability(entry.probability) for entry in scenario.uncertainty) >= 1:
        hint = "lower them: the scenario as it is written is a case too"
        yield "out-of-range", "the probabilities leave nothing to the scenario as written", ("uncertainty",), hint
    if scenario.uncertainty and scenario.objective[0] != "cost":
        hint = "write objective: cost"
        yield "conflict", "with uncertainty the expected cost is minimised", ("uncertainty",), hint
    if scenario.risk is not None and not scenario.uncertainty:
        yield "conflict", "'risk' weighs the cases of uncertainty; there are none", ("risk",), "add uncertainty"
    if scenario.risk is not None and scenario.risk.cvar >= 1:
        yield "out-of-range", "cvar is the level of the bad cases; it must be below 1", ("risk", "cvar"), "write 95 %"
