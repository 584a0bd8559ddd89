"""Quantities of the command line: read as in scenarios, refused in the name of their flag."""

from __future__ import annotations

from collections.abc import Callable

from planner.cli import clock
from planner.cli.frame import usage
from planner.deadline import Deadline


def share_of(text: str, flag: str = "--gap", example: str = "0.1%") -> float:
    """A share of at least 0 and below 1; the example is what to write instead of another.

    Parameters
    ----------
    text
        As it was given.
    flag
        What it was given to.
    example
        Such a share, as one is written for it.
    """
    from planner import units

    share = _quantity(units.parse_fraction, text, flag)
    if not 0 <= share < 1:
        meant = f"{share:g}%" if 1 <= share < 100 and "%" not in text else example
        raise usage("out-of-range", f"{flag} is {text}; it must be at least 0 and below 1", f'write "{meant}"')
    return share


def time_of(text: str | None, flag: str = "--time-limit") -> float | None:
    """A time above 0 in seconds, or None."""
    from planner import units

    if text is None:
        return None
    if text.strip().replace(".", "", 1).isdecimal():
        raise usage("missing-unit", f"{flag} needs a unit of time", f'write "{text.strip()} s"')
    seconds = _quantity(units.parse_duration, text, flag)
    if seconds <= 0:
        raise usage("out-of-range", f"{flag} is {text}; it must be above 0", 'write "60s"')
    return seconds


def deadline_of(text: str | None) -> Deadline | None:
    """--time-limit, running since the command began; None where there is none."""
    limit_s = time_of(text)
    return None if limit_s is None else Deadline.after(limit_s, began_s=clock.began_s())


def money_of(text: str, flag: str) -> int:
    """Money of at least 0 in micro-dollars."""
    from planner import units

    amount = int(_quantity(units.parse_money, text, flag))
    if amount < 0:
        raise usage("out-of-range", f"{flag} is {text}; it must be at least 0", 'write "$500"')
    return amount


def _quantity(parse: Callable[..., float], text: str, flag: str) -> float:
    from planner.units import UnitError

    try:
        return parse(text, field=flag)
    except UnitError as error:
        raise usage(error.reference, error.message, error.hint) from None
