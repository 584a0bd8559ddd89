"""Types of scenario fields: each reads what a person wrote and yields base units, or one error.

No field is a plain union: a validator looks at what was written and picks the branch, so that
one mistake gives one error. Errors carry our own references; `FIELD` in a message stands for
the field's name, which only the caller knows.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NoReturn, TypeVar

from pydantic import BeforeValidator, GetJsonSchemaHandler, ValidationInfo, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from planner import units
from planner.errors import InputError
from planner.files import demand_inside
from planner.units import UnitError

FIELD = "{field}"
MAX_TOKENS = 1e18
MAX_COUNT = 10**6
LEAST_PARAMETERS = 10**6  # the smallest language models that are published; below it a unit was forgotten
_CENTURY_S = 100 * 12 * 730 * 3600.0
NUMBER = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_YEARS = re.compile(r" *years? *$")


def refuse(reference: str, message: str, hint: str = "") -> NoReturn:
    """Refuse a value with one of our references.

    Parameters
    ----------
    reference
        Of the problem, in kebab-case.
    message
        What is wrong; `FIELD` in it stands for the name of the field.
    hint
        A way out, where `FIELD` stands for the same; empty: left to whoever tells of it.

    Raises
    ------
    PydanticCustomError
        Always.
    """
    raise PydanticCustomError(reference, "{message}", {"message": message, "hint": hint})


def from_file(path: str, info: ValidationInfo) -> str:
    """A path that a scenario names, from where the scenario is read; it may not lead out of the scenario's folder."""
    folder = (info.context or {}).get("folder")
    if folder is None:
        return path
    seen = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - as the user writes paths
    try:
        demand_inside(folder or ".", seen)
    except InputError as error:
        refuse(error.problems[0].reference, error.problems[0].message, error.problems[0].hint)
    return seen


