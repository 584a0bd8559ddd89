"""From a scenario file to a checked `Scenario`: includes, overrides, --set, validation; and its cases of `uncertainty`.

Every problem of the file is collected and raised at once; every value keeps the place where it was written, in the
file, in an included file, in an override or on the command line. Keys that plan/v1 defines and this version does not
act on yet are refused when used, never ignored (`NOT_YET`).

A case is a scenario of its own with the probability that it has. Whatever is left of the probability belongs to the
scenario as it is written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from planner.carriers import dataclass
from planner.errors import InputError, Problem
from planner.files import StrPath, contained_path, read_text
from planner.scenario.checks import AS_WRITTEN, cross_checks, probability, timing_problems, uncertainty_problems
from planner.scenario.mistakes import Mistake, empty_unknown, from_pydantic, mistake, one_each
from planner.scenario.money_fields import rates_of
from planner.scenario.overrides import case_place, merge, override, parse_setting, without
from planner.scenario.schema import Scenario
from planner.scenario.serving_fleet import read_demand
from planner.scenario.shipped import PREFIX, find_scenario, folder_of
from planner.spelling import closest
from planner.units import Rates
from planner.yamlfile import BAD, MAX_BYTES, Document, Node, Steps, parse_yaml


def _always(value: object) -> bool:
    return True


def _name_other_than(*accepted: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value not in accepted


def _structured(value: object) -> bool:
    return isinstance(value, dict | list)


@dataclass(frozen=True, slots=True)
class NotYet:
    """A key ("[]" stands for every item of a list), when it counts as used, and what to do instead."""

    path: str
    instead: str
    used: Callable[[object], bool] = _always


NOT_YET = (
    NotYet("currency", "write the rate, currency: {EUR: 1.08, as_of: 2026-11-01}", _name_other_than("USD")),
)  # fmt: skip


def not_yet(data: dict[str, Any], document: Document) -> Iterator[Mistake]:
    """Every use of a key that is not acted on yet."""
    for entry in NOT_YET:
        for path, value in _matches(data, entry.path.split("."), ()):
            if value is not BAD and entry.used(value):
                what = "'" + ".".join(str(step) for step in path if isinstance(step, str)) + "'"
                if entry.used is not _always and not _structured(value):
                    what += f" other than {_default(entry)}"
                yield mistake(document, path, "not-yet", f"{what} is part of plan/v1 but not implemented yet",
                              entry.instead, places=[document.key_place(path)])  # fmt: skip


def _default(entry: NotYet) -> str:
    for value in ("rule", "USD", "none", False, "fixed", 1, "on_demand"):
        if not entry.used(value):
            return "false" if value is False else str(value)
    return "a plain number"


def _matches(value: Any, parts: list[str], path: Steps) -> Iterator[tuple[Steps, Any]]:
    if not parts:
        yield path, value
        return
    key, many = parts[0].removesuffix("[]"), parts[0].endswith("[]")
    if not isinstance(value, dict) or key not in value:
        return
    below, path = value[key], (*path, key)
    if not many:
        yield from _matches(below, parts[1:], path)
    elif isinstance(below, list):
        for i, item in enumerate(below):
            yield from _matches(item, parts[1:], (*path, i))
    elif len(parts) == 1:  # one value where a list may stand
        yield from _matches(below, [], path)


MAX_INCLUDES = 16
MAX_OVERRIDES = 200
# Overrides that no case asks for are checked too, while that costs less than this many values.
_MAX_TRIAL_NODES = 200_000


def load_scenario(
    path: StrPath | Mapping[str, Any], *, settings: Sequence[str] = (), case: str | None = None
) -> Scenario:
    """Read, resolve and check a scenario file, or one that ships by its name; `InputError` holds every problem found.

    Parameters
    ----------
    path
        A file; or a name: of NAME.yaml here, else of a scenario that ships; or what would stand in one.
    settings
        Texts of --set, "training.pretrain-8b.deadline=14 days", applied last.
    case
        Name of a list of overrides of the file's `scenarios:`; None: the scenario as it is.

    Raises
    ------
    InputError
        The file cannot be read, or it, a setting, or a file that it names is wrong.
    """
    if isinstance(path, Mapping):
        text = json.dumps(dict(path), indent=1, ensure_ascii=False, default=str)
        return parse_scenario(text, file="scenario.json", settings=settings, case=case)
    problems: list[Problem] = []
    found = find_scenario(path)
    document = parse_yaml(read_text(found.path, limit_bytes=MAX_BYTES), found.file, problems=problems)
    return _Loading(document, problems).scenario(tuple(settings), case)


def parse_scenario(
    text: str, *, file: str = "scenario.yaml", settings: Sequence[str] = (), case: str | None = None
) -> Scenario:
    """As `load_scenario`, from a text; `file` names it and says where relative paths start.

    Parameters
    ----------
    text
        YAML, so that JSON is fine as well.
    file
        Name in messages; paths in the text start at its folder. It is not opened.
    settings
        Texts of --set, "training.pretrain-8b.deadline=14 days", applied last.
    case
        Name of a list of overrides of the text's `scenarios:`; None: the scenario as it is.

    Raises
    ------
    InputError
        The text, a setting, or a file that it names is wrong; holds every problem found.
    """
    problems: list[Problem] = []
    document = parse_yaml(text, file, problems=problems)
    return _Loading(document, problems).scenario(tuple(settings), case)


def with_settings(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """The same question with more --set texts applied, "training.pretrain-8b.deadline=14 days"; checked anew."""
    loading = _Loading(scenario.document)
    root = scenario.document.root
    for setting in settings:
        root = loading._set(root, setting)
    return loading._validated(root, scenario.case, (*scenario.settings, *settings))


@dataclass
class _Loading:
    """One load: the document and what was found wrong with it so far."""

    document: Document
    problems: list[Problem] = field(default_factory=list)
    tried: int = 0  # values that checks of unused overrides have cost

    @property
    def folder(self) -> str:
        return folder_of(self.document.file)

    def scenario(self, settings: tuple[str, ...], case: str | None) -> Scenario:
        root = self._included(self._mapping(self.document), 0)
        overrides = self._overrides(root)
        cases = self._cases(root, overrides)
        base = without(root, "overrides", "scenarios", "include")
        chosen = self._chosen(case, cases)
        for name in overrides:
            if name not in chosen:
                self._try(base, overrides[name])
        for settings_of_case in _settings_of_cases(root):
            self._try(base, settings_of_case)
        resolved = base
        for name in chosen:
            for path, key, value in overrides.get(name, ()):
                resolved = self._override(resolved, path, key, value)
        for setting in settings:
            resolved = self._set(resolved, setting)
        return self._validated(resolved, case, settings)

    def _mapping(self, document: Document) -> Node:
        root = document.root
        if type(root.value) is not dict:
            what = "is empty" if root.value is None else "holds no mapping of fields"
            problem = Problem(reference="wrong-type", message=f"the scenario {what}", places=(root.place,),
                              hint='start with "schema: plan/v1", or run plan init')  # fmt: skip
            raise InputError(*self.problems, problem)
        _demand_no_answer(root)
        return root

    # ---- includes

    def _included(self, root: Node, depth: int) -> Node:
        """The tree over those that it includes."""
        if "include" not in root.value:
            return root
        below: Node | None = None
        for entry in _items(root.value["include"]):
            if entry.value is BAD:
                continue
            try:
                node = self._include(entry, depth)
            except InputError as error:
                self.problems += [_placed(problem, entry) for problem in error.problems]
                continue
            below = merge(below, node) if below else node
        return merge(below, root) if below else root

    def _include(self, entry: Node, depth: int) -> Node:
        if not isinstance(entry.value, str):
            raise _refusal("wrong-type", "include wants the path of a file", entry, "write include: base.yaml")
        if depth >= MAX_INCLUDES:
            raise _refusal("bad-reference", "includes go around in a circle", entry, "drop one of them")
        folder = self.folder or "."
        target = contained_path(folder, entry.value)
        shown = os.path.normpath(os.path.join(self.folder, entry.value))  # noqa: PTH118 - as the user writes paths
        text = read_text(target, limit_bytes=MAX_BYTES)
        document = parse_yaml(text, shown, problems=self.problems)
        return self._included(self._mapping(document), depth + 1)

    # ---- overrides and cases

    def _overrides(self, root: Node) -> dict[str, list[tuple[str, Node, Node]]]:
        """Name -> settings of each override of the file."""
        found: dict[str, list[tuple[str, Node, Node]]] = {}
        for name, _, node in self._entries(root, "overrides"):
            if type(node.value) is dict:
                keys = node.keys or {}
                found[name] = [(path, keys[path], value) for path, value in node.value.items()]
            elif node.value is not BAD:
                self._note("wrong-type", f"the override '{name}' wants paths and values", node,
                           f"write {name}: {{training.NAME.deadline: 14 days}}")  # fmt: skip
        return found

    def _cases(self, root: Node, overrides: dict[str, Any]) -> dict[str, list[str]]:
        """Name -> overrides of each case of the file."""
        found: dict[str, list[str]] = {}
        for name, _, node in self._entries(root, "scenarios"):
            found[name] = []
            for item in _items(node):
                if isinstance(item.value, str) and item.value in overrides:
                    found[name].append(item.value)
                elif item.value is not BAD:
                    self._note("bad-reference", f"the case '{name}' names '{_short(item)}', which is no override",
                               item, _suggest(_short(item), list(overrides)))  # fmt: skip
        return found

    def _entries(self, root: Node, section: str) -> Iterator[tuple[str, Node, Node]]:
        node = root.value.get(section)
        if node is None or node.value is None or node.value is BAD:
            return
        if type(node.value) is not dict:
            self._note("wrong-type", f"{section} wants a mapping of names", node, "write name: …, one a line")
        elif len(node.value) > MAX_OVERRIDES:
            self._note("too-large", f"{section} has more than {MAX_OVERRIDES} names", node, "split the file")
        else:
            for name, below in node.value.items():
                yield name, (node.keys or {})[name], below

    def _chosen(self, case: str | None, cases: dict[str, list[str]]) -> list[str]:
        if case is None:
            return []
        if case not in cases:
            self.problems.append(
                Problem(reference="bad-reference", message=f"the scenario has no case '{case[:80]}'",
                        places=(case_place(case),), hint=_suggest(case, list(cases)))
            )  # fmt: skip
        return cases.get(case, [])

    def _override(self, root: Node, path: str, key: Node, value: Node) -> Node:
        try:
            return override(root, path, key, value)[0]
        except InputError as error:
            self.problems += error.problems
            return root

    def _set(self, root: Node, setting: str) -> Node:
        try:
            path, key, value = parse_setting(setting)
        except InputError as error:
            self.problems += error.problems
            return root
        return self._override(root, path, key, value)

    def _try(self, base: Node, settings: list[tuple[str, Node, Node]]) -> None:
        """Check an override that is not in use: its paths exist, its values have the right form."""
        root, touched = base, []
        for path, key, value in settings:
            try:
                root, steps = override(root, path, key, value)
            except InputError as error:
                self.problems += error.problems
                continue
            touched.append(steps)
        data = _plain(root)
        self.tried += _count(data)
        if self.tried > _MAX_TRIAL_NODES:
            return
        _, mistakes = self._modelled(data, Document(root, self.document.file))
        self.problems += one_each(m for m in mistakes if any(_related(m.path, steps) for steps in touched))

    # ---- validation

    def _validated(self, root: Node, case: str | None, settings: tuple[str, ...]) -> Scenario:
        document = Document(root, self.document.file)
        data = _plain(root)
        scenario, mistakes = self._modelled(data, document)
        mistakes += [*empty_unknown(document), *cross_checks(data, document)]
        wrong = [m.path for m in mistakes if m.path and not m.missing]
        mistakes += [m for m in not_yet(data, document) if not any(_related(m.path, path) for path in wrong)]
        problems = list(dict.fromkeys(self.problems + one_each(mistakes)))
        if scenario is not None and not problems:
            problems = _read_demand(scenario, document) + timing_problems(scenario, document)
            problems += uncertainty_problems(scenario, document)
        if problems or scenario is None:
            raise InputError(*sorted(problems, key=self._order))
        scenario._document = document
        scenario._again = with_settings
        scenario._resolved = data
        scenario._case = case
        scenario._settings = settings
        return scenario

    def _modelled(self, data: dict[str, Any], document: Document) -> tuple[Scenario | None, list[Mistake]]:
        # Where the rates are wrong that one key is the mistake, not every price after it.
        try:
            given = data.get("currency", "USD")
            rates: Rates | None = rates_of(given) if given != "EUR" else None
        except PydanticCustomError:
            rates = None
        context = {"folder": self.folder, "rates": rates}
        try:
            return Scenario.model_validate(data, context=context), []
        except ValidationError as error:
            return None, from_pydantic(error.errors(include_url=False), document)

    def _note(self, reference: str, message: str, node: Node, hint: str) -> None:
        self.problems.append(Problem(reference=reference, message=message, places=(node.place,), hint=hint))

    def _order(self, problem: Problem) -> tuple[bool, str, int, int]:
        place = problem.places[-1] if problem.places else self.document.root.place
        return place.file != self.document.file, place.file, place.line, place.column


def _read_demand(scenario: Scenario, document: Document) -> list[Problem]:
    """Read the files of every fleet and hand it its traffic; what is wrong with them."""
    problems = []
    for i, fleet in enumerate(scenario.serving):
        demand = read_demand(fleet)
        problems += [_placed(problem, document.nearest(("serving", i, key))[0]) for key, problem in demand.problems]
        fleet._traffic, fleet._rates = demand.traffic, demand.rates
    return problems


def _settings_of_cases(root: Node) -> Iterator[list[tuple[str, Node, Node]]]:
    """The settings of every case of `uncertainty`, to be tried like an override that is not in use."""
    for entry in _items(root.value["uncertainty"]) if "uncertainty" in root.value else ():
        node = entry.value.get("set") if type(entry.value) is dict else None
        if node is not None and type(node.value) is dict:
            yield [(path, (node.keys or {})[path], value) for path, value in node.value.items()]


def _items(node: Node) -> list[Node]:
    if type(node.value) is list:
        return node.value
    return [] if node.value is None else [node]


def _plain(node: Node) -> Any:
    """Plain data, less the keys that are left empty: an empty value is as good as none."""
    if type(node.value) is dict:
        return {key: _plain(below) for key, below in node.value.items() if below.value is not None}
    if type(node.value) is list:
        return [_plain(below) for below in node.value]
    return node.value


def _count(data: Any) -> int:
    if isinstance(data, dict):
        return 1 + sum(map(_count, data.values()))
    return 1 + sum(map(_count, data)) if isinstance(data, list) else 1


def _related(path: Steps, other: Steps) -> bool:
    """Whether one path leads through the other."""
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _short(node: Node) -> str:
    return str(node.value)[:60] if isinstance(node.value, str | int | float) else "a list or mapping"


def _suggest(word: str, known: list[str]) -> str:
    near = closest(word[:100], known)
    if near:
        return f"did you mean '{near[0]}'?"
    return "there is: " + ", ".join(known[:20]) if known else "the file defines none"


def _demand_no_answer(root: Node) -> None:
    """Refuse a plan, a frontier or a report where the scenario behind it is wanted: with one line, not one a key."""
    schema = root.value["schema"].value if "schema" in root.value else ""
    answer = re.fullmatch(r"plan/([a-z-]+)/v\d+", schema) if isinstance(schema, str) else None
    if answer is None:
        return
    file = root.value["scenario_file"].value if "scenario_file" in root.value else ""
    behind = f"its scenario is {file.removeprefix(PREFIX)}" if isinstance(file, str) and file else "name its scenario"
    of_plans, noun = "", f"an answer of the kind '{answer[1][:40]}'"
    if answer[1] == "result":
        of_plans, noun = "; plan explain, report, export and verify take plans", "a plan"
    message = f"this is {noun}, and a scenario is wanted"
    raise _refusal("not-a-scenario", message, root.value["schema"], behind + of_plans)


def _refusal(reference: str, message: str, node: Node, hint: str) -> InputError:
    return InputError(Problem(reference=reference, message=message, places=(node.place,), hint=hint))


def _placed(problem: Problem, node: Node) -> Problem:
    """A problem of a file that is named in another: shown where it is named, unless it has a line of its own."""
    if problem.places and problem.places[0].line:
        return problem
    return Problem(reference=problem.reference, message=problem.message, places=(node.place,),
                   hint=problem.hint or "check the path")  # fmt: skip


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
