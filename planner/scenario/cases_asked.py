"""What may happen: the cases of `uncertainty`, each a scenario of its own with the probability that it has.

Whatever is left of the probability belongs to the scenario as it is written.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from planner.carriers import dataclass
from planner.scenario.checks import AS_WRITTEN, probability
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """One thing that may happen."""

    name: str
    probability: Fraction
    scenario: Scenario


def cases_of(scenario: Scenario) -> tuple[Possible, ...]:
    """Every case with a probability above 0: first the scenario as written, then those of `uncertainty`.

    Raises
    ------
    InputError
        Settings that make no valid scenario.
    """
    shares = {entry.name: probability(entry.probability) for entry in scenario.uncertainty}
    rest = 1 - sum(shares.values(), start=Fraction(0))
    cases = [Possible(name=AS_WRITTEN, probability=rest, scenario=_plainly(scenario, {}))]
    cases += [
        Possible(name=entry.name, probability=shares[entry.name], scenario=_plainly(scenario, dict(entry.settings)))
        for entry in scenario.uncertainty
    ]
    return tuple(case for case in cases if case.probability > 0)


def _plainly(scenario: Scenario, settings: dict[str, Any]) -> Scenario:
    """The scenario with some settings, and with nothing uncertain."""
    data = {key: value for key, value in scenario.resolved.items() if key not in ("uncertainty", "risk")}
    texts = [f"{path}={json.dumps(value)}" for path, value in settings.items()]
    return parse_scenario(json.dumps(data), file=scenario.file, settings=texts)
