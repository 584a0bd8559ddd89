"""Types of fields that hold money: amounts, prices of hours, energy, tokens and bytes, and rates of currencies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, PlainValidator, ValidationInfo, WithJsonSchema

from planner import units
from planner.scenario.fields import DATE, FIELD, NUMBER, date_of, refuse, text_of, written
from planner.units import UnitError

_SUM = rf"({NUMBER}|[0-9]{{1,3}}(,[0-9]{{3}})+(\.[0-9]+)?)"
_SIGN = r"((US)?\$|[€£₹]|[A-Z]{3})"  # or the code of a currency, before an amount or after it
_AMOUNT = rf"^ *({_SIGN} *{_SUM}|{_SUM} *[A-Z]{{3}})"
_MONEY_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": rf"^ *({_SIGN} *{_SUM} *[kKM]?|{_SUM} *([kM]? *[A-Z]{{3}}|[kKM])) *$",
        "examples": ["$60000"],
    }
)
_ENERGY_PRICE_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": f"{_AMOUNT} */ *[kM]Wh *$",
        "examples": ["$0.12/kWh"],
    }
)
_PRICE_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": f"{_AMOUNT} */ *(s|min|h|hour|day|month|year) *$",
        "examples": ["$2.49/h"],
    }
)


def _money(parse: Callable[..., int], most: int) -> BeforeValidator:
    def check(value: object, info: ValidationInfo) -> int:
        rates = (info.context or {}).get("rates", units.NO_RATES)
        try:
            number = parse(value, field=FIELD, rates=rates)
        except UnitError as error:
            refuse(error.reference, error.message, error.hint)
        if number > most:
            says = f"at most {units.format_money(most)}"
            refuse("out-of-range", f"{FIELD} is {value}; it must be {says}", f"write a value {says}")
        return number

    return BeforeValidator(check)


def _price_per_tokens(value: object, info: ValidationInfo) -> str:
    """The price as it is written; one in another currency in dollars."""
    text = text_of(value, '"$0.90 /1M output tokens"')
    amount, slash, per = (part.strip() for part in text.rpartition("/"))
    if not slash or not re.fullmatch(r"1[kMB] (input |output )?tokens", per):
        refuse("wrong-type", f"{FIELD} is {written(text[:80])}, which is no price of tokens",
               'write "$0.90 /1M output tokens"')  # fmt: skip
    usd = _usd_per(amount, f" /{per}", info)
    return text if re.fullmatch(r"\$\d+(\.\d+)?", amount) else f"${usd:.12g} /{per}"


def _usd_per(amount: str, per: str, info: ValidationInfo) -> float:
    """Dollars of an amount of money before what it is for."""
    try:
        return units.parse_money(amount, field=FIELD, rates=(info.context or {}).get("rates", units.NO_RATES)) / 1e6
    except UnitError as error:
        refuse(error.reference, error.message, re.sub(r'"([^"]+)"', rf'"\1{per}"', error.hint))


def _price_per(unit: str, noun: str, example: str) -> BeforeValidator:
    """Dollars for each of a unit."""

    def read(value: object, info: ValidationInfo) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            refuse("missing-unit", f"{FIELD} needs a unit: $/{unit}", f'write "${value:g}/{unit}"')
        text = text_of(value, f'"{example}"')
        amount, slash, per = (part.strip() for part in text.rpartition("/"))
        if not slash or per != unit:
            refuse("wrong-type", f"{FIELD} is {written(text[:80])}, which is no {noun}", f'write "{example}"')
        return _usd_per(amount, f"/{unit}", info)

    return BeforeValidator(read)


Money = Annotated[int, _MONEY_SCHEMA, _money(units.parse_money, 10**18)]
Price = Annotated[int, _PRICE_SCHEMA, _money(units.parse_price, 10**15)]
EnergyPrice = Annotated[int, _ENERGY_PRICE_SCHEMA, _money(units.parse_energy_price, 10**12)]
PricePerTokens = Annotated[
    str,
    BeforeValidator(_price_per_tokens),
    WithJsonSchema({"type": "string", "examples": ["$0.90 /1M output tokens"]}),
]
StoragePrice = Annotated[
    float,
    _price_per("GB-month", "price of storage", "$0.023/GB-month"),
    WithJsonSchema({"type": "string", "pattern": f"{_AMOUNT} */ *GB-month *$", "examples": ["$0.023/GB-month"]}),
]
TransferPrice = Annotated[
    float,
    _price_per("GB", "price of a transfer", "$0.09/GB"),
    WithJsonSchema({"type": "string", "pattern": f"{_AMOUNT} */ *GB *$", "examples": ["$0.09/GB"]}),
]
_DEAREST = 4  # dollars for one unit of any currency that is read: more is how many of them a dollar buys


def rates_of(value: object) -> units.Rates:
    """Dollars for one unit of other currencies, {EUR: 1.08, as_of: 2026-11-01}; or that all is in dollars.

    Raises
    ------
    PydanticCustomError
        A currency is unknown, a rate no number above zero, or the day of the rates is left out.
    """
    example = "write currency: {EUR: 1.08, as_of: 2026-11-01}, dollars for one EUR"
    if value in ("USD", "EUR"):  # totals in euros are refused apart (`not_yet`)
        return units.NO_RATES
    if not isinstance(value, dict):
        refuse("unknown-value", f"{FIELD} is {written(value)}; it wants USD, or rates to the dollar", example)
    rates: dict[str, float] = {}
    for code, rate in value.items():
        if code == "as_of":
            continue
        if code not in units.CURRENCIES:
            meant = str(code).upper() if str(code).upper() in units.CURRENCIES else ""
            hint = f"write {meant}" if meant else "write a code such as " + ", ".join(units.CURRENCIES[:4])
            refuse("unknown-value", f"{FIELD}: there is no currency {written(code)} with a rate to the dollar", hint)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 1e-6 <= rate <= 1e6:
            refuse(
                "out-of-range", f"{FIELD}: one {code} is {written(rate)} dollars; it must be a number above 0", example
            )
        if rate > _DEAREST:
            hint = f"{example}; where one dollar is {rate:g} {code}: {code}: {1 / rate:.4g}"
            refuse(
                "out-of-range", f"{FIELD}: one {code} is {written(rate)} dollars, which none of these is worth", hint
            )
        rates[code] = float(rate)
    if not rates:
        refuse("missing-field", f"{FIELD} holds no rate", example)
    as_of = value.get("as_of")
    if not isinstance(as_of, str) or not DATE.fullmatch(as_of):
        refuse("missing-field", f"{FIELD} lacks the day of its rates", "add as_of: 2026-11-01")
    return units.Rates(dollars=rates, as_of=date_of(as_of, f"as_of of {FIELD}")[:10])


_RATE_SCHEMA_OF_ONE = {"type": "number", "exclusiveMinimum": 0}
_CURRENCY_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"enum": ["USD", "EUR"], "type": "string"},
            {
                "type": "object",
                "properties": {"as_of": {"type": "string"}, **dict.fromkeys(units.CURRENCIES, _RATE_SCHEMA_OF_ONE)},
                "required": ["as_of"],
                "additionalProperties": False,
            },
        ]
    }
)
Currency = Annotated[units.Rates, _CURRENCY_SCHEMA, PlainValidator(rates_of)]
