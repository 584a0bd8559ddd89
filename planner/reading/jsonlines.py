"""JSON as logs hold it: a record a line, an array of records, or records below a key; each broken line counted.

Lines that differ in their numbers alone are read as columns, with a part of the work: a machine writes its records with
the same words around the numbers. What stands around those of the first line is held against the whole block: the block
without its numbers must be that of the first line again and again, and each piece of the line must be there whole once
a line. Then nothing but numbers, commas and spaces is between the pieces, and every line is a record with the keys of
the first. Anything else is left to the reader of records.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.reading.kinds import Skips
from planner.reading.source import Source, refused

_MOST_HEAD = 200
_DEPTH = 3  # of keys above a list of records
_SPANS = "resourceSpans"
_TWICE = "\0twice"  # of a record that is read with care: its keys that are given twice
_BELOW = (
    "data",
    "records",
    "results",
    "rows",
    "items",
    "logs",
    "requests",
    "traces",
    "entries",
    "events",
    "calls",
    "hits",
)


def loads(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """A JSON value, mappings made by `pairs`; `ValueError` for anything else, however deep or large."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("nested too deep") from None


def document_of(source: Source) -> Any:
    """The whole source as one JSON value.

    Raises
    ------
    InputError
        It is none, or ends early.
    """
    text = source.text()
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        early = error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated")
        message = (
            f"{source.name} is not whole JSON: {error.msg}" if early else f"{source.name} is not JSON: {error.msg}"
        )
        hint = "it ends early: fetch it again, or wait until it is written" if early else "see that line"
        raise refused(source, "bad-json", message, hint, error.lineno) from None
    except ValueError as error:
        raise refused(source, "bad-json", f"{source.name} is not JSON: {error}", "see the file") from None


def documents_of(source: Source, skipped: Skips) -> list[Any]:
    """The JSON values that a source holds one after the other, as several runs append them; a half one is counted.

    Parameters
    ----------
    source
        What is read.
    skipped
        Takes the end that is no JSON, where values stand before it.

    Raises
    ------
    InputError
        Not one value is whole.
    """
    text = source.text()
    found, end = values_in(text)
    if len(found) < 2:
        return [document_of(source)]
    if rest := text[end:].strip():
        skipped.add("the end of the file, half written", text.count("\n", 0, text.index(rest, end)) + 1)
    return found


def values_in(text: str) -> tuple[list[Any], int]:
    """JSON values that stand one after the other, with blanks between, and where the last whole one ends."""
    decoder, at = json.JSONDecoder(), 0
    found: list[Any] = []
    while True:
        begin = at
        while begin < len(text) and text[begin] in " \t\r\n":
            begin += 1
        try:
            value, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return found, at
        found.append(value)


def head_document(source: Source) -> Any:
    """The head as one JSON value when it is all there is; None otherwise."""
    if not source.whole or source.head_text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return loads(source.head_text)
    except ValueError:
        return None


def head_keys(source: Source) -> set[str]:
    """Names of all keys that stand in the head, whether it is whole or not."""
    return set(re.findall(r'"((?:[^"\\\n]|\\.){1,120})"\s*:', source.head_text))


def records_of(source: Source) -> list[dict[str, Any]]:
    """Records that the head shows: of its lines, or of the array that it begins with; 200 at most."""
    begin = source.head_text.lstrip()[:1]
    if begin not in ("{", "[") or not source.is_text:
        return []
    found: list[dict[str, Any]] = []
    for line in source.first_lines[:_MOST_HEAD]:
        if line.lstrip().startswith("{"):
            try:
                record = loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                found.append(record)
    if found and _SPANS in found[0]:
        return [span for record in found for span in _spans(record)][:_MOST_HEAD]
    if found and (len(found) > 1 or not _list_in(found[0])):
        return found
    whole = head_document(source)
    rows = whole if isinstance(whole, list) else _list_in(whole)
    if whole is None and begin == "{" and not found:  # records of several lines each, one after the other
        rows = values_in(source.head_text)[0]
    if rows is None and begin == "[":
        rows = list(_begun(source.head_text.lstrip()))
    return [row for row in (rows or [])[:_MOST_HEAD] if isinstance(row, dict)]


