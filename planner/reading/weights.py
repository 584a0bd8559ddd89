"""Weights as files hold them: headers of safetensors and GGUF, and the index of shards; no tensor data is read."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, TypeGuard

from planner.carriers import dataclass
from planner.reading.jsonlines import loads
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Reading
from planner.reading.source import Source, refused

_HEADER_LIMIT_BYTES = 100_000_000  # as the format bounds a safetensors header
_GGUF_LIMIT_BYTES = 256_000_000
_MOST_TENSORS = 1_000_000
_MOST_DIMENSIONS = 8
_MOST_NESTED = 4
_LONGEST_NAME = 65_536
_LARGEST = 2**62  # elements of a tensor

# bits of an element, by the names of the format
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16,
         "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64, "F4": 4,
         "F6_E2M3": 6, "F6_E3M2": 6}  # fmt: skip
# number of a type in GGUF -> name, elements of a block, bytes of a block. Source: GGML_QUANT_SIZES of gguf 0.19.0
# (gguf-py/gguf/constants.py of ggml-org/llama.cpp at 0024aa7), all compared on 2026-11-25. Left out: Q8_1 (9), which no
# file holds and whose block has 40 bytes there and 36 in ggml-common.h
_GGML = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
         7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
         12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
         16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
         20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
         24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
         29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
         39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18)}  # fmt: skip
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor as a header tells of it: its elements [count] and what they take in the file [B]."""

    name: str
    dtype: str
    elements: int
    size_bytes: int


class _EarlyEnd(Exception):
    """The file ends inside its header."""


class _Hostile(ValueError):
    """A length or number that no such file has."""