def written(value: object) -> str:
    """A value as it reads in a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"'{value}'" if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class _Bounded(BeforeValidator):
    """A validator that says its range in the JSON Schema, too; it stands last, after what the text looks like."""

    says: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "$comment": self.says}


def _quantity(
    parse: Callable[..., float],
    says: str,
    low: float,
    high: float,
    *,
    above: bool = False,
    below: bool = False,
    hint: str | Callable[[float], str] = "",
) -> _Bounded:
    """Read a quantity and hold it to its range; `says` words the range."""

    def check(value: object) -> float:
        try:
            number = parse(value, field=FIELD)
        except UnitError as error:
            refuse(error.reference, error.message, error.hint)
        if number < low or number > high or (above and number == low) or (below and number == high):
            way_out = hint(number) if callable(hint) else hint or f"write a value {says}"
            refuse("out-of-range", f"{FIELD} is {written(value).strip(chr(39))}; it must be {says}", way_out)
        return number

    return _Bounded(check, says=says)


def _text_schema(unit: str, example: str, *, bare: bool = False) -> WithJsonSchema:
    text = {"type": "string", "pattern": f"^ *{NUMBER} *({unit}) *$", "examples": [example]}
    return WithJsonSchema({"anyOf": [{"type": "number"}, text]} if bare else text)


_TIME_UNITS = "us|ms|s|seconds?|min|minutes?|h|hours?|d|days?|weeks?|months?"
_COUNT_UNITS = "[kMBT]?"
_TOKEN_UNITS = "[kMBT]?( ?tokens?)?"
_TIME_SCHEMA = _text_schema(_TIME_UNITS, "30 days")
_COUNT_SCHEMA = _text_schema(_COUNT_UNITS, "8", bare=True)
_LENGTH_SCHEMA = _text_schema(_TOKEN_UNITS, "64k", bare=True)
_TOKEN_SCHEMA = _text_schema(_TOKEN_UNITS, "2T tokens", bare=True)
_SHARE_SCHEMA = _text_schema("%", "30 %", bare=True)
_CHANGE_TEXT = {"type": "string", "pattern": rf"^ *-? *{NUMBER} *% *$", "examples": ["20 %", "-20 %"]}
_CHANGE_SCHEMA = WithJsonSchema({"anyOf": [{"type": "number"}, _CHANGE_TEXT]})
_BYTES_SCHEMA = _text_schema("[kMGTP]?B|[KMGTP]iB", "80 GB")
_RATE_SCHEMA = _text_schema("[kMGTPE]?bit/s|[kMGTP]?B/s|[KMGTP]iB/s", "100 Gbit/s")

_positive_time = _quantity(
    units.parse_duration, "above 0 and at most 1200 months", 0, _CENTURY_S, above=True, hint='write "30 days"'
)
Duration = Annotated[float, _TIME_SCHEMA, _positive_time]
Latency = Annotated[
    float,
    _text_schema(_TIME_UNITS, "500 ms"),
    _quantity(units.parse_latency, "above 0 and at most 1200 months", 0, _CENTURY_S, above=True, hint='write "500 ms"'),
]
Hours = Annotated[
    float,
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
    _quantity(units.parse_number, "above 0 and at most 876000", 0, 876_000, above=True, hint="write 720"),
]
Tokens = Annotated[
    float,
    _TOKEN_SCHEMA,
    _quantity(units.parse_tokens, "above 0 and at most 1e18", 0, MAX_TOKENS, above=True, hint='write "200B"'),
]
Epochs = Annotated[
    float,
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
    _quantity(units.parse_number, "above 0 and at most 1000000", 0, MAX_COUNT, above=True),
]
Parameters = Annotated[
    int,
    _text_schema("[kMBTbm]?( ?(parameters|params))?", "8B", bare=True),
    _quantity(
        units.parse_parameters,
        "at least 1M and at most 1e15",
        LEAST_PARAMETERS,
        10**15,
        hint=lambda number: f"did you mean {number:.0f}B?" if 0 < number < 10_000 else "write 8B",
    ),
]


def _parse_length(value: object, *, field: str = "value") -> int:
    """A whole number of tokens, with or without the word."""
    return units.parse_count(re.sub(r" *tokens?$", "", value) if isinstance(value, str) else value, field=field)


Length = Annotated[int, _LENGTH_SCHEMA, _quantity(_parse_length, "at least 1 and at most 1e9", 1, 10**9)]
Count = Annotated[int, _COUNT_SCHEMA, _quantity(units.parse_count, "at least 1 and at most 1000000", 1, MAX_COUNT)]
CountOrZero = Annotated[
    int, _COUNT_SCHEMA, _quantity(units.parse_count, "at least 0 and at most 1000000", 0, MAX_COUNT)
]


def _parse_per_minute(value: object, *, field: str = "value") -> float:
    """A number of requests in a minute; what is told of another time is told its own key."""
    try:
        return units.parse_number(value, field=field)
    except UnitError as error:
        with contextlib.suppress(UnitError):
            rate = 60 * units.parse_request_rate(value)
            hint = f"write {rate:.6g}, of a minute; or requests: {value}"
            error = UnitError(error.reference, f"{field} is of a minute, and '{value}' names its time", hint)
        raise error from None


RequestsPerMinute = Annotated[
    float,
    _text_schema(_COUNT_UNITS, "600", bare=True),
    _quantity(_parse_per_minute, "above 0 and at most 1e12", 0, 1e12, above=True),
]
Factor = Annotated[
    float,
    WithJsonSchema({"type": "number", "minimum": 1}),
    _quantity(units.parse_fraction, "at least 1 and at most 1000", 1, 1000),
]
Ratio = Annotated[
    float,
    WithJsonSchema({"type": "number", "minimum": 0}),
    _quantity(units.parse_fraction, "at least 0 and at most 1000", 0, 1000),
]
Share = Annotated[
    float,
    _SHARE_SCHEMA,
    _quantity(units.parse_fraction, "above 0 and at most 1", 0, 1, above=True, hint='write "80 %" or 0.8'),
]
ShareBelowAll = Annotated[
    float,
    _SHARE_SCHEMA,
    _quantity(
        units.parse_fraction, "above 0 and below 1", 0, 1, above=True, below=True, hint='write "99.9 %" or 0.999'
    ),
]
Change = Annotated[
    float,
    _CHANGE_SCHEMA,
    _quantity(units.parse_change, "at least -10 and below 1", -10, 1, hint='write "20 %", or "-20 %" for a rise'),
]
ShareOrZero = Annotated[
    float, _SHARE_SCHEMA, _quantity(units.parse_fraction, "at least 0 and at most 1", 0, 1, hint='write "30 %" or 0.3')
]
Size = Annotated[float, _BYTES_SCHEMA, _quantity(units.parse_bytes, "above 0 and at most 1e21 B", 0, 1e21, above=True)]
DataRate = Annotated[
    float,
    _RATE_SCHEMA,
    _quantity(units.parse_rate_bytes, "above 0 and at most 1 PB/s", 0, 1e15, above=True, hint='write "100 Gbit/s"'),
]
Power = Annotated[
    float,
    _text_schema("[kMG]?W", "120 kW"),
    _quantity(units.parse_power, "above 0 and at most 1000 GW", 0, 1e12, above=True, hint='write "120 kW"'),
]
Mass = Annotated[
    float, _text_schema("g|kg|t|kt", "5 t"), _quantity(units.parse_mass, "at least 0 and at most 1e9 t", 0, 1e15)
]
CarbonIntensity = Annotated[
    float,
    _text_schema("(g|kg|t)/[kM]Wh", "380 g/kWh"),
    _quantity(units.parse_carbon_intensity, "at least 0 and at most 5 kg/kWh", 0, 5000, hint='write "380 g/kWh"'),
]
TokenRate = Annotated[
    float,
    _text_schema("([kMBT] )?tokens/(s|min|h|day)", "2100 tokens/s"),
    _quantity(
        units.parse_token_rate, "above 0 and at most 1e12 tokens/s", 0, 1e12, above=True, hint='write "2100 tokens/s"'
    ),
]
RequestRate = Annotated[
    float,
    _text_schema("(requests)?/(s|min|h|day)", "16 /s"),
    _quantity(units.parse_request_rate, "at least 0 and at most 1e9 /s", 0, 1e9),
]
ArrivalRate = Annotated[
    float,
    _text_schema("(requests)?/(s|min|h|day)", "16 /s"),
    _quantity(units.parse_request_rate, "above 0 and at most 1e9 /s", 0, 1e9, above=True, hint='write "16 /s"'),
]


def _parse_watts(value: object, *, field: str = "value") -> float:
    """Power; the key is named after the unit, so that a number alone is in watts."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return units.parse_power(f"{value} W" if plain else value, field=field)


