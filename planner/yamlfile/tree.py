"""A YAML file as a tree in which every value and key knows where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from planner.carriers import dataclass
from planner.errors import Place

Steps = tuple[str | int, ...]
TEXT_SHOWN = 100  # characters of a line that a place carries whole
PIECE_SHOWN, BEFORE_SHOWN = 76, 38  # of a longer line: so many around the place, of them before it
LINE_ENDS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


class Source:
    """A text with a name, cut into lines as YAML cuts them."""

    __slots__ = ("_lines", "_text", "file", "offset")

    def __init__(self, text: str, file: str, offset: int = 0) -> None:
        self.file = file
        self.offset = offset  # columns that stand before the first line of the YAML
        self._text = text
        self._lines: list[str] | None = None

    def place(self, line: int, column: int, width: int = 1) -> Place:
        """A place from 0-based line and column.

        Parameters
        ----------
        line
            From 0; one beyond the end has no text.
        column
            From 0, of the YAML: what stands before it in the first line is added.
        width
            Characters to point at; fewer where the line that is shown ends.
        """
        if self._lines is None:
            self._lines = LINE_ENDS.split(self._text)
        text = self._lines[line] if line < len(self._lines) else ""
        if line == 0:
            column += self.offset
        long = len(text.rstrip()) > TEXT_SHOWN
        first = max(0, min(column - BEFORE_SHOWN, len(text.rstrip()) - PIECE_SHOWN)) if long else 0
        piece = text[first : first + PIECE_SHOWN] if long else text
        shown = "".join(" " if not c.isprintable() else c for c in piece).rstrip()
        width = max(1, min(width, first + len(shown) - column))
        before, after = "…" * (first > 0), "…" * (first + len(piece) < len(text.rstrip()))
        return Place(
            file=self.file,
            line=line + 1,
            column=column + 1,
            text=f"{before}{shown}{after}",
            width=width,
            cut=first - len(before),
        )


class Node:
    """A value with its place. `value` is a scalar, a list of nodes, or a dict of nodes (keys in `keys`)."""

    __slots__ = ("column", "keys", "line", "source", "value", "width")

    def __init__(
        self, value: Any, source: Source, line: int, column: int, width: int = 1, keys: dict[str, Node] | None = None
    ) -> None:
        self.value = value
        self.source = source
        self.line = line
        self.column = column
        self.width = width
        self.keys = keys

    @property
    def place(self) -> Place:
        """Where the value stands."""
        return self.source.place(self.line, self.column, self.width)

    def replaced(self, value: Any, keys: dict[str, Node] | None = None) -> Node:
        """The same place with another value (nodes are shared by aliases, so they never change)."""
        return Node(value, self.source, self.line, self.column, self.width, keys)

    def plain(self) -> Any:
        """The value as plain Python data."""
        if type(self.value) is dict:
            return {key: node.plain() for key, node in self.value.items()}
        if type(self.value) is list:
            return [node.plain() for node in self.value]
        return self.value


@dataclass(frozen=True)
class Document:
    """A YAML file read: `data` is plain, `place` and `key_place` say where each path stands."""

    root: Node
    file: str

    @cached_property
    def data(self) -> Any:
        """Plain dict, list, str, int, float, bool, None."""
        return self.root.plain()

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """Path -> place of the value, for every path: "training[0].deadline"."""
        return {path_text(steps): node.place for steps, node in _walk(self.root, ())}

    def place(self, path: str | Steps) -> Place:
        """Place of the value at a path; of the nearest thing above it when there is none."""
        return self.nearest(path)[0].place

    def key_place(self, path: str | Steps) -> Place:
        """Place of the key at a path, or of the value where it has no key (list items)."""
        steps = _steps(self.root, path)
        above, left = self.nearest(steps[:-1])
        key = steps[-1] if steps and not left else None
        if isinstance(key, str) and above.keys and key in above.keys:
            return above.keys[key].place
        return self.place(steps)

    def nearest(self, path: str | Steps) -> tuple[Node, Steps]:
        """The deepest node on the way to a path, and the steps that are left."""
        node, steps = self.root, _steps(self.root, path)
        for i, step in enumerate(steps):
            below = _child(node, step)
            if below is None:
                return node, steps[i:]
            node = below
        return node, ()


def path_text(steps: Steps) -> str:
    """("training", 0, "deadline") -> "training[0].deadline"."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _child(node: Node, step: str | int) -> Node | None:
    if type(node.value) is dict and isinstance(step, str):
        found = node.value.get(step)
        return found if isinstance(found, Node) else None
    if type(node.value) is list and isinstance(step, int) and 0 <= step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    return None


def _walk(node: Node, steps: Steps) -> Iterator[tuple[Steps, Node]]:
    yield steps, node
    if type(node.value) is dict:
        for key, below in node.value.items():
            yield from _walk(below, (*steps, key))
    elif type(node.value) is list:
        for i, below in enumerate(node.value):
            yield from _walk(below, (*steps, i))


def _steps(root: Node, path: str | Steps) -> Steps:
    """Split a written path; keys may hold dots, so what is there decides where a key ends."""
    if not isinstance(path, str):
        return path
    steps: list[str | int] = []
    node: Node | None = root
    while path:
        step, path = next_step(node, path)
        steps.append(step)
        node = _child(node, step) if node is not None else None
    return tuple(steps)


def next_step(node: Node | None, path: str) -> tuple[str | int, str]:
    """First step of a written path at a node, and the rest: the longest key that fits wins."""
    match = re.match(r"\[(\d{1,6})\]\.?", path)
    if match:
        return int(match.group(1)), path[match.end() :]
    if node is not None and type(node.value) is dict:
        fitting = [key for key in node.value if path == key or path.startswith((f"{key}.", f"{key}["))]
        if fitting:
            key = max(fitting, key=len)
            return key, path[len(key) :].removeprefix(".")
    match = re.match(r"[^.\[]+|.", path)
    step = match.group() if match else path
    return step, path[len(step) :].removeprefix(".")
