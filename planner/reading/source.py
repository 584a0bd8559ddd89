"""Where a reading comes from: one file or several as one, plain or compressed, or stdin; always in bounded bits."""

from __future__ import annotations

import codecs
import hashlib
import importlib
import importlib.util
import itertools
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from planner import files
from planner.errors import InputError, Place, Problem
from planner.files import StrPath

STDIN = "-"
HEAD_BYTES = 262_144
BLOCK_BYTES = 1_048_576
LONGEST_LINE = 8_388_608  # bytes; what is longer is cut there
TEXT_LIMIT_BYTES = 128_000_000
MOST_BYTES = 64_000_000_000  # of one reading, decompressed
MOST_FILES = 1_000
_STDIN_LIMIT_BYTES = 8_000_000_000
_MOST_GROWTH = 250  # decompressed over compressed, of what is larger than a text may be: logs shrink to a tenth
_PACKED = re.compile(r"(?i)\.(gz|gzip|zst|zstd)$")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZSTD_BITE = 1024  # bytes given at once: a block of four may grow to 128 KiB, so that a bite gives 33 MB at most


class Source:
    """What is read: `head` is the first quarter of a megabyte, decompressed; `lines` and `text` give all of it.

    Parameters
    ----------
    paths
        Files that are read as one, in their order; `-` is stdin, a folder stands for the files in it.
    """

    def __init__(self, *paths: StrPath) -> None:
        self.paths = tuple(_named(paths))
        self.name = str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"
        self._stdin: BinaryIO | None = None
        self.cut_lines = 0  # lines longer than may be, as far as they were read
        self.unended = False  # the line that was read last is a file's last, and has no end

    @property
    def parts(self) -> tuple[Source, ...]:
        """Each file by itself, for those that are a document each."""
        return (self,) if len(self.paths) == 1 else tuple(Source(path) for path in self.paths)

    @cached_property
    def head(self) -> bytes:
        """The first 256 KiB of the first file, decompressed."""
        return b"".join(_first(self._blocks_of(self.paths[0], HEAD_BYTES), HEAD_BYTES + 1))[:HEAD_BYTES]

    @cached_property
    def whole(self) -> bool:
        """Whether the head is all there is of the first file."""
        return sum(map(len, _first(self._blocks_of(self.paths[0], HEAD_BYTES), HEAD_BYTES + 1))) <= HEAD_BYTES

    @cached_property
    def head_text(self) -> str:
        """The head as text; what is no UTF-8 is replaced, a byte order mark is dropped."""
        return _decoded(self.head)

    @property
    def is_text(self) -> bool:
        """Whether the head looks like text: no NUL, hardly anything that is no UTF-8."""
        bad = self.head_text.count("\ufffd")
        return "\x00" not in self.head_text[:4096] and bad <= len(self.head_text) // 50

    @cached_property
    def first_lines(self) -> list[str]:
        """Lines of the head that are whole, 200 at most."""
        found = self.head_text.splitlines()
        return found[: 200 if self.whole or len(found) > 200 else max(len(found) - 1, 1)]

    def twins(self) -> list[tuple[str, str]]:
        """Files that are the same byte for byte as one before them, with that one: "bill (1).csv" of a folder."""
        by_size: dict[int, list[StrPath]] = {}
        for path in self.paths:
            if str(path) != STDIN:
                by_size.setdefault(Path(path).stat().st_size, []).append(path)
        found: list[tuple[str, str]] = []
        for paths in by_size.values():
            first: dict[bytes, str] = {}
            for path in paths if len(paths) > 1 else ():
                digest = hashlib.sha256()
                with files.stream_of(path) as stream:
                    while block := stream.read(BLOCK_BYTES):
                        digest.update(block)
                if digest.digest() in first:
                    found.append((str(path), first[digest.digest()]))
                first.setdefault(digest.digest(), str(path))
        return found

    def packed_again(self) -> list[StrPath]:
        """Packed files whose bytes lie beside them unpacked, as a folder holds log.csv.gz and log.csv."""
        there = {str(path): path for path in self.paths}
        found = []
        for path in self.paths:
            plain = there.get(_PACKED.sub("", str(path)))
            if plain is not None and plain != path and self._digest(path) == self._digest(plain):
                found.append(path)
        return found

    def _digest(self, path: StrPath) -> bytes:
        digest = hashlib.sha256()
        for block in self._blocks_of(path):
            digest.update(block)
        return digest.digest()

    def blocks(self) -> Iterator[bytes]:
        """All bytes of all files, a megabyte at a time."""
        for path in self.paths:
            yield from self._blocks_of(path)

    def line_blocks(self) -> Iterator[tuple[str, bytes]]:
        """File and whole lines of it, about a megabyte at a time; the last line of a file always ends."""
        for path in self.paths:
            rest, first, cutting, self.unended = b"", True, False, False
            for block in _as_utf8(self._blocks_of(path)):
                block = _unmarked(block) if first else block
                first = False
                if cutting:  # the end of a line that was too long is passed over
                    end = block.find(b"\n")
                    if end < 0:
                        continue
                    block, cutting = block[end + 1 :], False
                end = block.rfind(b"\n") + 1
                if end:
                    yield str(path), rest + block[:end]
                    rest = block[end:]
                else:
                    rest += block
                if len(rest) > LONGEST_LINE:
                    self.cut_lines += 1
                    yield str(path), rest[:LONGEST_LINE] + b"\n"
                    rest, cutting = b"", True
            if rest:
                self.unended = True
                yield str(path), rest + b"\n"

    def lines(self) -> Iterator[str]:
        """All lines without their ends; a line of more than 8 MiB is cut there."""
        for _, block in self.line_blocks():
            text = _decoded(block)
            yield from (line.removesuffix("\r") for line in text.split("\n")[:-1])

    def data(self, limit_bytes: int = TEXT_LIMIT_BYTES) -> bytes:
        """All bytes; `InputError` when there are more than `limit_bytes`."""
        found = b"".join(_first(self.blocks(), limit_bytes + 1))
        if len(found) > limit_bytes:
            raise refused(self, "too-large", f"{self.name} has more than {limit_bytes:,} bytes", "read a part of it")
        return found

    def text(self, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
        """All of it as text, as `head_text`; `InputError` when there are more than `limit_bytes`."""
        return _decoded(self.data(limit_bytes))

    def _blocks_of(self, path: StrPath, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        if str(path) == STDIN:
            if self._stdin is None:
                self._stdin = cast(BinaryIO, files.kept_of(sys.stdin.buffer, limit_bytes=_STDIN_LIMIT_BYTES))
            self._stdin.seek(0)
            yield from self._expanded(self._stdin, STDIN, size)
            return
        with files.stream_of(path) as stream:
            yield from self._expanded(stream, str(path), size)

    def _expanded(self, stream: BinaryIO, name: str, size: int) -> Iterator[bytes]:
        """The bytes of a stream, decompressed where they are compressed, and bounded."""
        first = stream.read(size)
        if first.startswith(_ZSTD):
            yield from self._zstd(stream, first, name, size)
            return
        raw = _rest(stream, first, size)
        taken = 0
        for block in _gunzipped(raw, size, self, name) if first.startswith(_GZIP) else raw:
            taken += len(block)
            if taken > MOST_BYTES:
                raise refused(self, "too-large", f"{name} has more than {MOST_BYTES:,} bytes", "read a part of it")
            yield block

    def _zstd(self, stream: BinaryIO, first: bytes, name: str, size: int) -> Iterator[bytes]:
        """As `_expanded`, of what zstd packed, all frames of it."""
        begin = _zstd_reader()
        if begin is None:
            hint = f"unpack it first: zstd -d {name}; or pip install 'llm-capacity-planner[zstd]'"
            raise refused(self, "no-zstd", f"{name} is packed by zstd, which nothing installed here unpacks", hint)
        packed = grown = 0
        unpacked = begin()
        for block in _rest(stream, first, size):
            for at in range(0, len(block), _ZSTD_BITE):
                waiting = block[at : at + _ZSTD_BITE]
                packed += len(waiting)
                while waiting:
                    unpacked = begin() if unpacked.eof else unpacked
                    try:
                        made = unpacked.decompress(waiting)
                    except Exception:  # each library has errors of its own
                        raise _broken(self, name, "zstd") from None
                    waiting = unpacked.unused_data if unpacked.eof else b""
                    grown += len(made)
                    _demand_sane(self, name, packed, grown)
                    if made:
                        yield made
        if not unpacked.eof:
            raise _broken(self, name, "zstd", "ends early")


def _zstd_reader() -> Callable[[], Any] | None:
    """What begins to unpack a frame: Python's own from 3.14 on, or that of zstandard; None without either."""
    if sys.version_info >= (3, 14):
        return importlib.import_module("compression.zstd").ZstdDecompressor  # type: ignore[no-any-return]
    if importlib.util.find_spec("zstandard") is None:
        return None
    maker = importlib.import_module("zstandard").ZstdDecompressor(max_window_size=2**27)
    return maker.decompressobj  # type: ignore[no-any-return]


def refused(source: Source, reference: str, message: str, hint: str = "", line: int = 0) -> InputError:
    """An error at a line of what is read.

    Parameters
    ----------
    source
        What is read; its name is the place.
    reference
        Of the problem, in kebab-case.
    message
        What is wrong.
    hint
        What to do about it; empty: what is done about such a problem anywhere.
    line
        From 1; 0 = the whole file.
    """
    place = Place(file=source.name, line=line, column=1 if line else 0)
    way = hint or _WAYS.get(reference, "look at that place of the file")
    return InputError(Problem(reference=reference, message=message, places=(place,), hint=way))


_WAYS = {  # out of what ails a file, whatever it holds
    "bad-json": "mend it there, or fetch it again: it may be cut short",
    "bad-header": "fetch it again, from its first byte on: it may be cut short",
    "nothing-taken": "look at its first lines: --as NAME reads it as another kind, --column names columns",
}


def _named(paths: Sequence[StrPath]) -> Iterator[StrPath]:
    """The files that are meant, folders replaced by what lies in them."""
    count = 0
    for path in paths:
        inside: list[StrPath] = [path]
        if str(path) != STDIN and Path(path).is_dir():
            inside = list(files.files_below(path, MOST_FILES + 1))
            if not inside:
                problem = Problem(reference="no-files", message=f"the folder {path} holds no file", hint="name a file")
                raise InputError(problem)
        count += len(inside)
        if count > MOST_FILES:
            problem = Problem(
                reference="too-many", message=f"more than {MOST_FILES:,} files", hint="read them in parts"
            )
            raise InputError(problem)
        yield from inside


def _first(blocks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Blocks until at least `limit` bytes were given."""
    given = 0
    for block in blocks:
        yield block[: limit - given]
        given += len(block)
        if given >= limit:
            return


def _rest(stream: BinaryIO, first: bytes, size: int) -> Iterator[bytes]:
    block = first
    while block:
        yield block
        block = stream.read(size)


def _gunzipped(raw: Iterator[bytes], size: int, source: Source, name: str) -> Iterator[bytes]:
    """All members of a gzip file; one that ends early gives what it holds, and says so."""
    packed = grown = 0
    unpacked = zlib.decompressobj(wbits=31)
    for block in raw:
        packed += len(block)
        waiting = block
        while waiting:
            if unpacked.eof:
                if not waiting.startswith(_GZIP):  # padding after the last member
                    return
                unpacked = zlib.decompressobj(wbits=31)
            try:
                made = unpacked.decompress(waiting, size)
            except zlib.error:
                raise _broken(source, name, "gzip") from None
            waiting = unpacked.unused_data if unpacked.eof else unpacked.unconsumed_tail
            grown += len(made)
            _demand_sane(source, name, packed, grown)
            if made:
                yield made
    if not unpacked.eof:
        raise _broken(source, name, "gzip", "ends early")


def _demand_sane(source: Source, name: str, packed: int, grown: int) -> None:
    if grown > TEXT_LIMIT_BYTES and grown > _MOST_GROWTH * packed:
        message = f"{name} grows to more than {_MOST_GROWTH} times its size"
        raise refused(source, "too-large", message, "unpack it yourself if you trust it")


def _broken(source: Source, name: str, what: str, how: str = "is damaged") -> InputError:
    return refused(source, "bad-compression", f"{name} is packed by {what} and {how}", "fetch or pack it again")


def _unmarked(block: bytes) -> bytes:
    """Without a mark of the order of bytes, and without Excel's own line that says what separates cells."""
    return _SEPARATOR_LINE.sub(b"", block.removeprefix(b"\xef\xbb\xbf"), count=1)


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of a text in UTF-16, as its mark says, in UTF-8, lines that end in CR alone in LF; others as they are."""
    first = next(blocks, b"")
    if first.count(b"\r") > 1 and b"\n" not in first:  # as Excel on a Mac writes them
        yield from (block.replace(b"\r", b"\n") for block in itertools.chain([first], blocks))
        return
    if not (first.startswith(_UTF16) and len(first) > 3):
        yield from itertools.chain([first], blocks)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in itertools.chain([first], blocks):
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


_SEPARATOR_LINE = re.compile(rb"\A\"?sep=.\"?\r?\n", re.IGNORECASE)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # marks of its two orders of bytes


def _decoded(data: bytes) -> str:
    if data.startswith(_UTF16) and len(data) > 3:
        data = data.decode("utf-16", "replace").encode()
    return _unmarked(data).decode("utf-8", "replace")