class _Bytes:
    """Bytes taken one after another from blocks, never more than a limit."""

    def __init__(self, blocks: Iterator[bytes], limit_bytes: int) -> None:
        self._blocks, self._limit = blocks, limit_bytes
        self._held, self._at, self._passed = b"", 0, 0

    def take(self, count: int) -> bytes:
        self._passed += count
        if self._passed > self._limit:
            raise _Hostile(f"its header has more than {self._limit:,} bytes")
        if len(self._held) - self._at < count:
            parts, there = [self._held[self._at :]], len(self._held) - self._at
            while there < count:
                block = next(self._blocks, b"")
                if not block:
                    raise _EarlyEnd
                parts.append(block)
                there += len(block)
            self._held, self._at = b"".join(parts), 0
        self._at += count
        return self._held[self._at - count : self._at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        length = self.number("<Q")
        if length > _HEADER_LIMIT_BYTES:
            raise _Hostile(f"a text of it has {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")


def _safetensors_match(source: Source) -> Match:
    head = source.head
    if len(head) < 10:
        return NOTHING
    length = int.from_bytes(head[:8], "little")
    if not 2 <= length <= _HEADER_LIMIT_BYTES or head[8:9] != b"{":
        return NOTHING
    if b'"dtype"' in head and b'"data_offsets"' in head:
        return Match(score=1.0, found=("length", "dtype", "data_offsets"), tool="safetensors")
    return Match(score=0.5, found=("length",), missing=("dtype", "data_offsets"))


def _safetensors(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="safetensors", title="safetensors header", source=source.name, of="tensors")
    tensors: list[Tensor] = []
    for path in source.paths:
        shard = Source(path)
        taken = _Bytes(shard.blocks(), _HEADER_LIMIT_BYTES + 8)
        try:
            header = loads(taken.take(taken.number("<Q")).decode("utf-8"))
        except _EarlyEnd:
            raise refused(shard, "truncated", f"{shard.name} ends inside its header", "fetch it again") from None
        except ValueError as error:
            raise refused(shard, "bad-header", f"{shard.name} has no safetensors header: {error}"[:300]) from None
        if not isinstance(header, dict):
            raise refused(shard, "bad-header", f"the header of {shard.name} is no map of tensors")
        for line, (name, entry) in enumerate(header.items(), 1):
            if name == "__metadata__":
                continue
            found = _entry(name, entry)
            if isinstance(found, str):
                reading.skipped.add(found, line)
            else:
                tensors.append(found)
    return _told(reading, tensors)


def _entry(name: str, entry: Any) -> Tensor | str:
    """A tensor of a safetensors header, or why it is none."""
    shape = entry.get("shape") if isinstance(entry, dict) else None
    span = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _counts(shape) or len(shape) > 64 or not _counts(span) or len(span) != 2 or span[1] < span[0]:
        return "no shape or data offsets"
    elements = math.prod(shape)
    if elements > _LARGEST:
        return "more elements than a tensor can have"
    dtype = str(entry.get("dtype"))[:20]
    if dtype in _BITS and (elements * _BITS[dtype] + 7) // 8 != span[1] - span[0]:
        return "shape and data offsets disagree"
    return Tensor(name=name, dtype=dtype, elements=elements, size_bytes=span[1] - span[0])


def _counts(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int and 0 <= each <= _LARGEST for each in value)


def _index_match(source: Source) -> Match:
    head = source.head_text.lstrip()
    marks = {"weight_map": '"weight_map"' in head, "safetensors": ".safetensors" in head, "an object": head[:1] == "{"}
    if not marks["weight_map"] or not marks["an object"]:
        return NOTHING
    return Match(score=1.0 if marks["safetensors"] else 0.9, found=tuple(mark for mark in marks if marks[mark]))


def _index(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="weight-index", title="index of weight shards", source=source.name, of="tensors")
    try:
        document = loads(source.text())
    except ValueError as error:
        raise refused(source, "bad-json", f"{source.name} is not JSON: {error}"[:300]) from None
    parts = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(parts, dict):
        raise refused(source, "bad-header", f"{source.name} has no weight_map of tensors to files")
    shards = set()
    for line, shard in enumerate(parts.values(), 1):
        if isinstance(shard, str):
            shards.add(shard)
            reading.taken += 1
        else:
            reading.skipped.add("no name of a file", line)
    metadata = document.get("metadata")
    size_bytes = metadata.get("total_size") if isinstance(metadata, dict) else None
    reading.show("files", len(shards))
    if isinstance(size_bytes, int | float) and 0 < size_bytes <= _LARGEST:
        reading.show("weight bytes", int(size_bytes), "B")
    else:
        reading.note("The index does not say how many bytes the weights have; the files themselves do.")
    reading.note("An index names no shapes: read the shards for the count of parameters.")
    return reading


def _gguf_match(source: Source) -> Match:
    if not source.head.startswith(b"GGUF"):
        return NOTHING
    return Match(score=1.0, found=("GGUF",), version=str(int.from_bytes(source.head[4:8], "little")))


def _gguf(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="gguf", title="GGUF header", source=source.name, tool="GGUF", of="tensors")
    tensors: list[Tensor] = []
    for path in source.paths:
        part = Source(path)
        taken = _Bytes(part.blocks(), _GGUF_LIMIT_BYTES)
        keys: dict[str, Any] = {}
        try:
            _gguf_into(taken, keys, tensors, reading)
        except _EarlyEnd:
            reading.note(f"{part.name} ends inside its header: what stands before that was read.")
        except (_Hostile, struct.error) as error:
            raise refused(part, "bad-header", f"{part.name} has no GGUF header: {error}") from None
        family = str(keys.get("general.architecture", ""))
        reading.understood.update({
            key: str(value)[:200]
            for key, value in keys.items()
            if key.startswith("general.") or (family and key.startswith(f"{family}."))
        })  # fmt: skip
    return _told(reading, tensors)


def _gguf_into(taken: _Bytes, keys: dict[str, Any], tensors: list[Tensor], reading: Reading) -> None:
    if taken.take(4) != b"GGUF":
        raise _Hostile("it does not begin with GGUF")
    version = taken.number("<I")
    if version in (2 << 24, 3 << 24):
        raise _Hostile("its numbers are big-endian, which is not read")
    if version not in (2, 3):
        raise _Hostile(f"version {version} is not read, 2 and 3 are")
    tensor_count, key_count = taken.number("<Q"), taken.number("<Q")
    if tensor_count > _MOST_TENSORS or key_count > _MOST_TENSORS:
        raise _Hostile(f"it tells of {tensor_count:,} tensors and {key_count:,} keys")
    reading.show("tensors by the header", tensor_count)
    for _ in range(key_count):
        name = taken.text()
        keys[name[:_LONGEST_NAME]] = _value(taken, taken.number("<I"))
    for number in range(1, tensor_count + 1):
        name, dimensions = taken.text(), taken.number("<I")
        if dimensions > _MOST_DIMENSIONS:
            raise _Hostile(f"a tensor has {dimensions:,} dimensions")
        elements = math.prod(taken.number("<Q") for _ in range(dimensions))
        kind, _ = taken.number("<I"), taken.number("<Q")
        if elements > _LARGEST:
            raise _Hostile("a tensor has more elements than it can have")
        if kind not in _GGML:
            reading.skipped.add(f"type {kind} of a tensor is not known", number)
            continue
        dtype, block, block_bytes = _GGML[kind]
        if elements % block:
            reading.skipped.add("no whole blocks", number)
            continue
        tensors.append(Tensor(name=name, dtype=dtype, elements=elements, size_bytes=elements // block * block_bytes))


def _value(taken: _Bytes, kind: int, nested: int = 0) -> Any:
    """A value of a key; of an array only how many it has."""
    if kind in _SCALARS:
        return taken.number(_SCALARS[kind])
    if kind == _TEXT:
        return taken.text()
    if kind != _ARRAY or nested > _MOST_NESTED:
        raise _Hostile(f"type {kind} of a key is not known")
    inner, count = taken.number("<I"), taken.number("<Q")
    if inner in _SCALARS:
        size = struct.calcsize(_SCALARS[inner]) * count
        if size > _GGUF_LIMIT_BYTES:
            raise _Hostile(f"an array of it has {count:,} values")
        taken.take(size)
    else:
        for _ in range(count):  # each takes 8 bytes at least: the limit of the header ends it
            _value(taken, inner, nested + 1)
    return f"{count} values"


def _told(reading: Reading, tensors: list[Tensor]) -> Reading:
    """The reading with sums over its tensors."""
    reading.taken = len(tensors)
    reading.show("elements", sum(each.elements for each in tensors))
    reading.show("weight bytes", sum(each.size_bytes for each in tensors), "B")
    by_dtype: dict[str, int] = {}
    for each in tensors:
        by_dtype[each.dtype] = by_dtype.get(each.dtype, 0) + each.size_bytes
    for dtype, size_bytes in sorted(by_dtype.items(), key=lambda each: -each[1])[:20]:
        reading.show(f"bytes as {dtype}", size_bytes, "B")
    if packed := {dtype for dtype in by_dtype if dtype in ("U8", "I8", "I32", "F4")}:
        reading.note(f"{', '.join(sorted(packed))} may hold several parameters an element: elements are no parameters.")
    if not tensors:
        reading.note("The header tells of no tensor: no weights are counted.")
    return reading


KINDS = (
    Kind(name="safetensors", title="safetensors header", looks_for="a length of 8 bytes, then tensors as JSON",
         recognise=_safetensors_match, read=_safetensors),
    Kind(name="weight-index", title="index of weight shards", looks_for="weight_map of tensors to files",
         recognise=_index_match, read=_index),
    Kind(name="gguf", title="GGUF header", looks_for="the four letters GGUF", recognise=_gguf_match, read=_gguf),
)  # fmt: skip
