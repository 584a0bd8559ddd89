"""From what somebody asks of a frontier, "deadline from 7 to 60 days", to a sweep and the scenarios that it needs."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from planner import units
from planner.analysis.frontier.points import HELD, Sweep
from planner.analysis.frontier.sweep import Value
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.plan.model.frontier_document import Against
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, TrainingJob
from planner.units import UnitError

OBJECTIVES: tuple[Against, ...] = ("cost", "time", "carbon")


def sweep_of(
    scenario: Scenario,
    *,
    over: str,
    low: str | None,
    high: str | None,
    against: str | None = None,
    workload: str | None = None,
    most: int = 1000,
) -> Sweep:
    """The sweep that is asked for, in base units.

    Parameters
    ----------
    scenario
        What is asked; it may not be of several futures.
    over
        The limit: deadline, budget or carbon.
    low, high
        Tightest and loosest, with a unit: "7d", "$10k", "2 t". None = 0, and no limit; a deadline needs both.
    against
        What is made least: cost, time or carbon. None = cost; under a budget time, or carbon where nothing is trained.
    workload
        The job whose deadline is swept; None = all jobs, each from its own start. Only for deadlines.
    most
        Points to look for at most.

    Raises
    ------
    UsageError
        Nothing of the scenario can be traded that way, or the range is none.
    """
    if scenario.uncertainty:
        raise _wrong("not-together", "a frontier is of one future, not of several", "leave uncertainty out of it")
    if over not in HELD:
        raise _wrong(
            "unknown-limit",
            f"there is no limit '{over}' to sweep over",
            f"use {', '.join(HELD)}; plan sweep solves a scenario at values of anything",
        )
    against = against or ("cost" if over != "budget" else "time" if scenario.training else "carbon")
    if against not in OBJECTIVES:
        raise _wrong("unknown-objective", f"there is no objective '{against}'", f"use {', '.join(OBJECTIVES)}")
    if against == HELD[over]:
        raise _wrong("nothing-to-trade", f"{over} and {against} are one and the same", "trade it against another")
    if "time" in (HELD[over], against) and not scenario.training:
        raise _wrong("nothing-to-trade", "no workload has an end: the scenario trains nothing", "--over carbon")
    _check_workload(scenario, over, workload)
    least, most_of = _range(scenario, over, low, high)
    return Sweep(over=over, against=against, low=least, high=most_of, workload=workload, most=most)


def loosest(scenario: Scenario, sweep: Sweep) -> Scenario:
    """The scenario with the swept limit at its loosest, deadlines aside, and both objectives named."""
    return with_settings(scenario, _at_loosest(sweep))


def loosest_settings(scenario: Scenario, sweep: Sweep) -> list[str]:
    """What asks `plan solve` for the plan at the loosest limit, and so for the reason where there is none."""
    settings = _at_loosest(sweep)
    if sweep.over == "deadline" and sweep.high is not None:
        text = units.format_duration(float(sweep.high), exact=True)
        settings += _deadlines(scenario, sweep.workload, text)
    return settings


def _at_loosest(sweep: Sweep) -> list[str]:
    settings = [f'objective=["{sweep.against}","{sweep.held}"]']
    if sweep.over == "budget":
        settings.append(f"limits.budget={_money(sweep.high)}")
    if sweep.over == "carbon":
        settings.append("limits.carbon=" + ("null" if sweep.high is None else f"{_decimal(sweep.high, 1000)} g"))
    return settings


def _deadlines(scenario: Scenario, workload: str | None, text: str) -> list[str]:
    """The swept jobs due at one time, however their deadline was written."""
    settings = []
    for job in swept_jobs(scenario, workload):
        settings += [f"training.{job.name}.hours=null"] if job.hours is not None else []
        settings.append(f"training.{job.name}.deadline={text}")
    return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AtDeadline:
    """The loosest scenario with the swept deadlines at a number of seconds; it can be sent to another process."""

    loosest: Scenario
    workload: str | None  # None = every job

    def __call__(self, seconds: float) -> Scenario:
        """The scenario at a deadline."""
        return with_settings(self.loosest, _deadlines(self.loosest, self.workload, f"{_decimal(seconds, 1)} s"))


def at_deadline(scenario: Scenario, sweep: Sweep) -> AtDeadline:
    """The loosest scenario with the swept deadlines at a number of seconds."""
    return AtDeadline(loosest=loosest(scenario, sweep), workload=sweep.workload)


def own_limit(scenario: Scenario, sweep: Sweep) -> float | None:
    """The limit that the scenario itself sets, where that is one number: s, micro-USD or mg."""
    if sweep.over == "budget":
        return scenario.limits.budget_microusd
    if sweep.over == "carbon":
        return None if scenario.limits.carbon_g is None else scenario.limits.carbon_g * 1000
    deadlines = {job.deadline_s for job in swept_jobs(scenario, sweep.workload)}
    return deadlines.pop() if len(deadlines) == 1 else None


def swept_jobs(scenario: Scenario, workload: str | None) -> list[TrainingJob]:
    """Jobs whose deadline is swept."""
    return [job for job in scenario.training if workload in (None, job.name)]


def _check_workload(scenario: Scenario, over: str, workload: str | None) -> None:
    names = [job.name for job in scenario.training]
    if workload is not None and over != "deadline":
        raise _wrong("unknown-workload", f"{over} is a limit of the whole plan", "leave --workload out")
    if workload is not None and workload not in names:
        raise _wrong("unknown-workload", f"no job is called '{workload}'", f"there is {', '.join(names)}")
    pausing = [job.name for job in swept_jobs(scenario, workload) if job.schedule == "elastic"]
    if over == "deadline" and pausing:
        hint = "sweep over another job with --workload NAME, or leave schedule: elastic out"
        raise _wrong("nothing-to-trade", f"'{pausing[0]}' may pause: how long it takes is not one number", hint)


def _range(scenario: Scenario, over: str, low: str | None, high: str | None) -> tuple[Value, Value | None]:
    if over == "deadline" and (low is None or high is None):
        raise _wrong("missing-range", "a sweep over deadlines needs both ends", "--over deadline=7d..60d")
    least: Value = 0 if low is None else _limit(scenario, over, low, up=False)
    most: Value | None = None if high is None else _limit(scenario, over, high, up=True)
    if (most is not None and most < least) or (over == "deadline" and least <= 0):
        raise _wrong("out-of-range", f"{over}={low or ''}..{high or ''} is no range", "the first is the smaller one")
    return least, most


def _limit(scenario: Scenario, over: str, text: str, *, up: bool) -> Value:
    """One end of the range in base units."""
    try:
        if over == "deadline":
            return units.parse_duration(text, field="--over")
        if over == "budget":
            return units.parse_money(_written_out(text), field="--over", rates=scenario.rates)
        return (math.floor if up else math.ceil)(Fraction(units.parse_mass(text, field="--over")) * 1000)
    except UnitError as error:
        raise _wrong(error.reference, error.message, error.hint) from None


def _written_out(text: str) -> str:
    """Money as scenarios write it: $10k is $10000 here, where nothing else could be meant."""
    match = re.fullmatch(r"(\D*)(\d+(?:\.\d+)?)\s*([kM])(\D*)", text)
    if match is None:
        return text
    head, number, suffix, tail = match.groups()
    return f"{head}{_decimal(Fraction(number) * (1000 if suffix == 'k' else 10**6), 1)}{tail}"


def _money(microusd: Value | None) -> str:
    if microusd is None:
        return "null"
    amount = _decimal(microusd, 10**6)
    return f"${amount}" if "." in amount else f"${amount}.00"


def _decimal(value: Value | Fraction, divisor: int) -> str:
    """A number without exponent, exactly."""
    number = Fraction(value) / divisor
    text = f"{float(number):.12f}".rstrip("0").rstrip(".")
    return text if Fraction(text) == number else f"{float(number)!r}"


def _wrong(reference: str, message: str, hint: str) -> UsageError:
    error = UsageError.of(reference, message, hint=hint)
    assert isinstance(error, UsageError)
    return error