def _list_in(value: Any, depth: int = _DEPTH) -> list[Any] | None:
    """The list of records below one of the usual keys, or below several: {"data": {"requests": [...]}}."""
    for key in _BELOW if isinstance(value, dict) and depth else ():
        below = value.get(key)
        if isinstance(below, list) and below and isinstance(below[0], dict):
            return list(below)
        if (found := _list_in(below, depth - 1)) is not None:
            return found
    return _of_frame(value) if depth == _DEPTH and isinstance(value, dict) else None


def _of_frame(value: dict[str, Any]) -> list[Any] | None:
    """Records of a table as pandas writes it: a column each, a numbered record each, or names apart from the rows."""
    names, rows = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(rows, list) and rows and isinstance(rows[0], list):
        return [dict(zip(map(str, names), row)) if isinstance(row, list) and len(row) == len(names) else row
                for row in rows]  # fmt: skip
    cells = list(value.values())
    if len(cells) < 2 or not all(cells):
        return None
    if all(isinstance(each, dict) for each in cells):
        if all(key.isdecimal() for key in value):
            return cells
        keys = list(cells[0])
        if all(list(each) == keys for each in cells) and all(key.isdecimal() for key in keys):
            return [{name: column[key] for name, column in value.items()} for key in keys]
    if all(isinstance(each, list) and len(each) == len(cells[0]) for each in cells) and len(cells[0]) > 1:
        return [dict(zip(value, row)) for row in zip(*cells)]
    return None


def _begun(text: str) -> Iterator[Any]:
    """Records of an array of which only the beginning is there."""
    decoder, at = json.JSONDecoder(), 1
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            record, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield record


