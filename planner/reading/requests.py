"""Logs of requests: tables and JSON lines with a time, tokens in and tokens out, whoever wrote them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import Any

import numpy as np

from planner.reading.cells import below, blocks_of, cell_getter, names_in_cells, rows_in
from planner.reading.columns import (
    DayOrder,
    DecimalSign,
    Roles,
    Signs,
    WholeSign,
    counts_both,
    day_alone,
    has_slashes,
    has_zone,
    is_clock,
    iso_seconds,
    number_in,
    roles_of,
    signs_of,
    zone_of,
)
from planner.reading.jsonlines import JsonLines, columns_of, flat, records_of
from planner.reading.kinds import NOTHING, SURE, Asked, Kind, Match, Reading
from planner.reading.request_log import RequestLog
from planner.reading.source import Source, refused

_NEEDED = ("time", "input", "output")
_SAID = {"time": "a time of each request", "input": "tokens of its prompt", "output": "tokens of its answer"}
_CACHE = ("cache_read", "cache_write")
_OUTCOMES = ("status", "code", "success", "error", "stopped")
_ONE_BY_ONE = {"cached", "delay", "thoughts", "day", *_CACHE}  # roles with which requests are taken one after the other
_SEPARATORS = ",;\t|"
_FAILED = ("error", "fail", "cancel", "abort", "timeout", "rejected")
_STOPPED = ("abort", "cancel", "error")
_YES = ("true", "yes", "1", "1.0", "t", "y")
_NO = ("false", "no", "0", "0.0", "f", "n")
_NO_ERROR = frozenset({"", *_NO, "none", "null", "nil", "nan", "ok", "success", "no error", "{}", "[]", "-", "n/a"})
_DEEP = 5  # records within records: response.body.usage.prompt_tokens
_FIRST = 200  # requests that are looked at for what they name
_LEFT_OPEN = re.compile(r",|\.\d*\.|\.\d{3}$")  # of a number: the sign may stand between thousands
_SPACED = re.compile(r"\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+")  # thousands as in France and in Switzerland
_BETWEEN = re.compile(r"\D")
_MAY_GROUP = re.compile(rb"\d\.\d{3}\s*[,;|\t\r\n]")
# columns that tell who wrote a log: all of them are there
_TOOLS: Sequence[tuple[str, frozenset[str]]] = (
    ("Azure LLM trace", frozenset({"TIMESTAMP", "ContextTokens", "GeneratedTokens"})),
    ("BurstGPT", frozenset({"Request tokens", "Response tokens", "Log Type"})),
    ("Qwen-Bailian", frozenset({"chat_id", "timestamp", "input_length", "output_length", "hash_ids"})),
    ("Mooncake", frozenset({"timestamp", "input_length", "output_length", "hash_ids"})),
    ("AIPerf", frozenset({"session_id", "input_length", "output_length", "delay"})),
    ("Vidur", frozenset({"arrived_at", "num_prefill_tokens", "num_decode_tokens"})),
    ("SplitwiseSim", frozenset({"prompt_size", "token_size", "arrival_timestamp"})),
    ("LLMServingSim", frozenset({"input_toks", "output_toks"})),
    ("LiteLLM spend log", frozenset({"startTime", "prompt_tokens", "completion_tokens"})),
    ("SwissAI", frozenset({"created_at_iso", "prompt_tokens", "output_tokens"})),
    ("plan", frozenset({"timestamp", "input_tokens", "output_tokens"})),
)


def tool_of(names: Sequence[str]) -> str:
    """Who writes logs with these columns; "" when nobody known does."""
    there = set(names)
    return next((tool for tool, needed in _TOOLS if needed <= there), "")


def separator_of(line: str) -> str:
    """What stands between the cells of a first line."""
    return max(_SEPARATORS, key=line.count)


def header_of(source: Source) -> tuple[list[str], str]:
    """Columns and separator of a table with a first line of names; none when it begins with numbers."""
    lines = [line for line in source.first_lines if line.strip()]
    if not lines or not source.is_text or lines[0].lstrip().startswith(("{", "[", "<", "#", ":::")):
        return [], ","
    separator = separator_of(lines[0])
    try:
        cells = [cell.strip() for cell in next(csv.reader([lines[0]], delimiter=separator), [])]
    except csv.Error:
        return [], separator
    if len(cells) < 2 or any(_is_number(cell) for cell in cells):
        return [], separator
    return cells, separator


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _by_roles(names: Sequence[str], form: str) -> Match:
    roles = roles_of(names).of
    found = [_SAID[role] for role in _NEEDED if role in roles]
    missing = [_SAID[role] for role in _NEEDED if role not in roles]
    score = (0.2, 0.35, 0.5, 0.9)[len(found)] if found else 0.1
    if len(missing) == 2 and "time" in roles and counts_both(names):  # told why it is not enough
        score = SURE
    return Match(score=score, found=(form, *found), missing=tuple(missing), tool=tool_of(names))


def recognise_table(source: Source) -> Match:
    """A table whose columns mean time, prompt and answer."""
    names, separator = header_of(source)
    if not names:
        return NOTHING
    return _by_roles(_with_cells(source, names, separator, {}), "a table with a first line of names")


def _with_cells(source: Source, names: list[str], separator: str, named: Mapping[str, str]) -> list[str]:
    """Columns of a table, and where they do not say all that is needed what stands in records in cells."""
    if set(_NEEDED) <= roles_of(names, named).of.keys() and set(named.values()) <= set(names):
        return names
    return [*names, *names_in_cells(source, names, separator)]


def recognise_lines(source: Source) -> Match:
    """JSON, a line or a record each request, whose fields mean time, prompt and answer."""
    records = records_of(source)
    if not records:
        return NOTHING
    names = _names(records[:20])
    return _by_roles(names, "JSON records")


def _names(records: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in flat(record, _DEEP, texts=True)))


def _demand_roles(source: Source, roles: Roles, names: Sequence[str], asked: Asked) -> None:
    for role, column in asked.columns.items():
        if roles.of[role] not in names:
            hint = "columns: " + ", ".join(names[:30])
            raise refused(source, "unknown-column", f"there is no column '{column[:80]}' for {role}", hint, 1)
    missing = [role for role in _NEEDED if role not in roles.of]
    if missing == ["input", "output"] and (both := counts_both(names)):
        message = f"'{both[:80]}' counts prompt and answer together, and no column tells them apart: what a request "
        hint = (
            "--column input=NAME (or output=NAME) names a column of one of them, and the other is the rest; columns: "
        )
        raise refused(source, "one-sum", f"{message}takes of an engine hangs on both", hint + ", ".join(names[:30]), 1)
    if missing:
        hint = " ".join(f"--column {role}=NAME" for role in missing) + "; columns: " + ", ".join(names[:30])
        raise refused(source, "missing-column", f"no column is seen for: {', '.join(missing)}", hint[:600], 1)


def read_lines(source: Source, asked: Asked) -> Reading:
    """Requests of JSON lines, or of one JSON array."""
    zone = zone_of(asked.time_zone)
    log: RequestLog | None = None
    lines = JsonLines(source, lambda block, number: log is not None and _fast_columns(log, block, number))
    roles = roles_of(_names(records_of(source)[:20]), asked.columns)
    lines.once = [column.rsplit(".", 1)[-1] for role, column in roles.of.items() if role in _NEEDED]
    gets: dict[str, Callable[[Any], Any]] = {}
    for number, records, numbers in lines.batches():
        if log is None and records:
            names = _names([*records_of(source)[:20], records[0]])
            roles = roles_of(names, asked.columns)
            _demand_roles(source, roles, names, asked)
            roles = _with_day(roles, flat(records[0], _DEEP))
            gets = {role: _getter(column) for role, column in roles.of.items()}
            log = RequestLog(source=source, roles=roles, asked=asked, tool=tool_of(names))
            log.models = _models(gets, records[:_FIRST])
            log.order = order_of(source, _record_times(source, gets.get("day", gets["time"])))
            log.signs = Signs(partial(_signs, log, lambda: iter(JsonLines(source)), gets, ""))
        if log is None or (not numbers and _fast_records(log, records, number, zone)):
            continue
        for line, record in zip(numbers or range(number, number + len(records)), records):
            reason = _take(log, record, gets, zone, line)
            if reason:
                lines.skipped.add(reason, line)
    if log is None and lines.skipped.count:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in lines.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no request of {source.name} could be taken", reasons[:600])
    if log is None:
        raise refused(source, "empty-file", f"{source.name} holds no record", "name a file that holds requests")
    return log.reading("requests-json", "a log of requests, JSON", lines.skipped, source.cut_lines)


def _with_day(roles: Roles, first: Mapping[str, Any]) -> Roles:
    """Roles with the column of the day where that of the time holds the time of a day alone, by the first request."""
    if not is_clock(first.get(roles.of["time"])):
        return roles
    taken = set(roles.of.values())
    day = next((name for name, value in first.items() if name not in taken and day_alone(value)), "")
    return Roles(of={**roles.of, "day": day}, whole=roles.whole) if day else roles


def _models(gets: Mapping[str, Callable[[Any], Any]], records: Iterable[Any]) -> list[str]:
    """Models that some requests name, in their order."""
    named = (gets["model"](record) for record in records) if "model" in gets else ()
    return list(dict.fromkeys(each for each in named if isinstance(each, str)))


def _signs(
    log: RequestLog, rows: Callable[[], Iterable[tuple[int, Any]]], gets: Mapping[str, Callable[[Any], Any]],
    separator: str,
) -> tuple[dict[str, str], str]:  # fmt: skip
    """Decimal signs of the numbers by role, by all of them, and how they were understood."""
    names = {role: log.roles.of[role] for role in (*_NEEDED, *_CACHE) if role in gets}
    marks = {name: DecimalSign() if role == "time" else WholeSign() for role, name in names.items()}
    cut = log.source.cut_lines
    for line, record in rows():
        for role, name in names.items():
            if record is not None and isinstance(value := gets[role](record), str):
                marks[name].see(value.strip(), line)
    log.source.cut_lines = cut
    signs, said = signs_of(log.source, marks, separator)
    return {role: signs[name] for role, name in names.items()}, said


def _getter(column: str) -> Callable[[Any], Any]:
    if "." not in column:
        return lambda record: record.get(column)
    return lambda record: below(record, column)


def order_of(source: Source, times: Iterable[Any]) -> DayOrder:
    """The order of day and month in all times, which are drawn for it where the head shows a date that needs it."""
    order = DayOrder()
    if has_slashes(source.head_text):
        for time in times:
            if isinstance(time, str):
                order.see(time.strip())
        source.cut_lines = 0  # they are counted when the requests are read
    return order


def _record_times(source: Source, get: Callable[[Any], Any]) -> Iterator[Any]:
    return (get(record) for _, record in JsonLines(source))


def _all_rows(source: Source, separator: str, columns: int) -> Iterator[tuple[int, list[str] | None]]:
    number = 1
    for _, block in blocks_of(source):
        yield from rows_in(block, separator, number, columns)
        number += block.count(b"\n")


def _take(
    log: RequestLog, record: Mapping[str, Any], gets: Mapping[str, Callable[[Any], Any]], zone: tzinfo, number: int
) -> str:
    """Take one record; "" or why it was not taken."""
    if reason := _unfinished(gets, record):
        log.failed += 1
        return reason
    if "cached" in gets and str(gets["cached"](record)).lower() == "true":
        return "its answer came from a cache of answers, from no model"
    given, made = (_tokens(gets[role](record), log, role) for role in ("input", "output"))
    reused = _tokens(gets["reused"](record), log, "reused") if "reused" in gets else math.nan
    for role in _CACHE:
        if role in gets:
            more = _tokens(gets[role](record), log, role)
            given += more if more > 0 else 0.0
            reused = more if role == "cache_read" else reused
    if "thoughts" in gets and (more := _tokens(gets["thoughts"](record), log, "thoughts")) > 0:
        made += more
    if log.roles.whole:
        given, made = (given - made, made) if log.roles.whole == "input" else (given, made - given)
    reason = wrong_tokens(given, made)
    if reason:
        return reason
    time = gets["time"](record)
    if "delay" in gets and "session" in gets:
        time = log.turn(gets["session"](record), time, gets["delay"](record))
    if "day" in gets:
        time = f"{day_alone(gets['day'](record))} {time}"
    elif is_clock(time):
        return "its time is one of a day, and no column tells which day"
    try:
        when = _time(time, log, zone)
    except (ValueError, OverflowError, OSError):
        return "its time is not readable"
    if "id" in gets:
        log.ids.append(hash(str(gets["id"](record))))
    log.add(when, given, made, number)
    if reused >= 0:  # not nan
        log.reused, log.held = log.reused + min(reused, given), log.held + given
    if "blocks" in gets:
        log.add_blocks(gets["blocks"](record), given)
    return ""


def _time(value: Any, log: RequestLog, zone: tzinfo) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ValueError("no time")
        return float(value)
    if not isinstance(value, str):
        raise ValueError("no time")
    try:
        number = float(value)
    except ValueError:
        if "," in value and (counted := number_in(value.strip(), log.signs.of("time"))) is not None:
            return float(counted)
        seconds = iso_seconds(value, zone, log.order.day_first)  # what is no time says nothing of the others
        log.written = True
        log.zones.add(has_zone(value))
        return seconds
    if not math.isfinite(number):
        raise ValueError("no time")
    return number


def _unfinished(gets: Mapping[str, Callable[[Any], Any]], record: Any) -> str:
    """Why a request was not answered to its end, by all columns that may tell; "" for one that was."""
    return next((why for role in _OUTCOMES if role in gets and (why := _broken(role, gets[role](record)))), "")


def _broken(role: str, value: Any) -> str:
    """What a cell of a column of outcomes says went wrong; "" where nothing did."""
    if role in ("status", "code"):
        return "its status says that it failed" if _failed(value) else ""
    if role == "success":
        return "it had no success, as its log says" if str(value).lower() in _NO else ""
    if role == "error":
        return "an error is told of it" if _is_error(value) else ""
    return "it was stopped before its end, as its log says" if _was_stopped(value) else ""


def _all_ended(columns: Mapping[str, Iterable[Any]]) -> bool:
    """Whether all requests of a block were answered to their end, by what columns hold; of lists nothing is known."""
    try:
        return not any(_broken(role, value) for role in _OUTCOMES if role in columns for value in set(columns[role]))
    except TypeError:  # records and lists are told one by one
        return False


def _is_error(value: Any) -> bool:
    """Whether a cell for errors tells one: any words but none, and a code but those of success."""
    text = str(value).strip().lower()
    return text not in _NO_ERROR and not re.fullmatch(r"2\d\d(\.0)?", text)


def _was_stopped(value: Any) -> bool:
    """Whether a reason to end, or each choice of an answer with its own, is that its client or its server broke off."""
    if isinstance(value, list):
        return any(_was_stopped(each.get("finish_reason") if isinstance(each, dict) else each) for each in value)
    text = str(value).strip().lower()
    return text in _YES or (not isinstance(value, dict) and any(word in text for word in _STOPPED))


def _failed(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    text = str(value).lower()
    try:
        return 400 <= float(text) < 600  # 500, and 500.0 as a table writes it that has gaps
    except ValueError:
        return any(word in text for word in _FAILED)


def _tokens(value: Any, log: RequestLog, role: str) -> float:
    """A number of tokens; a list of them counts as its length; nan for what is none."""
    if isinstance(value, str) and not value.isdecimal() and _SPACED.fullmatch(value.strip()):
        value = _BETWEEN.sub("", value.strip())
    if isinstance(value, str) and _LEFT_OPEN.search(value := value.strip()):
        value = number_in(value, log.signs.of(role))
    if isinstance(value, list):
        return float(len(value))
    if isinstance(value, bool) or value is None:
        return math.nan
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):  # a record, too, is no number
        return math.nan


def wrong_tokens(given: float, made: float) -> str:
    """Why a request with such lengths is not taken; "" when it is."""
    if not (math.isfinite(given) and math.isfinite(made)):
        return "a number of tokens is missing or no number"
    if given < 0 or made < 0:
        return "negative tokens"
    if max(given, made) > 1e9:
        return "more than 1,000,000,000 tokens"
    if given < 1:
        return "no prompt"
    if made < 1:
        return "no answer: it failed or was cancelled"
    if given != int(given) or made != int(made):
        return "tokens that are no whole number"
    return ""


def read_table(source: Source, asked: Asked) -> Reading:
    """Requests of a table with a first line of names, block by block; pandas where a block is sound."""
    names, separator = header_of(source)
    every = _with_cells(source, names, separator, asked.columns)
    roles = roles_of(every, asked.columns)
    _demand_roles(source, roles, every, asked)
    if twice := [column for column in roles.of.values() if names.count(column) > 1]:
        raise refused(source, "given-twice", f"two columns of {source.name} are called '{twice[0][:80]}'",
                      "give one of them another name in the first line", 1)  # fmt: skip
    rows = partial(_all_rows, source, separator, len(names))
    text = ("\n".join(source.first_lines) + "\n").encode()
    head = [cells for line, cells in rows_in(text, separator, 1, len(names)) if cells and line > 1]
    roles = _with_day(roles, dict(zip(names, head[0] if head else ())))
    log = RequestLog(source=source, roles=roles, asked=asked, tool=tool_of(names))
    gets = {role: cell_getter(names, column) for role, column in roles.of.items()}
    when = gets.get("day", gets["time"])
    log.order = order_of(source, (when(cells) for _, cells in rows() if cells))
    log.models = _models(gets, head)
    log.signs = Signs(partial(_signs, log, rows, gets, separator))
    reading_skips = Reading(kind="", title="", source="").skipped
    zone = zone_of(asked.time_zone)
    number, file = 1, ""
    for path, block in blocks_of(source):
        if path != file:  # each file has its first line
            file = path
            end = block.find(b"\n") + 1
            first, block = block[:end].decode("utf-8", "replace"), block[end:]
            if [cell.strip() for cell in first.rstrip("\r\n").split(separator)] != names and separator not in first:
                reading_skips.add("a file without a first line of names", number)
            number += 1
        count = block.count(b"\n")
        if block.strip() and not _fast(log, block, names, separator, number, zone):
            _careful(log, block, gets, names, separator, number, zone, reading_skips.add)
        number += count
    return log.reading("requests-table", "a log of requests, table", reading_skips, source.cut_lines)


def _fast(log: RequestLog, block: bytes, names: list[str], separator: str, number: int, zone: tzinfo) -> bool:
    """A block of rows through pandas when all of them are sound; else False, and nothing is taken."""
    from planner.frames import pandas

    pd, roles = pandas("plan read"), log.roles.of
    if _ONE_BY_ONE & roles.keys() or len(set(names)) < len(names) or not set(roles.values()) <= set(names):
        return False
    told = [role for role in ("time", "input", "output", "id", "reused", *_OUTCOMES) if role in roles]
    wanted = {roles[role]: role for role in told}
    if log.roles.whole or len(wanted) < len(told) or b'"' in block:
        return False
    try:
        table = pd.read_csv(io.BytesIO(block), sep=separator, header=None, names=names, usecols=list(wanted),
                            index_col=False, engine="c", encoding="utf-8", on_bad_lines="error")  # fmt: skip
        tokens = table[[roles["input"], roles["output"]]]
        if "f" in {each.kind for each in tokens.dtypes} and _MAY_GROUP.search(block):
            texts = pd.read_csv(io.BytesIO(block), sep=separator, header=None, names=names, usecols=list(tokens),
                                index_col=False, engine="c", encoding="utf-8", dtype=str)  # fmt: skip
            if any(texts[name].str.contains(r"\.\d{3}\s*$").any() for name in tokens):
                return False  # 1.000 is one or a thousand: by all numbers of the column
        given, made = (tokens[roles[role]].to_numpy("float64") for role in ("input", "output"))
    except (ValueError, TypeError, OverflowError, pd.errors.ParserError, UnicodeDecodeError):
        return False
    if len(table) != block.count(b"\n"):  # blank lines
        return False
    if not _sound(given, made) or not _all_ended(
        {role: table[roles[role]].unique() for role in _OUTCOMES if role in roles}
    ):
        return False
    reused = table[roles["reused"]] if "reused" in roles else None
    if reused is not None and not pd.api.types.is_numeric_dtype(reused):
        return False
    times = _times(table[roles["time"]], log, zone)
    if times is None:
        return False
    if reused is not None:
        _add_reused(log, reused.to_numpy("float64"), given)
    if "id" in roles:
        log.ids.extend(pd.util.hash_array(table[roles["id"]].to_numpy()).view("int64").tolist())
    log.add_many(times, given, made, number)
    return True


def _fast_columns(log: RequestLog, block: bytes, number: int) -> bool:
    """Lines that differ in their numbers alone, in columns, when all of them are sound; else False."""
    roles = log.roles.of
    found = columns_of(block) if not {*_ONE_BY_ONE, *_OUTCOMES, "reused", "id"} & roles.keys() else None
    if found is None or log.roles.whole or not all(roles[role] in found.numbers for role in _NEEDED):
        return False
    blocks = found.lists.get(roles["blocks"]) if "blocks" in roles else None
    if "blocks" in roles and blocks is None:
        return False
    times, given, made = (found.numbers[roles[role]] for role in _NEEDED)
    if not _sound(given, made) or not (np.abs(times) < 1e300).all():
        return False
    if blocks is not None and not log.blocks.add_arrays(*blocks, given):
        return False
    log.add_many(times, given, made, number)
    return True


def _fast_records(log: RequestLog, records: list[dict[str, Any]], number: int, zone: tzinfo) -> bool:
    """Records of lines in columns when all of them are sound; else False, and nothing is taken."""
    from planner.frames import pandas

    roles = log.roles.of
    if _ONE_BY_ONE & roles.keys() or log.roles.whole or any("." in column for column in roles.values()):
        return False
    try:
        columns = {role: [record[column] for record in records] for role, column in roles.items()}
    except KeyError:
        return False
    if not _all_ended(columns) or not set(map(type, columns.get("reused", ()))) <= {int, float}:
        return False
    kinds = {role: set(map(type, column)) for role, column in columns.items()}
    if not all(kinds[role] <= {int, float} for role in ("input", "output")):
        return False
    dates = kinds["time"] == {str} and all(time[4:5] == "-" for time in columns["time"])
    if not (dates or kinds["time"] <= {int, float}):
        return False
    try:
        given, made = (np.array(columns[role], dtype=np.float64) for role in ("input", "output"))
        column = pandas("plan read").Series(columns["time"]) if dates else np.array(columns["time"], dtype=np.float64)
        times = _times(column, log, zone) if _sound(given, made) else None
    except (ValueError, TypeError, OverflowError):
        return False
    if times is None:
        return False
    if "id" in roles:
        log.ids.extend(hash(str(each)) for each in columns["id"])
    log.add_many(times, given, made, number)
    if "reused" in roles:
        _add_reused(log, np.array(columns["reused"], dtype=np.float64), given)
    if "blocks" in roles:
        log.blocks.add_many(columns["blocks"], given)
    return True


def _add_reused(log: RequestLog, reused: Any, given: Any) -> None:
    """What a cache held of prompts, of those of which it is told."""
    told = reused >= 0  # nan is not
    log.reused += float(np.minimum(reused[told], given[told]).sum())
    log.held += float(given[told].sum())


def _sound(given: Any, made: Any) -> bool:
    """Whether all lengths are whole numbers that a request may have."""
    return all(((each >= 1) & (each <= 1e9)).all() and not (each % 1).any() for each in (given, made))


def _times(column: Any, log: RequestLog, zone: tzinfo) -> np.ndarray[Any, Any] | None:
    from planner.frames import pandas

    pd = pandas("plan read")
    if pd.api.types.is_numeric_dtype(column):
        times = np.asarray(column, dtype=np.float64)
        return times if bool(np.isfinite(times).all()) and abs(times).max() < 1e300 else None
    zoned = {has_zone(str(column.iloc[0])), has_zone(str(column.iloc[-1]))}
    if len(zoned) > 1 or (zoned == {False} and zone is not UTC):
        return None
    try:
        parsed = pd.to_datetime(column, format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError):
        return None
    if parsed.isna().any():
        return None
    log.written = True
    log.zones |= zoned
    times = parsed.to_numpy("datetime64[ns]").view("int64") / 1e9
    return times  # type: ignore[no-any-return]


def _careful(
    log: RequestLog, block: bytes, gets: Mapping[str, Callable[[Any], Any]], names: Sequence[str], separator: str,
    number: int, zone: tzinfo, skip: Callable[[str, int], None],
) -> None:  # fmt: skip
    """A block of rows one by one, each taken or counted with its reason."""
    last = max(names.index(log.roles.of[role]) if log.roles.of[role] in names else 0 for role in _NEEDED)
    for line, cells in rows_in(block, separator, number, len(names)):
        if cells is None or len(cells) <= last:
            skip("fewer cells than columns, or a quote that does not end", line)
            continue
        reason = _take(log, cells, gets, zone, line)  # type: ignore[arg-type]
        if reason:
            skip(reason, line)


KINDS = (
    Kind(
        name="requests-table", title="log of requests, table",
        looks_for="a first line of names with a time, input tokens and output tokens (Azure LLM, BurstGPT, Vidur …)",
        recognise=recognise_table, read=read_table,
    ),
    Kind(
        name="requests-json", title="log of requests, JSON",
        looks_for="JSON lines or an array with a time, input tokens and output tokens (Mooncake, LiteLLM, logs …)",
        recognise=recognise_lines, read=read_lines,
    ),
)  # fmt: skip
