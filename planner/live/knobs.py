"""What of a scenario can be turned on the page, and the --set texts of what was turned.

A change is a path and a text, as on the command line; a list of names is one as well. Only `price` is no path: prices
go up or down by a share through `hardware.discounts`, on top of what stands there.

A changed scenario is saved as a file of its own, beside the one that it was made from; no file is ever replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner import files, units
from planner.carriers import dataclass
from planner.errors import InputError, OutputError, Place, Problem, UsageError
from planner.report.escape import file_stem
from planner.scenario.load import parse_scenario, with_settings
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob
from planner.scenario.shipped import PREFIX
from planner.yamlfile.writing import block_text, flow_text

Changes = Mapping[str, str | list[str]]
PRICE, DISCOUNTS, DENY, PRICING = "price", "hardware.discounts", "hardware.deny", "hardware.pricing"
MOST_CHANGES, LONGEST_PATH, LONGEST_TEXT, MOST_NAMES = 64, 300, 5_000, 500
_AMOUNT = re.compile(r"([^\d\s-]*)(\d+(?:\.\d+)?)(\s*[^\d]*)")  # what stands before a number, the number, its unit
_SPREAD = 4.0  # a slider goes from a quarter to four times what is asked for
_TARGETS = {"ttft_p95": "first token within, p95", "tpot_p95": "a further token within, p95"}
_METRICS = {"ttft": "first token within", "tpot": "a further token within"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A range of numbers, and what is written around one."""

    low: float
    high: float
    step: float
    number: float
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One field of the page."""

    path: str  # as of --set
    label: str
    text: str  # as the scenario has it; "" where it says nothing
    example: str = ""
    slider: Slider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Something on or off."""

    path: str
    label: str
    on: bool
    texts: tuple[str, str]  # what is set for off and on


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Knobs that belong together."""

    title: str
    knobs: Sequence[Knob]
    switches: Sequence[Switch] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Devices that may be used, each to be ticked."""

    ids: Sequence[str]
    denied: Sequence[str]  # patterns that the scenario denies already


def groups_of(scenario: Scenario) -> list[Group]:
    """The knobs of a scenario: of each workload, then those of all together."""
    raw = scenario.resolved
    found = [Group(title=job.name, knobs=_of_job(job, given)) for job, given in zip(scenario.training, _list(raw, 0))]
    found += [
        Group(title=fleet.name, knobs=_of_fleet(fleet, given)) for fleet, given in zip(scenario.serving, _list(raw, 1))
    ]
    return [*found, _of_all(scenario)]


def _list(raw: Mapping[str, Any], kind: int) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = raw.get(("training", "serving")[kind], [])
    return found


def _of_job(job: TrainingJob, given: Mapping[str, Any]) -> list[Knob]:
    deadline = "hours" if "hours" in given else "deadline"
    at = f"training.{job.name}."
    return [
        _knob(f"{at}{deadline}", deadline, given.get(deadline), "30 days"),
        _knob(f"{at}tokens", "tokens", given.get("tokens"), "20B"),
    ]


def _of_fleet(fleet: ServingFleet, given: Mapping[str, Any]) -> list[Knob]:
    at, found = f"serving.{fleet.name}.", []
    words = {"qpm": "requests a minute", "requests": "requests", "users": "users at once",
             "think_time": "time to think", "input_tokens": "prompt tokens",
             "output_tokens": "answer tokens"}  # fmt: skip
    for key, label in words.items():
        if isinstance(given.get(key), str | int | float):
            found.append(_knob(f"{at}{key}", label, given[key]))
    targets = dict(given.get("slo") or {})
    targets.pop("spread", None)
    for name in dict.fromkeys([*targets, *_TARGETS]):
        metric, _, percentile = name.partition("_")
        label = f"{_METRICS.get(metric, metric)}, {percentile}"
        if "profile" not in given or name in targets:
            found.append(_knob(f"{at}slo.{name}", label, targets.get(name), "1 s" if metric == "ttft" else "50 ms"))
    return found


def _of_all(scenario: Scenario) -> Group:
    raw = scenario.resolved
    limits, hardware = raw.get("limits") or {}, raw.get("hardware") or {}
    change = Slider(low=-50, high=50, step=1, number=0, after="%")
    knobs = [
        Knob(path=PRICE, label="prices, up or down", text="0%", example="+10%", slider=change),
        _confidence(raw.get("confidence")),
        *(_knob(f"limits.{key}", label, limits[key]) for key, label in _LIMITS.items() if key in limits),
    ]
    switches = []
    pricing = list(scenario.hardware.pricing)
    if not scenario.scheduled:
        without = [model for model in pricing if model != "spot"] or ["on_demand"]
        texts = (flow_text(without), flow_text([*without, "spot"]))
        switches.append(Switch(path=PRICING, label="spot machines too", on="spot" in pricing, texts=texts))
        lost = (hardware.get("spot") or {}).get("interruptions")
        knobs.append(_knob("hardware.spot.interruptions", "spot machines lost, of one", lost, "0.05 /h"))
    if len(scenario.serving) > 1:
        shared = ("false", "true")
        label = "fleets may share nodes"
        switches.append(
            Switch(path="hardware.share_nodes", label=label, on=scenario.hardware.share_nodes, texts=shared)
        )
    return Group(title="All of it", knobs=knobs, switches=switches)


_LIMITS = {"budget": "budget", "max_devices": "devices at most"}


def _confidence(given: object) -> Knob:
    text = str(given or "p90")
    number = float(text[1:]) if re.fullmatch(r"p[5-9]\d", text) else 90.0
    slider = Slider(low=50, high=99, step=1, number=number, before="p")
    return Knob(path="confidence", label="confidence", text=text, example="p90", slider=slider)