def _parse_years(value: object, *, field: str = "value") -> float:
    """A number of years, written with or without the word."""
    return units.parse_number(_YEARS.sub("", value) if isinstance(value, str) else value, field=field)


Watts = Annotated[
    float,
    _text_schema("[kMG]?W", "10.2 kW", bare=True),
    _quantity(_parse_watts, "above 0 and at most 100 MW", 0, 1e8, above=True, hint='write "10.2 kW"'),
]
Years = Annotated[
    float,
    _text_schema("years?", "4", bare=True),
    _quantity(_parse_years, "above 0 and at most 50", 0, 50, above=True, hint="write 4"),
]
Effectiveness = Annotated[
    float,
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": 10}),
    _quantity(units.parse_number, "at least 1 and at most 10", 1, 10, hint="write 1.3"),
]


# ---- text --------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PATTERN = re.compile(r"[A-Za-z0-9*?\[\]!._/:+-]{1,100}")
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_OTHER_DATE = re.compile(
    rf"\d{{1,4}}([./-])\d{{1,2}}\1\d{{1,4}}|\d{{1,2}}\W+({_MONTHS})[a-z]*\W+\d{{4}}|({_MONTHS})[a-z]*\W+\d{{1,2}}\W+\d{{4}}",
    re.IGNORECASE,
)


