"""The one YAML entrance: bounded, YAML 1.2 numbers, and every value knows where it stands.

One pass over the parser's *event stream* builds the tree. Nothing is constructed by PyYAML,
so that tags, dates, sexagesimal numbers and merge bombs have no code to reach. Limits: 1 MB,
depth 32, 50,000 nodes with an alias priced at the size of what it stands for. Mistakes that
leave the rest readable (duplicate keys, ambiguous numbers) are collected; the value becomes
`BAD`, so that a validator can go on and report everything at once. Plain scalars go by the
rules of YAML 1.2; readings on which YAML readers differ are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from planner.errors import InputError, Place, Problem
from planner.files import StrPath, read_text
from planner.yamlfile.tree import LINE_ENDS, TEXT_SHOWN, Document, Node, Source, path_text

MAX_NUMBER_LENGTH = 40


class _Bad:
    """Stands in for a value that was refused and reported already."""

    def __repr__(self) -> str:
        return "BAD"

    def __deepcopy__(self, memo: object) -> _Bad:
        return self


BAD = _Bad()


_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ODD_NUMBER = re.compile(
    r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9_]+|0[xX][0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+)"
)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True,
          "false": False, "False": False, "FALSE": False}  # fmt: skip
_OLD_BOOLEANS = {w: v for word, v in (("yes", True), ("on", True), ("no", False), ("off", False))
                 for w in (word, word.title(), word.upper())}  # fmt: skip

_Refusal = tuple[str, str, str]


def resolve(text: str) -> tuple[object, _Refusal | None]:
    """What a plain scalar stands for, and why it is refused where it is."""
    if text in _WORDS:
        return _WORDS[text], None
    if text in _OLD_BOOLEANS:
        value = str(_OLD_BOOLEANS[text]).lower()
        return BAD, ("ambiguous-boolean", f"'{text}' would be read by some YAML readers as {value}",
                     f'write {value}, or "{text}" in quotes for text')  # fmt: skip
    if text[0] not in "0123456789+-.":
        return text, None
    return _number(text)


def _number(text: str) -> tuple[object, _Refusal | None]:
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_NUMBER_LENGTH:
            return BAD, ("out-of-range", f"a number of {len(text):,} digits is too long", "write it as 1e21")
        return int(text), None
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value, None
        return BAD, ("out-of-range", f"'{text[:40]}' is too large for a number", "write a smaller number")
    if _SEXAGESIMAL.fullmatch(text):
        return BAD, ("ambiguous-number", f"'{text[:40]}' would be read by YAML as {_base_60(text)}",
                     'write "90 min" or "1.5 h"; put text in quotes')  # fmt: skip
    if _NOT_FINITE.fullmatch(text):
        return BAD, (
            "out-of-range",
            f"'{text}' is not a finite number",
            "write a finite number, or leave the field out",
        )
    if _ODD_NUMBER.fullmatch(text):
        return BAD, ("ambiguous-number", f"'{text[:40]}' is read differently by different YAML readers",
                     "write a decimal number without leading zeros or underscores; put text in quotes")  # fmt: skip
    return text, None


def _base_60(text: str) -> str:
    if len(text) > MAX_NUMBER_LENGTH:
        return "a number in base 60"
    total = 0.0
    for part in text.lstrip("+-").replace("_", "").split(":"):
        total = total * 60 + float(part)
    return f"{total:g}"


MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_NODES = 50_000


Event = Any  # the stubs know neither marks nor tags of parser events


def read_yaml(path: StrPath, *, problems: list[Problem] | None = None) -> Document:
    """Read a YAML file. With `problems`, mistakes that leave the rest readable go there."""
    return parse_yaml(read_text(path, limit_bytes=MAX_BYTES), str(path), problems=problems)


def parse_yaml(
    text: str, file: str, *, problems: list[Problem] | None = None, source: Source | None = None
) -> Document:
    """Read YAML from a text.

    Parameters
    ----------
    text
        One document; empty: the data is None.
    file
        Names it in messages.
    problems
        Takes mistakes that leave the rest readable; None: they are raised.
    source
        Where places are looked up, for a text that is part of another; None: in the text itself.

    Raises
    ------
    InputError
        It is not YAML, or more than is read here; with all that was found wrong until then.
    """
    found: list[Problem] = [] if problems is None else problems
    source = source or Source(text, file)
    _check_text(text, source)
    try:
        root = _Builder(text, source, found).document()
    except yaml.YAMLError as error:
        raise InputError(*found, _syntax_problem(error, source)) from None
    except InputError as error:
        raise InputError(*found, *error.problems) from None
    if problems is None and found:
        raise InputError(*found)
    return Document(root, file)


_FORBIDDEN_ASCII = re.compile("[^\t\n\r\x20-\x7e]")
_FORBIDDEN = (  # compiled where it is needed: a few milliseconds, in which most files are read
    "[^\t\n\r\x20-\x7e\x85\xa0-\u2027\u202f-\u2065\u2070-\ud7ff\ue000-\ufefe\uff00-\ufff8\ufffc\ufffd\U00010000-\U000dffff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")


def _check_text(text: str, source: Source) -> None:
    if len(text) > MAX_BYTES:
        raise _limit(source.place(0, 0), f"more than {MAX_BYTES:,} bytes")
    match = _FORBIDDEN_ASCII.search(text) if text.isascii() else re.search(_FORBIDDEN, text)
    if match:
        before = LINE_ENDS.split(text[: match.start()])
        message = f"the character U+{ord(match.group()):04X} may not stand in a YAML file"
        place = source.place(len(before) - 1, len(before[-1]))
        raise InputError(Problem(reference="bad-yaml", message=message, places=(place,), hint="remove it"))


def _limit(place: Place, what: str) -> InputError:
    hint = "a scenario is a small file; split it, or drop repeated aliases"
    return InputError(Problem(reference="too-large", message=f"the file has {what}", places=(place,), hint=hint))


class _Builder:
    """Builds the tree from parser events, counting what it would cost to walk."""

    def __init__(self, text: str, source: Source, problems: list[Problem]) -> None:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.next: Callable[[], Event] = loader(text).get_event
        self.source = source
        self.problems = problems
        self.spent = 0  # nodes so far, aliases expanded
        self.anchors: dict[str, tuple[Node, int, int]] = {}  # name -> node, size, height
        self.path: list[str | int] = []
        self.deepest = 0

    def document(self) -> Node:
        """The one document of the stream; an empty stream is None."""
        self.next()  # stream start
        event = self.next()
        if isinstance(event, StreamEndEvent):
            return Node(None, self.source, 0, 0)
        root = self.node(self.next(), 1)
        self.next()  # document end
        event = self.next()
        if isinstance(event, DocumentStartEvent):
            raise self.refused(event, "bad-yaml", "a second document starts here", "one file holds one document")
        return root

    def node(self, event: Event, depth: int) -> Node:
        """The node that an event starts."""
        if isinstance(event, AliasEvent):
            return self.alias(event, depth)
        self.spend(1, event)
        if depth > MAX_DEPTH:
            raise _limit(self.place(event), f"more than {MAX_DEPTH} levels")
        self.deepest = max(self.deepest, depth)
        if event.tag is not None:
            raise self.refused(event, "bad-yaml", f"the tag {_tag(event)} is refused",
                               "write the value without a tag; quote it when it is text")  # fmt: skip
        anchor = event.anchor
        if anchor is None:
            return self.content(event, depth)
        before, deepest, self.deepest = self.spent - 1, self.deepest, depth
        self.anchors.pop(anchor, None)  # an alias inside its own anchor finds nothing
        node = self.content(event, depth)
        self.anchors[anchor] = (node, self.spent - before, self.deepest - depth)
        self.deepest = max(self.deepest, deepest)
        return node

    def content(self, event: Event, depth: int) -> Node:
        if isinstance(event, ScalarEvent):
            return self.scalar(event)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(event, depth)
        assert isinstance(event, MappingStartEvent)
        return self.mapping(event, depth)

    def alias(self, event: Event, depth: int) -> Node:
        known = self.anchors.get(event.anchor)
        if known is None:
            raise self.refused(event, "bad-yaml", f"the alias *{event.anchor} stands for nothing that is complete here",
                               f'text that starts with * must be in quotes: "*{event.anchor}"')  # fmt: skip
        node, size, height = known
        self.spend(size, event)
        if depth + height > MAX_DEPTH:
            raise _limit(self.place(event), f"more than {MAX_DEPTH} levels")
        self.deepest = max(self.deepest, depth + height)
        return node

    def sequence(self, event: Event, depth: int) -> Node:
        items: list[Node] = []
        path = self.path
        while not isinstance(below := self.next(), SequenceEndEvent):
            path.append(len(items))
            items.append(self.node(below, depth + 1))
            path.pop()
        mark = event.start_mark
        return Node(items, self.source, mark.line, mark.column)

    def mapping(self, event: Event, depth: int) -> Node:
        values: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        merged: list[tuple[Node, Event]] = []
        while not isinstance(below := self.next(), MappingEndEvent):
            key = self.key(below)
            self.path.append(key.value)
            value_event = self.next()
            value = self.node(value_event, depth + 1)
            self.path.pop()
            if key.value == "<<" and not below.style:
                merged.append((value, value_event))
            elif key.value in keys:
                self.problems.append(self.duplicate(keys[key.value], key))
                if _CUT.match(key.value):  # {budget: $8,000,000}: two mistakes are one
                    values[key.value] = value.replaced(BAD)
            else:
                keys[key.value], values[key.value] = key, value
        for value, value_event in merged:
            self.merge(value, value_event, keys, values)
        mark = event.start_mark
        return Node(values, self.source, mark.line, mark.column, keys=keys)

    def merge(self, node: Node, event: Event, keys: dict[str, Node], values: dict[str, Node]) -> None:
        """Fill in what a merge key brings; what stands there already wins."""
        for part in node.value if type(node.value) is list else [node]:
            if type(part.value) is not dict:
                raise self.refused(event, "bad-yaml", "'<<' merges mappings only", "write << : *name of a mapping")
            self.spend(len(part.value), event)
            names: dict[str, Node] = part.keys or {}
            for key, value in part.value.items():
                if key not in keys:
                    keys[key], values[key] = names[key], value

    def key(self, event: Event) -> Node:
        if not isinstance(event, ScalarEvent) or event.tag is not None or event.anchor is not None:
            raise self.refused(event, "bad-yaml", "a key must be plain text", "write key: value")
        self.spend(1, event)
        if not event.value or _CONTROL.search(event.value):
            raise self.refused(event, "bad-yaml", "a key must not be empty or hold control characters",
                               "write key: value")  # fmt: skip
        return self.at(event, event.value)

    def scalar(self, event: Event) -> Node:
        text = event.value
        problem = None
        value: object = text
        if not event.style:  # plain
            value, problem = resolve(text)
        elif _CONTROL.search(text):
            problem = ("control-character", f"{text[:60]!r} holds control characters", "remove them")
        node = self.at(event, value)
        if problem:
            reference, message, hint = problem
            self.problems.append(Problem(reference=reference, message=message, places=(node.place,), hint=hint))
            node.value = BAD
        return node

    def at(self, event: Event, value: object) -> Node:
        start, end = event.start_mark, event.end_mark
        width = end.column - start.column if end.line == start.line else TEXT_SHOWN
        return Node(value, self.source, start.line, start.column, width)

    def spend(self, nodes: int, event: Event) -> None:
        self.spent += nodes
        if self.spent > MAX_NODES:
            raise _limit(self.place(event), f"more than {MAX_NODES:,} values, aliases counted at full length")

    def place(self, event: Event) -> Place:
        return self.source.place(event.start_mark.line, event.start_mark.column)

    def refused(self, event: Event, reference: str, message: str, hint: str) -> InputError:
        return InputError(Problem(reference=reference, message=message, places=(self.place(event),), hint=hint))

    def duplicate(self, first: Node, second: Node) -> Problem:
        where = path_text(tuple(self.path)) or "the file"
        return Problem(
            reference="duplicate-key",
            message=f"'{first.value}' is given twice in {where}",
            places=(first.place, second.place),
            hint="a comma ends a value in braces: write numbers without it" if _CUT.match(first.value) else _ONE,
        )


_ONE, _CUT = "keep one of the two", re.compile(r"\d+(?!\w)")


def _tag(event: Event) -> str:
    return str(event.tag).replace("tag:yaml.org,2002:", "!!")[:40]


_SYNTAX_HINTS = (
    ("cannot start any token", "a tab cannot indent (use spaces); text that starts with % @ ` must be in quotes"),
    ("found a tab", "a tab cannot indent: write spaces in its place"),
    ("mapping values are not allowed", 'text that contains ": " must be in quotes; check the indentation'),
    ("while scanning an alias", 'text that starts with * must be in quotes: "*"'),
    ("undefined alias", "text that starts with * must be in quotes"),
    ("while scanning a quoted", "close the quotes; backslashes need single quotes"),
    ("could not find expected ':'", "a key ends with a colon: key: value"),
    ("while parsing a flow", "check the brackets, braces and commas"),
)


def _syntax_problem(error: yaml.YAMLError, source: Source) -> Problem:
    """A parser's complaint in our form, at the place where it stands."""
    mark, start = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    place = source.place(mark.line, mark.column) if mark else source.place(0, 0)
    if start and (not place.text.strip() or "quoted scalar" in str(getattr(error, "context", ""))):
        place = source.place(start.line, start.column)  # what is never closed is better shown where it opens
    said = " ".join(str(part) for part in (getattr(error, "context", ""), getattr(error, "problem", "")) if part)
    hint = next((hint for sign, hint in _SYNTAX_HINTS if sign in said), "check indentation and quotes near this line")
    return Problem(reference="bad-yaml", message=f"not valid YAML: {said or 'unreadable'}", places=(place,), hint=hint)