def _knob(path: str, label: str, given: object, example: str = "") -> Knob:
    text = "" if given is None else given if isinstance(given, str) else flow_text(given)
    return Knob(path=path, label=label, text=text, example=example or text, slider=slider_of(text))


def slider_of(text: str) -> Slider | None:
    """From a quarter to four times an amount, in steps of its second digit; None where it is no plain amount.

    Examples
    --------
    >>> slider_of("30 days")
    Slider(low=8.0, high=120.0, step=1.0, number=30.0, before='', after=' days')
    >>> slider_of("2027-01-01")
    """
    match = _AMOUNT.fullmatch(text)
    if match is None or float(match[2]) == 0:
        return None
    number = float(match[2])
    step = 10.0 ** (len(str(int(number))) - 2) if number >= 1 else 10.0 ** -(len(match[2]) - 2)
    step = max(step, 1.0) if number == int(number) and not match[3] else step  # what is counted is whole
    down, up = int((number - number / _SPREAD) / step), int((_SPREAD - 1) * number / step)
    low, high = (round(number + many * step, 9) for many in (-down, up))
    return Slider(low=low, high=high, step=step, number=number, before=match[1], after=match[3])


def devices_of(scenario: Scenario, used: Iterable[str]) -> Devices:
    """Devices on which something could run, by name; those that the scenario denies are not among them."""
    denied = list(scenario.hardware.deny)
    return Devices(ids=sorted(set(used)), denied=denied)


def settings_of(scenario: Scenario, changes: Changes) -> tuple[str, ...]:
    """The --set texts of what was turned, in the order of their paths.

    Parameters
    ----------
    scenario
        As it was at the start: prices go up and down from there.

    Raises
    ------
    InputError
        A change of prices cannot be read.
    UsageError
        There are too many changes, or one is too long.
    """
    if len(changes) > MOST_CHANGES:
        raise UsageError.of("too-many", f"{len(changes)} changes are more than {MOST_CHANGES}", hint="change the file")
    found = []
    for path, value in sorted(changes.items()):
        long = len(value) > (MOST_NAMES if isinstance(value, list) else LONGEST_TEXT)
        if long or len(path) > LONGEST_PATH or any(len(name) > LONGEST_PATH for name in value):
            raise UsageError.of("too-long", "a change is too long to be read here", hint="change the file")
        if path == PRICE:
            found.append(f"{DISCOUNTS}={flow_text(_discounts(scenario, str(value)))}")
        else:
            found.append(f"{path}={value if isinstance(value, str) else flow_text(value)}")
    return tuple(found)


def _discounts(scenario: Scenario, text: str) -> list[dict[str, Any]]:
    """The scenario's discounts with all prices changed by a share more: "+10%" is a discount of -10 %."""
    try:
        change = units.parse_change(text, field=PRICE)
    except units.UnitError as error:
        place = Place(file=PRICE, line=1, column=1, text=text, width=max(1, len(text)))
        problem = Problem(reference=error.reference, message=error.message, places=(place,), hint=error.hint)
        raise InputError(problem) from None
    return scenario.discounts_with(change)


def path_of(problem: Problem, changes: Changes) -> str:
    """The change that a problem speaks of; "" where it is of none."""
    for place in problem.places:
        for path in changes:
            written = DISCOUNTS if path == PRICE else path
            if place.file in (path, "--set") and (place.file == path or place.text.startswith(f"{written}=")):
                return path
    return ""


_FOLDER = "scenarios"


def default_name(scenario: Scenario) -> str:
    """llama-live.yaml."""
    return f"{file_stem(scenario.name)}-live.yaml"


def save(scenario: Scenario, changes: Changes, name: str) -> str:
    """Write the scenario with some changes; what was written, in words.

    Files that a scenario that ships names are copied with it: what is written is whole in this folder.

    Parameters
    ----------
    scenario
        As it was at the start; the new file goes into its folder, or into this one where it ships.
    changes
        As on the page.
    name
        Of the file, with or without its ending; what may not stand in a file name becomes a hyphen.

    Raises
    ------
    InputError
        The changes cannot be read, or the scenario would not be.
    UsageError
        There are too many changes, or one is too long.
    OutputError
        A file is there already, or it cannot be written.
    """
    changed = with_settings(scenario, settings_of(scenario, changes))
    shipped = scenario.file.startswith(PREFIX)
    folder = Path() if shipped else Path(scenario.file).parent
    stem = file_stem(name.removesuffix(".yaml").removesuffix(".yml"))
    target = folder / f"{stem}.yaml"
    if target.exists():
        hint = "save it under another name"
        raise OutputError.of("not-written", f"{target} is there already, and is not replaced", hint=hint)
    text = f"# {scenario.file}, changed by plan live\n{block_text({**changed.resolved, 'name': stem})}"
    beside = _named_files(changed) if shipped else {}
    for file, content in beside.items():
        files.write_text(file, content)
    parse_scenario(text, file=str(target))
    files.write_text(target, text)
    more = f", with {', '.join(beside)} that it names" if beside else ""
    return f"wrote {target}{more}: plan solve {target}"


def _named_files(scenario: Scenario) -> dict[str, str]:
    """Files beside the scenarios that ship, as far as a scenario names them and they are not here: name and text."""
    texts = set(_texts(scenario.resolved))
    found = [path for path in files.list_files(files.data_folder(_FOLDER)) if path.name in texts]
    return {path.name: files.read_text(path) for path in found if not Path(path.name).exists()}


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for below in value.values() for text in _texts(below)]
    if isinstance(value, list):
        return [text for below in value for text in _texts(below)]
    return [value] if isinstance(value, str) else []
