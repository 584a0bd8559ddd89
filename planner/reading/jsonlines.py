"""JSON as logs hold it: a record a line, an array of records, or records below a key; each broken line counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.reading.reading import Skips
from planner.reading.source import Source, refused

MOST_DEEP = 60
_MOST_HEAD = 200
_BELOW = ("data", "records", "results", "rows", "items", "logs", "requests")


def loads(text: str) -> Any:
    """A JSON value; `ValueError` for anything else, however deep or large."""
    try:
        return json.loads(text)
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
    if found and (len(found) > 1 or not _list_in(found[0])):
        return found
    whole = head_document(source)
    rows = whole if isinstance(whole, list) else _list_in(whole)
    if rows is None and begin == "[":
        rows = list(_begun(source.head_text.lstrip()))
    return [row for row in (rows or [])[:_MOST_HEAD] if isinstance(row, dict)]


def _list_in(value: Any) -> list[Any] | None:
    """The list of records below one of the usual keys."""
    if isinstance(value, dict):
        for key in _BELOW:
            if isinstance(value.get(key), list) and value[key] and isinstance(value[key][0], dict):
                return list(value[key])
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

    def __init__(self, source: Source) -> None:
        self.source = source
        self.skipped = Skips()

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        text = self.source.head_text.lstrip()
        first = next((line for line in self.source.first_lines if line.strip()), "")
        by_line = text.startswith("{") and _is_record(first) and not _list_in(loads(first))
        yield from self._lines() if by_line else self._document()

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        broken = 0  # the line before this one, when it was not readable
        for number, line in enumerate(self.source.lines(), start=1):
            if broken:
                self.skipped.add("not JSON", broken)
                broken = 0
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                broken = number
                continue
            if isinstance(record, dict):
                yield number, record
            else:
                self.skipped.add("JSON, but no record", number)
        if broken:
            self.skipped.add("the last line, half written", broken)

    def _document(self) -> Iterator[tuple[int, dict[str, Any]]]:
        text = self.source.text()
        rows: Any
        try:
            whole = loads(text)
            rows = whole if isinstance(whole, list) else _list_in(whole)
        except ValueError:
            rows = None
            if text.lstrip().startswith("["):
                rows = list(_begun(text.lstrip()))
                self.skipped.add("the end of the file, half written", len(rows) + 1)
        if rows is None:
            raise refused(self.source, "bad-json", f"{self.source.name} is not whole JSON", "fetch it again")
        for number, row in enumerate(rows, start=1):
            if isinstance(row, dict):
                yield number, row
            else:
                self.skipped.add("JSON, but no record", number)


def _is_record(line: str) -> bool:
    try:
        return isinstance(loads(line), dict)
    except ValueError:
        return False


def flat(record: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """A record with its mappings opened: {"usage": {"n": 1}} gives usage.n."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict) and depth > 1:
            found.update({f"{key}.{below}": each for below, each in flat(value, depth - 1).items()})
        else:
            found[str(key)] = value
    return found
