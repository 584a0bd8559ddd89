"""What no single field can tell: keys that need or exclude each other, names that must differ, cases and their risk.

Works on the written data, not on the models, so that it speaks even when a field is wrong. What a calendar asks
(periods that can be counted, windows that leave a start, orders without a circle) is looked for in the models, since
what is wrong there only shows in base units.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any

from planner.carriers import dataclass
from planner.errors import Problem
from planner.scenario.fields import parse_date
from planner.scenario.mistakes import Mistake, mistake
from planner.scenario.periods import SHORT, first_period
from planner.scenario.schema import MAX_PERIODS, Scenario, TrainingJob
from planner.spelling import closest
from planner.units import format_duration
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


def cross_checks(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    """Every mistake that takes more than one field to see."""
    if not data.get("training") and not data.get("serving"):
        yield mistake(document, (), "missing-field", "the scenario has no workload",
                      'add a job under "training:" or a fleet under "serving:"',
                      missing=("training", "serving"))  # fmt: skip
    for i, job in _mappings(data, "training"):
        yield from _deadline(job, i, document)
        yield from _due(data, job, i, document)
        yield from _measured(data, job, i, document)
        yield from _step_time(data, job, i, document)
        yield from _analytic_alone(data, job, i, document)
    for i, fleet in _mappings(data, "serving"):
        yield from _demand(fleet, i, document)
        yield from _throughput(fleet, i, document)
        yield from _users(data, fleet, i, document)
        yield from _autoscaling(fleet, i, document)
    yield from _spot(data, document)
    yield from _owned(data, document)
    yield from _names(data, document)


def _mappings(data: dict[str, Any], section: str) -> Iterator[tuple[int, dict[str, Any]]]:
    items = data.get(section)
    for i, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield i, item


def _deadline(job: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    path = ("training", i)
    if "deadline" in job and "hours" in job:
        places = [document.key_place((*path, key)) for key in ("deadline", "hours")]
        yield mistake(document, (*path, "hours"), "conflict", "'deadline' and 'hours' are both given",
                      "keep one of the two", places=places)  # fmt: skip
    if "deadline" not in job and "hours" not in job:
        yield mistake(document, path, "missing-field", "'deadline' is missing in training",
                      'add "deadline: 30 days" or "hours: 720"', missing=("deadline", "hours"))  # fmt: skip


def _due(data: dict[str, Any], job: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """A deadline by date counts from a date, and lies after the start."""
    due = _date_of(job.get("deadline"))
    if due is None:
        return
    path = ("training", i, "deadline")
    jobs = [_date_of(one.get("start")) for _, one in _mappings(data, "training")]
    begin = _date_of(data.get("begin")) or min((date for date in jobs if date), default=None)
    given = [data.get("begin"), *(one.get("start") for _, one in _mappings(data, "training"))]
    if begin is None and any(one is not None for one in given):
        return  # it is told that this is no date
    if begin is None:
        yield mistake(document, (), "missing-field", "'begin' is missing: a deadline by date counts from it",
                      'add "begin: 2026-12-01"', places=[document.place(path)], missing=("begin",))  # fmt: skip
    elif due <= (_date_of(job.get("start")) or begin):
        yield mistake(document, path, "out-of-range", "'deadline' is not after the start", "write a later date")


def _date_of(value: object) -> datetime | None:
    """The date that a text is, if it is one."""
    try:
        return parse_date(value) if isinstance(value, str) else None
    except ValueError:  # what is no date of the calendar is told where it stands
        return None


def _measured(data: dict[str, Any], job: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """The measured tier wants something measured."""
    asked = job.get("estimator", data.get("estimator"))
    if asked != "measured" or job.get("mfu") or "step_time" in job:
        return
    path: Steps = ("training", i, "estimator") if "estimator" in job else ("estimator",)
    name = f"training[{i}]"
    yield mistake(document, path, "missing-field", f"'estimator' is measured, but {name} gives nothing measured",
                  'add "mfu: {h100-sxm-80gb: 42 %}" or step_time, or write analytic')  # fmt: skip


def _analytic_alone(data: dict[str, Any], job: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """Keys that only the analytic tier acts on must not be ignored by another."""
    model = job.get("model")
    if isinstance(model, dict) and "parameters" in model:
        why, hint = "only the size of its model is known", "name a preset or a config.json"
    elif job.get("estimator", data.get("estimator")) == "rule":
        why, hint = "its estimator is rule", "write estimator: analytic"
    elif job.get("mfu"):
        why, hint = "its mfu is measured", "give step_time instead of mfu, or leave mfu out"
    else:
        return
    for key in ("lora", "offload", "gradient_compression"):
        if key in job:
            yield mistake(document, ("training", i, key), "conflict", f"'{key}' does not act: {why}",
                          f"{hint}, or leave {key} out")  # fmt: skip


_WHERE = "write step_time: {measured: 9.7 s, shape: dgx-h100, count: 8}"


def _step_time(data: dict[str, Any], job: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """A measured step time says nothing without the machines that it was measured on."""
    given, hardware = job.get("step_time"), data.get("hardware")
    if given is None:
        return
    owned = hardware.get("owned") if isinstance(hardware, dict) else None
    path: Steps = ("training", i, "step_time")
    here = [key for key in ("shape", "count") if isinstance(given, dict) and key in given]
    one = isinstance(owned, list) and len(owned) == 1
    if here == ["shape"] or (here == ["count"] and not one):
        other = "count" if here == ["shape"] else "shape"
        yield mistake(document, path, "missing-field", f"'{other}' is missing in step_time", _WHERE,
                      missing=(other,))  # fmt: skip
    elif not here and not one:
        yield mistake(document, path, "missing-field", "'step_time' does not say where it was measured", _WHERE,
                      missing=("shape", "count"))  # fmt: skip


def _spot(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    """Spot offers say nothing without a rate at which they are taken away."""
    hardware = data.get("hardware")
    if not isinstance(hardware, dict) or "spot" in hardware:
        return
    pricing = hardware.get("pricing")
    if pricing == "spot" or (isinstance(pricing, list) and "spot" in pricing):
        yield mistake(document, ("hardware", "pricing"), "missing-field", "'spot' is missing in hardware",
                      'add "spot: {interruptions: 0.05 /h}", how often a shape is taken away',
                      missing=("spot",))  # fmt: skip


_PARTS_OF_A_PRICE = ("capital", "power", "staff")


def _owned(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    """What is owned has one price, or the parts of one; what was paid for it counts once."""
    hardware = data.get("hardware")
    own = isinstance(hardware, dict) and (hardware.get("owned") or hardware.get("contracts"))
    if isinstance(hardware, dict) and hardware.get("kinds") in ("owned", ["owned"]) and not own:
        yield mistake(document, ("hardware", "kinds"), "missing-field",
                      "'owned' is missing in hardware: kinds leaves nothing to rent",
                      'add "owned:" with a shape, a count and a price, or leave kinds out',
                      missing=("owned",))  # fmt: skip
    for i, owned in _mappings(hardware if isinstance(hardware, dict) else {}, "owned"):
        path: Steps = ("hardware", "owned", i)
        parts = [key for key in _PARTS_OF_A_PRICE if key in owned]
        if "price" not in owned and not parts:
            yield mistake(document, path, "missing-field", "'price' is missing in hardware.owned",
                          'add "price: $9.80/h", or its parts: capital, power, staff', missing=("price",))  # fmt: skip
        if "price" in owned and parts:
            places = [document.key_place((*path, one)) for one in ("price", *parts)]
            given = " and ".join(f"'{one}'" for one in ("price", *parts))
            yield mistake(document, (*path, "price"), "conflict", f"{given} are all given",
                          f"keep price alone, or {' and '.join(parts)} without it", places=places)  # fmt: skip
        if "capital" in owned and "sunk" in owned:
            places = [document.key_place((*path, one)) for one in ("capital", "sunk")]
            yield mistake(document, (*path, "sunk"), "conflict", "'capital' and 'sunk' are both given",
                          "what was paid for it counts once: capital within the hourly cost, sunk beside the total",
                          places=places)  # fmt: skip


def _demand(fleet: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """A trace says everything; else a rate, and lengths or a histogram."""
    required = [] if "profile" in fleet else ["model"]
    if "trace" in fleet:
        for key in (
            "qpm",
            "requests",
            "users",
            "input_tokens",
            "output_tokens",
            "histogram",
            "profile",
            "load_profile",
        ):
            yield from _exclusive(fleet, i, document, "trace", key, f"leave {key} out: the trace says it")
    else:
        required += [] if fleet.keys() & {"requests", "users", "think_time"} else ["qpm"]
        required += ["histogram"] if "profile" in fleet else []
        why = "leave regions out: the profile says which machines there are"
        yield from _exclusive(fleet, i, document, "profile", "regions", why)
        required += [] if {"histogram", "profile"} & fleet.keys() else ["input_tokens", "output_tokens"]
        yield from _exclusive(fleet, i, document, "qpm", "requests", "keep one: qpm is a minute's, requests a second's")
        for key in ("qpm", "requests"):
            yield from _exclusive(
                fleet, i, document, key, "users", f"keep one: without {key} the rate follows from users"
            )
        for key in ("input_tokens", "output_tokens"):
            yield from _exclusive(fleet, i, document, "histogram", key, f"leave {key} out: the histogram says it")
    for key in required:
        if key not in fleet:
            yield mistake(document, ("serving", i), "missing-field", f"'{key}' is missing in serving",
                          f'add "{key}: {_DEMAND_EXAMPLES[key]}"', missing=(key,))  # fmt: skip


_DEMAND_EXAMPLES = {"model": "llama-3.1-70b", "qpm": 600, "input_tokens": 1500, "output_tokens": 400,
                    "histogram": "workload.csv"}  # fmt: skip


def _users(data: dict[str, Any], fleet: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """Users send what the replicas' response times let them: both must be known, of whole requests taken together."""
    for key, other, example in (("users", "think_time", "30 s"), ("think_time", "users", "2000")):
        if key in fleet and other not in fleet:
            yield mistake(document, ("serving", i), "missing-field", f"'{other}' is missing in serving: users and "
                          "think_time go together", f'add "{other}: {example}"', missing=(other,))  # fmt: skip
    if "users" not in fleet:
        return
    path: Steps = ("serving", i)
    unknown = "no response time is known with it, and what users send follows from that"
    given = {
        "throughput": ("throughput" in fleet, unknown, "leave it out"),
        "profile": ("profile" in fleet, unknown, "name a model in place of it"),
        "model": (isinstance(fleet.get("model"), dict) and "parameters" in fleet["model"],
                  "no response time is known of a bare size", "name a preset or a config.json"),
        "estimator": (fleet.get("estimator") in ("rule", "measured"), unknown, "write estimator: analytic"),
        "arrival_variability": ("arrival_variability" in fleet, "users who think send at random", "leave it out"),
        "integer_slices": (fleet.get("integer_slices") is True, "a user sends requests of all kinds", "leave it out"),
        "disaggregated": (fleet.get("disaggregated", False) not in (False, "false"),
                          "what users send to pools is not worked out", "leave it out"),
    }  # fmt: skip
    for key, (wrong, why, hint) in given.items():
        if wrong:
            yield mistake(document, (*path, key), "conflict", f"'{key}' does not go with users: {why}",
                          f"{hint}, or give a rate: qpm")  # fmt: skip
    if data.get("estimator") in ("rule", "measured") and "estimator" not in fleet:
        yield mistake(document, ("estimator",), "conflict", f"'estimator' does not go with the users of serving[{i}]: "
                      f"{unknown}", "write estimator: analytic in the fleet, or give a rate: qpm")  # fmt: skip


