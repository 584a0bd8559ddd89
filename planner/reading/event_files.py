"""TensorBoard event files: framed records of protocol buffers, of which the scalars are taken."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from planner.reading.kinds import Reading
from planner.reading.source import Source

LONGEST_RECORD = 64_000_000
_MOST_SCALARS = 2_000_000
Scalar = tuple[float, int, str, float]  # clock [s], step, tag, value


def looks_like_events(head: bytes) -> bool:
    """Whether the first record is the version of an event file."""
    if len(head) < 24:
        return False
    (length,) = struct.unpack_from("<Q", head)
    return 8 < length < 1_000 and b"brain.Event" in head[12 : 12 + length + 32]


def scalars_of(source: Source, reading: Reading) -> list[Scalar]:
    """Every scalar; records that are cut or damaged are counted."""
    found: list[Scalar] = []
    for number, record in enumerate(_records(source, reading), start=1):
        try:
            found += _event(record)
            reading.taken += 1
        except (ValueError, IndexError, struct.error, UnicodeDecodeError):
            reading.skipped.add("a record that is no event", number)
        if len(found) > _MOST_SCALARS:
            reading.note(f"the first {_MOST_SCALARS:,} scalars are read")
            break
    return found


def _records(source: Source, reading: Reading) -> Iterator[bytes]:
    """The contents of the frames: a length, its sum, the record, its sum. Sums are not checked."""
    rest, count = b"", 0
    for block in source.blocks():
        rest += block
        at = 0
        while len(rest) - at >= 12:
            (length,) = struct.unpack_from("<Q", rest, at)
            if length > LONGEST_RECORD:
                reading.skipped.add("a record longer than 64 MB: damaged from here on", count + 1)
                return
            if len(rest) - at < length + 16:
                break
            yield rest[at + 12 : at + 12 + length]
            count += 1
            at += length + 16
        rest = rest[at:]
    if rest:
        reading.skipped.add("the last record, half written", count + 1)


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """Number, wire type and content of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, wire, value
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > len(data):
                raise ValueError("cut")
            yield number, wire, data[at : at + size]
            at += size
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("cut")
            yield number, wire, data[at : at + size]
            at += size
        else:
            raise ValueError("unknown wire type")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("too long a number")


def _event(record: bytes) -> list[Scalar]:
    """Scalars of one event: wall_time 1, step 2, summary 5 with values 1 of tag 1, simple_value 2 or tensor 8."""
    wall, step, found = 0.0, 0, []
    for number, wire, content in _fields(record):
        if number == 1 and wire == 1 and isinstance(content, bytes):
            (wall,) = struct.unpack("<d", content)
        elif number == 2 and isinstance(content, int):
            step = content
        elif number == 5 and isinstance(content, bytes):
            for below, kind, value in _fields(content):
                if below == 1 and kind == 2 and isinstance(value, bytes):
                    scalar = _value(value)
                    if scalar is not None:
                        found.append(scalar)
    if not math.isfinite(wall):
        raise ValueError("no time")
    return [(wall, step, tag, value) for tag, value in found]


def _value(data: bytes) -> tuple[str, float] | None:
    tag, value = "", None
    for number, wire, content in _fields(data):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode("utf-8", "replace")[:200]
        elif number == 2 and wire == 5 and isinstance(content, bytes):
            (value,) = struct.unpack("<f", content)
        elif number == 8 and isinstance(content, bytes):
            value = _tensor(content)
    return (tag, float(value)) if tag and value is not None and math.isfinite(value) else None


def _tensor(data: bytes) -> float | None:
    """The one number of a scalar tensor: dtype 1 (float, double), tensor_content 4, float_val 5, double_val 6."""
    kind, found = 1, None
    for number, wire, content in _fields(data):
        if number == 1 and isinstance(content, int):
            kind = content
        elif isinstance(content, bytes) and number in (4, 5, 6) and len(content) in (4, 8):
            wide = len(content) == 8 and (number == 6 or kind == 2 or wire == 1)
            (found,) = struct.unpack("<d" if wide else "<f", content[: 8 if wide else 4])
    return found
