"""JSON lines that differ in their numbers alone, read as columns: as the JSON reader would, with a part of the work.

A machine writes its records with the same words around the numbers. What stands around those of the first line is held
against the whole block: the block without its numbers must be that of the first line again and again, and each piece of
the line must be there whole once a line. Then nothing but numbers, commas and spaces is between the pieces, and every
line is a record with the keys of the first. Anything else is left to the reader of records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
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