def _autoscaling(fleet: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """Replicas follow a load over time; without one the time to start counts where availability asks for repairs."""
    if fleet.get("autoscaling") is not None and not fleet.keys() & {"load_profile", "trace", "availability"}:
        yield mistake(document, ("serving", i, "autoscaling"), "conflict",
                      "'autoscaling' does not act: there is no load over the day to follow",
                      "name a load_profile or a trace, or leave autoscaling out")  # fmt: skip


def _exclusive(fleet: dict[str, Any], i: int, document: Document, one: str, other: str, hint: str) -> Iterator[Mistake]:
    if one in fleet and other in fleet:
        places = [document.key_place(("serving", i, key)) for key in (one, other)]
        yield mistake(document, ("serving", i, other), "conflict", f"'{one}' and '{other}' are both given", hint,
                      places=places)  # fmt: skip


_RATE_ONLY = ("prefix_cached", "speculative", "arrival_variability")


def _throughput(fleet: dict[str, Any], i: int, document: Document) -> Iterator[Mistake]:
    """What is measured wants a figure, and a given figure leaves nothing to what changes a prediction."""
    if fleet.get("estimator") == "measured" and "throughput" not in fleet and "profile" not in fleet:
        yield mistake(document, ("serving", i, "estimator"), "missing-field",
                      "'estimator' is measured, but no throughput is given",
                      'add "throughput: 2100 tokens/s" (of one device), or write analytic')  # fmt: skip
    for key in _RATE_ONLY if "throughput" in fleet else ():
        if fleet.get(key, 1) != 1:
            yield mistake(document, ("serving", i, key), "conflict", f"'{key}' does not act: throughput is given",
                          f"leave {key} out if it was on when you measured, or leave throughput out")  # fmt: skip
    if "spare_replicas" in fleet and "availability" in fleet:
        places = [document.key_place(("serving", i, key)) for key in ("spare_replicas", "availability")]
        yield mistake(document, ("serving", i, "availability"), "conflict",
                      "'spare_replicas' and 'availability' are both given", "keep one of the two",
                      places=places)  # fmt: skip


def _names(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    seen: dict[str, tuple[str, int]] = {}
    for section in ("training", "serving"):
        for i, item in _mappings(data, section):
            name = item.get("name")
            if not isinstance(name, str):
                continue
            if name in seen:
                places = [document.place((*seen[name], "name")), document.place((section, i, "name"))]
                yield mistake(document, (section, i, "name"), "duplicate-name", f"two workloads are named '{name}'",
                              "give each workload a name of its own", places=places)  # fmt: skip
            seen.setdefault(name, (section, i))


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