class JsonLines:
    """All records of a source with their line (or place in the array); broken ones are counted in `skipped`."""

    def __init__(self, source: Source, taken: Callable[[bytes, int], bool] = lambda _block, _number: False) -> None:
        """With `taken` a block of whole lines, and the number of the first, may be taken before it is read here."""
        self.source = source
        self._taken = taken
        self.skipped = Skips()
        self.once: Sequence[str] = ()  # keys of which two in a record leave open which one counts
        self._broken = 0  # the line before, when it was not readable

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, records, numbers in self.batches():
            yield from zip(numbers or range(number, number + len(records)), records)

    def batches(self) -> Iterator[tuple[int, list[dict[str, Any]], list[int]]]:
        """Records of about a megabyte: number of the first line, records, and their lines unless those follow it."""
        text = self.source.head_text.lstrip()
        first = next((line for line in self.source.first_lines if line.strip()), "")
        alone = sum(map(bool, map(str.strip, self.source.first_lines))) == 1  # not one such record of many
        by_line = text.startswith("{") and _is_record(first) and not _list_in(loads(first), _DEPTH if alone else 1)
        yield from self._lines() if by_line else self._document()

    def _lines(self) -> Iterator[tuple[int, list[dict[str, Any]], list[int]]]:
        number = 1
        for _, block in self.source.line_blocks():
            if not self._broken and self._taken(block, number):
                number += block.count(b"\n")
                continue
            lines = block.split(b"\n")[:-1]
            rows = _together(lines) if not self._broken and self._once_each(block) else None
            taken, numbers = (rows, []) if rows is not None else self._one_by_one(lines, number)
            if taken and _SPANS in taken[0]:
                pairs = [(span, at) for at, row in zip(numbers or count(number), taken) for span in _spans(row)]
                taken, numbers = [span for span, _ in pairs], [at for _, at in pairs]
            yield number, taken, numbers
            number += len(lines)
        if self._broken:
            self.skipped.add("the last line, half written", self._broken)

    def _once_each(self, text: bytes) -> bool:
        """Whether each key that may stand once does so in every line, or in none."""
        return all(text.count(b'"%s"' % key.encode()) in (0, text.count(b"\n")) for key in self.once)

    def _given_twice(self, record: dict[str, Any], number: int) -> bool:
        twice = record.pop(_TWICE, set()).intersection(self.once)
        if twice:
            self.skipped.add(f"{min(twice)} is given twice: which one counts is not told", number)
        return bool(twice)

    def _one_by_one(self, lines: list[bytes], number: int) -> tuple[list[dict[str, Any]], list[int]]:
        """Records of lines, with the number of each; what is none is counted, the last one when it is known to be."""
        records, numbers = [], []
        for line in lines:
            text = line.decode("utf-8", "replace")
            if self._broken:  # the line before this one was not readable
                self.skipped.add("not JSON", self._broken)
                self._broken = 0
            try:
                record = json.loads(text, object_pairs_hook=_pairs) if text.strip() else None
            except (ValueError, RecursionError):
                record, self._broken = None, number
            if isinstance(record, dict) and not self._given_twice(record, number):
                records.append(record)
                numbers.append(number)
            elif text.strip() and not self._broken and not isinstance(record, dict):
                self.skipped.add("JSON, but no record", number)
            number += 1
        return records, numbers

    def _document(self) -> Iterator[tuple[int, list[dict[str, Any]], list[int]]]:
        text = self.source.text()
        rows: Any
        try:
            whole = loads(text, _pairs if self.once else None)
            rows = whole if isinstance(whole, list) else _list_in(whole)
        except ValueError:
            rows = None
            if text.lstrip().startswith("["):
                rows = list(_begun(text.lstrip()))
                self.skipped.add("the end of the file, half written", len(rows) + 1)
            elif len((found := values_in(text))[0]) > 1:
                rows, end = found
                if text[end:].strip():
                    self.skipped.add("the end of the file, half written", len(rows) + 1)
        if rows is None:
            raise refused(self.source, "bad-json", f"{self.source.name} is not whole JSON", "fetch it again")
        records, numbers = [], []
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, dict):
                self.skipped.add("JSON, but no record", number)
            elif not self._given_twice(row, number):
                records.append(row)
                numbers.append(number)
        yield 1, records, numbers


def _spans(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Spans of OpenTelemetry as a collector writes them, many a line, each with its attributes by name."""
    for resource in _listed(record, _SPANS):
        for scope in _listed(resource, "scopeSpans"):
            for span in _listed(scope, "spans"):
                said = {str(each.get("key")): _plain(each.get("value")) for each in _listed(span, "attributes")}
                yield {**span, "attributes": said}


def _listed(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = record.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _plain(value: Any) -> Any:
    """What stands in {"intValue": "12"}."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _together(lines: list[bytes]) -> list[dict[str, Any]] | None:
    """Records of lines, read at once; None where one of them is none."""
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):  # bytes that are no UTF-8 among them
        return None
    return rows if len(rows) == len(lines) and set(map(type, rows)) <= {dict} else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of JSON, with the keys that it or a mapping in it gives twice with different values."""
    made = dict(pairs)
    twice = {key for key, value in pairs if value != made[key]} if len(made) < len(pairs) else set()
    for value in made.values():
        if isinstance(value, dict):
            twice |= value.pop(_TWICE, set())
    return made | {_TWICE: twice} if twice else made


def _is_record(line: str) -> bool:
    try:
        return isinstance(loads(line), dict)
    except ValueError:
        return False


def record_in(value: Any) -> Any:
    """The record that a text holds as JSON, as logs of clouds wrap those of others; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        with contextlib.suppress(ValueError):
            return loads(value)
    return value


