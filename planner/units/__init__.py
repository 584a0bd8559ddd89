"""Quantities as people write them <-> numbers in base units; ambiguity is refused.

Parsing is exact (`Fraction` inside): "0.1 GB" is 100,000,000 bytes, not 99,999,999.99.
Suffixes are case-sensitive where SI is: k M B T count things, kB MB GB TB are 10^3,
KiB MiB GiB TiB are 2^10; a month is 730 h. Money is integer micro-dollars.
"""

from planner.units.currency import KNOWN as CURRENCIES
from planner.units.currency import NO_RATES, Rates
from planner.units.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_money,
    format_money_rate,
    format_number,
    format_percent,
    format_rate_bytes,
)
from planner.units.parsing import (
    UnitError,
    parse_bytes,
    parse_carbon_intensity,
    parse_change,
    parse_count,
    parse_duration,
    parse_energy_price,
    parse_exact,
    parse_flop_rate,
    parse_fraction,
    parse_latency,
    parse_mass,
    parse_money,
    parse_number,
    parse_parameters,
    parse_power,
    parse_price,
    parse_rate_bytes,
    parse_request_rate,
    parse_sequences,
    parse_token_rate,
    parse_tokens,
)

__all__ = [
    "CURRENCIES",
    "NO_RATES",
    "Rates",
    "UnitError",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_money",
    "format_money_rate",
    "format_number",
    "format_percent",
    "format_rate_bytes",
    "parse_bytes",
    "parse_carbon_intensity",
    "parse_change",
    "parse_count",
    "parse_duration",
    "parse_energy_price",
    "parse_exact",
    "parse_flop_rate",
    "parse_fraction",
    "parse_latency",
    "parse_mass",
    "parse_money",
    "parse_number",
    "parse_parameters",
    "parse_power",
    "parse_price",
    "parse_rate_bytes",
    "parse_request_rate",
    "parse_sequences",
    "parse_token_rate",
    "parse_tokens",
]