def text_of(value: object, example: str) -> str:
    """The value, which is text; the example is what to write instead."""
    if not isinstance(value, str):
        hint = f'write "{written(value)}" in quotes' if isinstance(value, int | float) else f"write {example}"
        refuse("wrong-type", f"{FIELD} is {written(value)}; it wants text", hint)
    return value


def safe_name(text: str) -> str:
    """The nearest name that a scenario takes; "" where nothing of the text may stand in one."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64]


def _name(value: object) -> str:
    text = text_of(value, "a name such as pretrain-8b")
    if not _NAME.fullmatch(text):
        safe = safe_name(text)
        refuse("unsafe-name", f"{FIELD} is {written(text[:80])}; names are made of a-z, 0-9, '.', '_', '-', "
               "start with a letter or digit, and have at most 64 of them",
               f"write '{safe}'" if safe else "write a name such as pretrain-8b")  # fmt: skip
    return text


def _title(value: object) -> str:
    text = " ".join(text_of(value, "a title").split())
    if len(text) > 200:
        refuse("out-of-range", f"{FIELD} has {len(text)} characters; it may have at most 200", "shorten it")
    return text


def _pattern(value: object) -> str:
    text = text_of(value, 'a name or a pattern such as "h100-*"')
    if not _PATTERN.fullmatch(text):
        plain = re.sub(r"[^a-z0-9*?\[\]!._/:+-]+", "-", text.lower()).strip("-")[:60]
        refuse("wrong-type", f"{FIELD} is {written(text[:80])}, which is no name or pattern",
               f'write "{plain or "h100-*"}", a name or a pattern')  # fmt: skip
    return text


def _path(value: object) -> str:
    text = text_of(value, "a path")
    if not text or len(text) > 1000 or not text.isprintable():
        refuse("wrong-type", f"{FIELD} is {written(text[:80])}, which is no path", "write a path such as data/a.csv")
    return text


def parse_date(text: str, field: str = FIELD) -> datetime | None:
    """An ISO date (and time) of the calendar, None when the text does not look like one."""
    if not DATE.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        refuse(
            "out-of-range", f"{field} is '{text}', which is not a date of the calendar", "write a date as 2026-12-01"
        )


def date_of(value: object, field: str = FIELD) -> str:
    """The value, which is a date of the calendar as it is written."""
    text = text_of(value, "a date as 2026-12-01")
    if parse_date(text, field) is None:
        refuse("wrong-type", f"{FIELD} is {written(text[:80])}, which is not a date", "write a date as 2026-12-01")
    return text


def _demand_no_other_date(value: object) -> None:
    """Refuse a date in another order or with a month's name: `12/11/2026` is of two days, and none is guessed."""
    if isinstance(value, str) and _OTHER_DATE.fullmatch(value.strip()):
        refuse("wrong-type", f"{FIELD} is {written(value[:80])}, which is no date as it is read here",
               "write year, month and day: 2026-12-01")  # fmt: skip


def _start(value: object) -> str:
    """An ISO date, or a time counted from the beginning of the plan."""
    if isinstance(value, str) and parse_date(value) is not None:
        return value
    _demand_no_other_date(value)
    try:
        duration_s = units.parse_duration(value, field=FIELD)
    except UnitError as error:
        refuse(error.reference, error.message, 'write a date, "2026-12-01", or a delay, "10 days"')
    if duration_s > _CENTURY_S:
        refuse("out-of-range", f"{FIELD} is {value}; it must be at most 1200 months", 'write "10 days"')
    return str(value)


def _deadline(value: object) -> float | str:
    """An ISO date, or a time counted from the start."""
    if isinstance(value, str) and parse_date(value) is not None:
        return value
    _demand_no_other_date(value)
    seconds: float = _positive_time.func(value)  # type: ignore[call-arg]  # it takes no info
    return seconds


