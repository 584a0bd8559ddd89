"""Rows of exact integers and fractions written in floating point so that they say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from planner.candidates.program import IntArray
from planner.optimize.model import SMALLEST, Model

TARGET = 5  # scaled objectives and money rows are of order 10**TARGET
SMALL = 10_000  # integer rows whose reduced numbers stay below this are left as they are


def power(value: float) -> float:
    """Power of ten that brings a value to the order of 10**TARGET; 1 for zero."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    return float(10.0 ** (TARGET - math.floor(math.log10(value))))


def at_least(
    model: Model, prefix: str, variables: Sequence[int], coefficients: Sequence[Fraction | int], need: Fraction
) -> None:
    """A row of fractions: brought to small integers if that is possible, else to at most 1.

    In the latter case half a step of room (the left side moves in steps of 1 / `parts`)
    says the same in integers; what is too small to see is left out on the safe side.

    Parameters
    ----------
    model
        Takes the line.
    prefix
        Its family.
    variables, coefficients
        One coefficient for each variable.
    need
        What the sum must reach at least.
    """
    parts = math.lcm(need.denominator, *(each.denominator for each in coefficients))
    whole = [each.numerator * (parts // each.denominator) for each in coefficients]
    divisor = math.gcd(*whole) or 1
    least = math.ceil(need * parts / divisor)
    reduced = [each // divisor for each in whole]
    largest = max((abs(each) for each in reduced), default=0)
    if max(largest, least) <= SMALL:
        model.line(prefix, variables, reduced, low=least)
        return
    values = [each / largest if largest else 0.0 for each in reduced]
    low = (least - 0.5) / largest if largest else 1.0
    low += sum(-each for each in values if -SMALLEST < each < 0)
    model.line(prefix, variables, [each if abs(each) >= SMALLEST else 0.0 for each in values], low=low)


def at_most(model: Model, prefix: str, variables: IntArray, weights: IntArray, bound: int) -> None:
    """An integer row; see `all_at_most`.

    Parameters
    ----------
    model
        Takes the line.
    prefix
        Its family.
    variables, weights
        One weight for each variable, none of them zero; at least one.
    bound
        What the sum may reach at most.
    """
    ends = np.array([0, len(weights)], dtype=np.int64)
    all_at_most(model, prefix, ends, variables, weights, np.array([bound], dtype=np.int64))


def all_at_most(
    model: Model, prefix: str, starts: IntArray, variables: IntArray, weights: IntArray, bounds: IntArray
) -> None:
    """Integer rows: each divided by its common divisor, then by a power of ten if numbers are large.

    A large row gets half a unit of room: in integers it says the same, and presolve cannot
    lose its last digit.

    Parameters
    ----------
    starts
        Row r has the entries `starts[r]:starts[r + 1]`, at least one each, none of them zero.
    """
    if not len(bounds):
        return
    lengths, first = np.diff(starts), starts[:-1]
    divisors = np.gcd.reduceat(np.abs(weights), first)
    reduced, most = weights // np.repeat(divisors, lengths), bounds // divisors
    largest = np.maximum(np.abs(most), np.maximum.reduceat(np.abs(reduced), first))
    scales = np.array([1.0 if each <= SMALL else power(float(each)) for each in largest.tolist()])
    high = (most + np.where(largest <= SMALL, 0.0, 0.5)) * scales
    model.add_lines(prefix, starts, variables, reduced * np.repeat(scales, lengths), high=high)


def not_above_zero(model: Model, prefix: str, variables: Sequence[int] | IntArray, weights: Sequence[int]) -> None:
    """sum(weight * variable) <= 0 with weights of either sign: reduced, and at most 1 if they are large.

    Parameters
    ----------
    model
        Takes the line.
    prefix
        Its family.
    variables, weights
        One weight for each variable, a whole number of any size.
    """
    divisor = reduce(math.gcd, weights, 0) or 1
    reduced = [weight // divisor for weight in weights]
    largest = max((abs(each) for each in reduced), default=0)
    scale = 1.0 if largest <= SMALL else 1.0 / largest
    model.line(prefix, variables, [each * scale for each in reduced], high=0.0)


def never(model: Model, prefix: str) -> None:
    """A line that nothing meets."""
    model.line(prefix, [0], [1.0], low=model.upper[0] + 1.0)
