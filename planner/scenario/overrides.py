"""Settings put over a scenario: `overrides:` of the file and --set of the command line.

A path names list items by index or by their `name`: training.pretrain-8b.deadline. Trees are
never changed in place (aliases share nodes); the way to a new value is copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from planner import units
from planner.errors import InputError, Place, Problem
from planner.scenario.mistakes import LOADER_KEYS, home_of
from planner.scenario.schema import Scenario
from planner.spelling import closest
from planner.yamlfile import Node, Source, Steps, next_step, parse_yaml

_LISTS = ("training", "serving")
_TOP = [info.alias or name for name, info in Scenario.model_fields.items()]


def parse_setting(setting: str) -> tuple[str, Node, Node]:
    """A --set text, "path=value", as path, key node and value node; the value is YAML."""
    path, equals, value = setting.partition("=")
    source = Source(setting, "--set", offset=len(path) + 1)
    if not equals or not path.strip():
        raise _bad(_whole(setting), f"'{setting[:80]}' sets nothing", "write PATH=VALUE: limits.budget=$60000")
    root = parse_yaml(value, "--set", source=source).root
    return path.strip(), _whole(setting, len(path)), root


def _whole(text: str, width: int = 0) -> Node:
    return Node(text, Source(text, "--set"), 0, 0, width or len(text) or 1)


def override(root: Node, path: str, key: Node, value: Node) -> tuple[Node, Steps]:
    """The tree with one value put at a path, and the path as steps; the same under another key gives way to it.

    Parameters
    ----------
    root
        The scenario as it was written, or as earlier overrides left it.
    path
        Where to, as it was written: "training.pretrain-8b.deadline".
    key
        Where the path itself was written; mistakes are shown there.
    value
        What to put there; a text with a plus before it, "+7d", is added to the quantity that is there.

    Raises
    ------
    InputError
        The path leads nowhere, or what is there is no quantity that so much can be added to.
    """
    steps = _resolve(root, path, key)
    if isinstance(value.value, str) and value.value.startswith("+"):
        value = value.replaced(_more(_at(root, steps), path, key, value))
    *above, last = steps
    other = (*above, _SAID_BY_TWO.get((steps[0], last), ""))
    if value.value is not None and _at(root, other) is not None:
        root = _graft(root, other, key, value.replaced(None))
    return _graft(root, steps, key, value), steps


# the two keys under which one thing is said, of which a file has one
_SAID_BY_TWO: dict[tuple[str | int, str | int], str] = {
    ("training", "deadline"): "hours", ("training", "hours"): "deadline",
    ("serving", "qpm"): "requests", ("serving", "requests"): "qpm",
}  # fmt: skip


def _at(root: Node, steps: Steps) -> Node | None:
    """What stands at a path; None where nothing does."""
    node: Node | None = root
    for step in steps:
        if isinstance(step, int):
            node = None if node is None else node.value[step]
        else:
            node = node.value.get(step) if node is not None and type(node.value) is dict else None
    return node


def _more(there: Node | None, path: str, key: Node, value: Node) -> str:
    """A quantity that is more than what stands there by so much: "+7d" beside "30 days" is "37 days"."""
    added = value.value[1:].strip()
    for parse, text in _SUMS:
        try:
            whole = parse(there.value if there is not None else None) + parse(added)
        except units.UnitError:
            continue
        return text(whole)
    now = "nothing" if there is None else f"'{there.value}'"
    raise _bad(key, f"'{path}' is {now}, to which '{added[:40]}' cannot be added", "write the whole value")


_SUMS: tuple[tuple[Callable[[object], float], Callable[[float], str]], ...] = (
    (units.parse_duration, lambda whole_s: f"{whole_s / 86400:.12g} days"),
    (units.parse_money, lambda microusd: f"${microusd / 1e6:.12g}"),
    (units.parse_tokens, lambda count: f"{count:.12g}"),
)


def _resolve(root: Node, path: str, key: Node) -> Steps:
    """A written path as steps; `InputError` when it leads nowhere."""
    if not path or len(path) > 300:
        raise _bad(key, "the path is empty or too long", "write a path such as training.NAME.deadline")
    steps: list[str | int] = []
    node: Node | None = root
    rest = path
    while rest:
        if node is not None and type(node.value) is list:
            index, rest = _item(node, rest, steps, key)
            steps.append(index)
            node = node.value[index]
            continue
        step, rest = next_step(node, rest)
        if isinstance(step, int):
            raise _bad(key, f"'{path}' takes item {step} of something that is no list", "name the field instead")
        if not steps and (step not in _TOP or step in LOADER_KEYS):
            raise _bad_home(root, key, path, step)
        if node is not None and type(node.value) is not dict and node.value is not None:
            raise _bad(key, f"'{path}' does not exist: {'.'.join(map(str, steps))} has no fields", "shorten the path")
        steps.append(step)
        node = node.value.get(step) if node is not None and type(node.value) is dict else None
        if len(steps) == 1 and step in _LISTS and node is None and rest:
            raise _bad(key, f"'{path}' does not exist: there is no {step} workload", f"add it under {step}:")
    return tuple(steps)


def _bad_home(root: Node, key: Node, path: str, step: str) -> InputError:
    """That a path begins with no section; one that is a field of a section is told where it stands."""
    error = _nowhere(key, path, step, _TOP)
    home = home_of(step)
    if home in _LISTS and (there := root.value.get(home)) is not None and type(there.value) is list:
        meant = [f"{home}.{name}.{path}" for name in _names(there)]
    else:
        meant = [f"{home}.{path}"] if home in ("hardware", "limits") else []
    hint = f"did you mean {' or '.join(meant[:3])}?"
    return _bad(key, error.problems[0].message, hint) if meant else error


def _item(node: Node, rest: str, steps: Sequence[str | int], key: Node) -> tuple[int, str]:
    """The list item that a path goes on with: [0], 0, or its name."""
    match = re.match(r"(?:\[(\d{1,6})\]|(\d{1,6})(?![^.\[]))\.?", rest)
    names = _names(node)
    fitting = [name for name in names if rest == name or rest.startswith((f"{name}.", f"{name}["))]
    if fitting:
        name = max(fitting, key=len)
        return names[name], rest[len(name) :].removeprefix(".")
    if match and int(match.group(1) or match.group(2)) < len(node.value):
        return int(match.group(1) or match.group(2)), rest[match.end() :]
    where = ".".join(str(step) for step in steps)
    step = rest.split(".")[0]
    raise _nowhere(
        key,
        f"{where}{'.' * (not rest.startswith('['))}{rest}",
        step,
        list(names) or [f"[{i}]" for i in range(min(len(node.value), 5))],
    )


def _names(node: Node) -> dict[str, int]:
    names: dict[str, int] = {}
    for i, item in enumerate(node.value):
        if type(item.value) is dict and "name" in item.value and isinstance(item.value["name"].value, str):
            names.setdefault(item.value["name"].value, i)
    return names


def _nowhere(key: Node, path: str, step: str, known: Sequence[str]) -> InputError:
    near = closest(step[:100], known)
    hint = f"did you mean '{near[0]}'?" if near else "there is: " + ", ".join(known) if known else "the list is empty"
    return _bad(key, f"'{path[:120]}' does not exist in the scenario: no '{step[:60]}'", hint)


def _bad(key: Node, message: str, hint: str) -> InputError:
    return InputError(Problem(reference="bad-reference", message=message, places=(key.place,), hint=hint))


def _graft(node: Node | None, steps: Steps, key: Node, value: Node) -> Node:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        assert node is not None
        items = list(node.value)
        items[step] = _graft(items[step], rest, key, value)
        return node.replaced(items)
    values: dict[str, Node] = dict(node.value) if node is not None and type(node.value) is dict else {}
    keys: dict[str, Node] = dict(node.keys or {}) if node is not None else {}
    values[step] = _graft(values.get(step), rest, key, value)
    if step not in keys or not rest:
        keys[step] = key
    return (node or key).replaced(values, keys)


def merge(below: Node, above: Node) -> Node:
    """Two trees as one: mappings are merged, for anything else the tree above wins."""
    if type(below.value) is not dict or type(above.value) is not dict:
        return above
    values, keys = dict(below.value), dict(below.keys or {})
    for key, node in above.value.items():
        values[key] = merge(values[key], node) if key in values else node
        keys[key] = (above.keys or {})[key]
    return above.replaced(values, keys)


def without(root: Node, *names: str) -> Node:
    """A mapping less some keys."""
    values = {key: node for key, node in root.value.items() if key not in names}
    return root.replaced(values, root.keys)


def case_place(case: str) -> Place:
    """Where a --case stands."""
    return Place(file="--case", line=1, column=1, text=case, width=max(1, len(case)))