def _confidence(value: object) -> float:
    """The share that a percentile from p50 to p99 names."""
    if not isinstance(value, str) or not re.fullmatch(r"p[5-9]\d", value):
        number = re.fullmatch(r"p?(?:0\.)?([5-9]\d)", str(value).removesuffix("%").strip())
        refuse("out-of-range", f"{FIELD} is {written(value)[:80]}; it must be a percentile from p50 to p99",
               f"write p{number[1] if number else 90}")  # fmt: skip
    return int(value[1:]) / 100.0


Name = Annotated[
    str,
    BeforeValidator(_name),
    WithJsonSchema({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$", "$comment": "name"}),
]
Title = Annotated[str, BeforeValidator(_title)]
Pattern = Annotated[str, BeforeValidator(_pattern), WithJsonSchema({"type": "string", "$comment": "name or pattern"})]
FilePath = Annotated[str, BeforeValidator(_path), WithJsonSchema({"type": "string", "$comment": "path"})]
Date = Annotated[
    str,
    BeforeValidator(date_of),
    WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d\d-\d\d", "$comment": "date"}),
]
Deadline = Annotated[
    float | str,
    BeforeValidator(_deadline),
    WithJsonSchema({"anyOf": [_TIME_SCHEMA.json_schema, {"type": "string", "pattern": f"^{DATE.pattern}$"}]}),
]
Start = Annotated[str, BeforeValidator(_start), WithJsonSchema({"type": "string", "$comment": "date or time"})]
Confidence = Annotated[
    float,
    BeforeValidator(_confidence),
    WithJsonSchema({"type": "string", "pattern": r"^p[5-9]\d$", "examples": ["p90"]}),
]


# ---- branches ----------------------------------------------------------------------------------

Item = TypeVar("Item")


def _as_tuple(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, tuple):
        return value
    refuse("wrong-type", f"{FIELD} is {written(value)}; it wants a list", "start each item with '- ', or write [a, b]")


def _one_or_many(value: object) -> object:
    """A single value counts as a list of one."""
    many = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not many:
        refuse("out-of-range", f"{FIELD} is an empty list; it needs at least one item", "leave the field out")
    if len(many) != len({repr(item) for item in many}):
        refuse("out-of-range", f"{FIELD} names something twice", "name each item once")
    return many


Many = Annotated[tuple[Item, ...], BeforeValidator(_as_tuple)]
OneOrMany = Annotated[tuple[Item, ...], BeforeValidator(_one_or_many)]

BatchSize = tuple[str, float]  # ("tokens" | "sequences", amount)


def _batch_size(value: object) -> BatchSize:
    """An amount of tokens or of sequences; a bare number could be either."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = f"{value:.0f}" if float(value).is_integer() else f"{value!r}"
        refuse("missing-unit", f"{FIELD} needs a unit: tokens or sequences",
               f'write "{shown} tokens" or "{shown} sequences"')  # fmt: skip
    text = value if isinstance(value, str) else ""
    unit = "sequences" if "seq" in text else "tokens"
    if text and not re.search(r"[A-Za-z]{3}", text):
        refuse("missing-unit", f"{FIELD} needs a unit: tokens or sequences",
               f'write "{text.strip()} tokens" or "512 sequences"')  # fmt: skip
    try:
        amount = (units.parse_sequences if unit == "sequences" else units.parse_tokens)(value, field=FIELD)
    except UnitError as error:
        refuse(error.reference, error.message, error.hint)
    if not 1 <= amount <= 1e12 or (unit == "sequences" and not math.isclose(amount, round(amount))):
        refuse("out-of-range", f"{FIELD} is {text}; it must be whole and from 1 to 1e12", 'write "4M tokens"')
    return unit, amount


BatchBound = Annotated[BatchSize, BeforeValidator(_batch_size), _text_schema(
    "[kMBT]? ?(tokens?|sequences?)", "4M tokens")]  # fmt: skip