def generated(listed: list[Any]) -> Any:
    """The counts of the only answer in LangChain's lists of lists of answers; the lists as they are where it has none.

    They stand in the message of the answer, below `kwargs` where it was written out, and name the tokens of the call.

    Parameters
    ----------
    listed
        What stands under `generations` (LangSmith).
    """
    answers = [each for one in listed[:_MOST_ANSWERS] for each in (one if isinstance(one, list) else [one])]
    if len(answers) != 1 or not isinstance(answers[0], dict):
        return listed
    message = answers[0].get("message")
    message = message if isinstance(message, dict) else {}
    written = message.get("kwargs")
    counts = (written if isinstance(written, dict) else message).get("usage_metadata")
    return {"usage_metadata": counts} if isinstance(counts, dict) else listed


def flat(record: Mapping[str, Any], depth: int = 3, texts: bool = False) -> dict[str, Any]:
    """A record with its mappings opened: {"usage": {"n": 1}} gives usage.n; with `texts` those that texts hold, too."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        value = record_in(value) if texts else value
        if key == "generations" and isinstance(value, list):
            value = generated(value)
        if isinstance(value, dict) and depth > 1:
            found.update({f"{key}.{below}": each for below, each in flat(value, depth - 1, texts).items()})
        else:
            found[str(key)] = value
    return found


Array = NDArray[np.float64]
Whole = NDArray[np.int64]
_MOST_ANSWERS = 100  # of one call
_NUMBERS = b"0123456789.-"
_BETWEEN = _NUMBERS + b", "
_VALUE = re.compile(rb'"[^"]*"|\[[0-9][0-9.\-, ]*\]|[0-9-][0-9.]*')
_KEY = re.compile(rb'"([^"]*)" ?: ?\[?$')
_FRACTION_IN_LIST = re.compile(rb"\[[^\]]*\.")
_OUTSIDE = bytes(code for code in range(256) if code not in _NUMBERS + b",[]\n")
_FLAT = bytes.maketrans(b"\n", b",")
_EXACT = 2.0**53  # whole numbers that a double holds exactly
_MOST_DIGITS = 15  # that a double holds
_COMMA, _OPEN, _CLOSE, _END, _ZERO = b",[]\n0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A block of records: numbers by key, and the whole numbers of its list one after the other, with how many each."""

    numbers: Mapping[str, Array]
    lists: Mapping[str, tuple[Whole, Whole]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """What stands around the numbers of a line, their keys in order, and which of them is a list (-1: none)."""

    pieces: list[bytes]
    keys: list[str]
    listed: int


def columns_of(block: bytes) -> Columns | None:
    """Columns of the numbers of lines; None where they are not alike in all else."""
    line = block[: block.find(b"\n") + 1]
    pattern = _pattern(line) if b"\\" not in block else None
    if pattern is None:
        return None
    lines = block.count(b"\n")
    if block.translate(None, _BETWEEN) != line.translate(None, _BETWEEN) * lines:
        return None
    begin, *inner, end = pattern.pieces
    if not block.startswith(begin) or block.count(end + begin) != lines - 1:
        return None  # something stands between two records
    if any(block.count(piece) != lines for piece in (*inner, end)):
        return None
    around = b"".join(pattern.pieces)
    letters = np.frombuffer(block, dtype=np.uint8)
    space, comma = letters == ord(" "), letters == _COMMA
    spaces = int(space.sum()) - lines * around.count(b" ")
    after_commas = int((space[1:] & comma[:-1]).sum()) - lines * around.count(b", ")
    if not (spaces == after_commas and after_commas in (0, int(comma.sum()) - lines * around.count(b","))):
        return None  # a space elsewhere than behind a comma of a list
    for place, piece in enumerate(pattern.pieces):
        bare = _bare(pattern, place)
        if piece.translate(None, _OUTSIDE) != bare:  # words with commas or brackets among them
            block = block.replace(piece, bare)
    return _columns(block.translate(None, _OUTSIDE), pattern, lines)


def _bare(pattern: _Pattern, place: int) -> bytes:
    """What is left of a piece: the comma between two numbers, the brackets of the list, the end of the line."""
    last = len(pattern.keys)
    between = b"," if 0 < place < last else b"\n" if place == last else b""
    closes, opens = (pattern.listed >= 0 and place == pattern.listed + more for more in (1, 0))
    return (b"]" if closes else b"") + between + (b"[" if opens else b"")


def _pattern(line: bytes) -> _Pattern | None:
    """How a line is made; None of lines that are not read so: nested ones, two lists, digits in names."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    pieces: list[bytes] = []
    keys: list[str] = []
    listed, at = -1, 0
    for value in _VALUE.finditer(line):
        text, (begin, end) = value.group(), value.span()
        if text[:1] == b'"':
            continue
        if text[:1] == b"[":
            if listed >= 0:
                return None
            begin, end, listed = begin + 1, end - 1, len(keys)
        piece, at = line[at:begin], end
        key = _KEY.search(piece)
        name = key.group(1).decode("utf-8", "replace") if key else ""
        if not key or line.count(b'"' + key.group(1) + b'"') != 1 or name not in record:
            return None
        pieces.append(piece)
        keys.append(name)
    pieces.append(line[at:])
    numbered = any(set(piece) & set(_NUMBERS) for piece in pieces)
    return _Pattern(pieces=pieces, keys=keys, listed=listed) if keys and not numbered else None


def _columns(text: bytes, pattern: _Pattern, lines: int) -> Columns | None:
    """Numbers between commas, brackets and ends of lines, by column."""
    values = _values(text.translate(_FLAT, b"[]"))
    if values is None:
        return None
    count = len(pattern.keys)
    if pattern.listed < 0:
        if values.size != lines * count:
            return None
        table = values.reshape(lines, count)
        return Columns(numbers={key: table[:, index] for index, key in enumerate(pattern.keys)}, lists={})
    letters = np.frombuffer(text, dtype=np.uint8)
    commas = np.flatnonzero(letters == _COMMA)
    last, begin, end = (  # numbers of the last value of each line, and of those at the ends of its list
        np.searchsorted(commas, np.flatnonzero(letters == code)) + np.arange(lines) for code in (_END, _OPEN, _CLOSE)
    )
    first = np.concatenate([[0], last[:-1] + 1])
    before, after = pattern.listed, count - 1 - pattern.listed
    if (begin != first + before).any() or (end != last - after).any() or _FRACTION_IN_LIST.search(text):
        return None  # a comma where one number belongs, or a list that holds other than whole numbers
    numbers = {key: values[first + index] for index, key in enumerate(pattern.keys[:before])}
    numbers |= {key: values[end + 1 + index] for index, key in enumerate(pattern.keys[before + 1 :])}
    inside = np.zeros(values.size + 1, dtype=np.int8)
    inside[begin] = 1
    inside[end + 1] -= 1
    found = values[np.cumsum(inside[:-1], dtype=np.int8) > 0]
    if np.abs(found).max() > _EXACT:
        return None
    return Columns(numbers=numbers, lists={pattern.keys[before]: (found.astype(np.int64), end - begin + 1)})


def _values(text: bytes) -> Array | None:
    """Numbers that end with a comma each: whole ones by digits, others by the JSON reader; None where one is none."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == _COMMA)
    begins = np.concatenate([[0], ends[:-1] + 1])
    digits = ends - begins
    zeros = (letters[begins] == _ZERO) & (digits > 1)
    if digits.min() < 1 or digits.max() > _MOST_DIGITS or zeros.any() or (letters < _ZERO).sum() > ends.size:
        try:
            return np.array(json.loads(b"[" + text[:-1] + b"]"), dtype=np.float64)
        except (ValueError, OverflowError):
            return None
    values = (letters[ends - 1] - _ZERO).astype(np.int64)
    for place in range(1, int(digits.max())):
        long = np.flatnonzero(digits > place)
        values[long] += (letters[ends[long] - 1 - place] - _ZERO).astype(np.int64) * 10**place
    return values.astype(np.float64)
