"""What a calendar asks of a scenario: periods that can be counted, windows that leave a start, orders without a circle.

Works on the models, since what is wrong here only shows in base units.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.carriers import dataclass
from planner.errors import Problem
from planner.scenario.periods import SHORT, first_period
from planner.scenario.schema import MAX_PERIODS, Scenario, TrainingJob
from planner.spelling import closest
from planner.units import format_duration
from planner.yamlfile import Document, Steps


@dataclass(frozen=True, slots=True)
class _Check:
    scenario: Scenario
    document: Document

    def problem(self, path: Steps, reference: str, message: str, hint: str) -> Problem:
        """A problem at the nearest place that is written."""
        place = self.document.nearest(path)[0].place
        return Problem(reference=reference, message=message, places=(place,), hint=hint)


def timing_problems(scenario: Scenario, document: Document) -> list[Problem]:
    """Every mistake about periods, windows, orders and dates."""
    check = _Check(scenario, document)
    problems = [*_dates(check), *_orders(check), *_data(check), *_flex(check)]
    if scenario.scheduled and not problems:
        problems = [*_grid(check)]
        problems = problems or [*_windows(check)]
    return problems


def _grid(check: _Check) -> Iterator[Problem]:
    scenario = check.scenario
    if scenario.periods_s is None:
        return
    whole = f"a horizon of {format_duration(scenario.horizon_s)}"
    if scenario.periods_s > scenario.horizon_s:
        yield check.problem(("periods",), "out-of-range", f"'periods' is longer than {whole}",
                            "write shorter periods, or a longer horizon")  # fmt: skip
    elif scenario.periods > MAX_PERIODS:
        message = f"'periods' cuts {whole} into {scenario.periods} periods; at most {MAX_PERIODS} can be planned"
        longest = format_duration(scenario.horizon_s / MAX_PERIODS)
        yield check.problem(("periods",), "out-of-range", message, f"write periods of {longest} or more")


def _windows(check: _Check) -> Iterator[Problem]:
    for i, job in enumerate(check.scenario.training):
        yield from _window(check, i, job)


def _window(check: _Check, i: int, job: TrainingJob) -> Iterator[Problem]:
    """Some period begins between the start and the deadline, within the horizon."""
    scenario, path = check.scenario, ("training", i)
    end_s, period_s = job.start_s + job.deadline_s, scenario.period_s
    if scenario.periods_s is not None and end_s > scenario.horizon_s * (1 + SHORT):
        yield check.problem((*path, "deadline"), "out-of-range",
                            f"'deadline' of {job.name} lies {format_duration(end_s - scenario.horizon_s)} beyond the "
                            f"horizon of {format_duration(scenario.horizon_s)}, where the calendar ends",
                            f"write horizon: {end_s / 3600:g} h, or more")  # fmt: skip
        return
    first_s = first_period(job.start_s, period_s) * period_s
    if first_s < end_s - SHORT * period_s:
        return
    message = f"no period begins between the start and the deadline of {job.name}"
    if scenario.periods_s is None:
        hint = "add periods: 1 week, or a time of your own: a calendar without periods starts all at once"
    else:
        hint = f"write shorter periods, at most {format_duration(job.deadline_s)}, or move the start to a period's"
    key = "start" if job.start else "deadline"
    yield check.problem((*path, key), "no-period", message, hint)


def _orders(check: _Check) -> Iterator[Problem]:
    jobs = {job.name: job for job in check.scenario.training}
    found = False
    for i, job in enumerate(check.scenario.training):
        path = ("training", i, "after")
        for name in job.after or ():
            if name not in jobs or name == job.name:
                found = True
                others = [one for one in jobs if one != job.name]
                near = closest(name, others)
                hint = f"did you mean '{near[0]}'?" if near else "other jobs: " + (", ".join(others) or "none")
                yield check.problem(path, "bad-reference", f"'after' names '{name}', which is no other job", hint)
            elif max(job.count, jobs[name].count) > 1:
                found = True
                yield check.problem(path, "conflict", "'after' stands between single jobs, and one has a count",
                                    "write the jobs one by one")  # fmt: skip
        if (job.after or job.schedule == "elastic") and check.scenario.periods_s is None:
            key, what = ("after", "an order of jobs") if job.after else ("schedule", "a job that pauses")
            found = True
            yield check.problem(("training", i, key), "missing-field", f"'periods' is missing: {what} needs a calendar",
                                "add periods: 1 week")  # fmt: skip
    circle = None if found else _circle(jobs)
    if circle:
        i = [job.name for job in check.scenario.training].index(circle[0])
        yield check.problem(("training", i, "after"), "bad-reference",
                            "'after' goes around in a circle: " + " after ".join((*circle, circle[0])),
                            "drop one of them")  # fmt: skip


def _circle(jobs: dict[str, TrainingJob]) -> list[str]:
    """Jobs that wait for each other, in order; empty when there are none."""
    done: set[str] = set()
    for root in jobs:
        trail: list[str] = []
        stack = [(root, iter(jobs[root].after or ()))]
        while stack:
            name, rest = stack[-1]
            if len(trail) < len(stack):
                trail.append(name)
            below = next((one for one in rest if one not in done), None)
            if below is None:
                done.add(name)
                stack.pop()
                trail.pop()
            elif below in trail:
                return trail[trail.index(below) :]
            else:
                stack.append((below, iter(jobs[below].after or ())))
    return []


def _dates(check: _Check) -> Iterator[Problem]:
    scenario = check.scenario
    for i, owned in enumerate(scenario.hardware.owned):
        path = ("hardware", "owned", i, "from" if owned.from_date else "until")
        if not (owned.from_date or owned.until_date):
            continue
        if scenario.begin is None:
            yield check.problem(path, "missing-field", "a date needs another to count from, and the plan has none",
                                "add begin: 2026-12-01")  # fmt: skip
        if scenario.periods_s is None:
            yield check.problem(path, "missing-field", "'periods' is missing: what comes and goes needs a calendar",
                                "add periods: 1 week")  # fmt: skip
    for i, job in enumerate(scenario.training):
        if job.start_s < 0:
            yield check.problem(("training", i, "start"), "out-of-range",
                                f"'start' of {job.name} is before the plan begins", "write a later date")  # fmt: skip


def _data(check: _Check) -> Iterator[Problem]:
    """Jobs that name the same data agree on them."""
    first: dict[str, int] = {}
    jobs = check.scenario.training
    for i, job in enumerate(jobs):
        if job.data is None or job.data.name is None:
            continue
        other = first.setdefault(job.data.name, i)
        if jobs[other].data != job.data:
            yield check.problem(("training", i, "data"), "conflict",
                                f"two jobs say different things of the data '{job.data.name}'",
                                "say the same, or give each data set a name of its own")  # fmt: skip


def _flex(check: _Check) -> Iterator[Problem]:
    hardware = check.scenario.hardware
    if hardware.flex is not None:
        return
    hint = 'add "flex: {wait: 12 h}" under hardware: the expected wait counts against deadlines'
    if "flex" in hardware.pricing:
        yield check.problem(("hardware", "pricing"), "missing-field", "'flex' is missing in hardware", hint)
    for i, contract in enumerate(hardware.contracts):
        if contract.price_model == "flex" and contract.wait_s is None:
            yield check.problem(("hardware", "contracts", i), "missing-field", "'wait' is missing in contracts",
                                "add wait: 12 h, the expected time in the queue")  # fmt: skip
