"""The least whole number that works, where whatever works for a number works for every larger one."""

from __future__ import annotations

from collections.abc import Callable


def least_that_works(guess: int, works: Callable[[int], bool], most: int) -> int | None:
    """The least whole number from 1 on that works, 0 known not to, from a guess that is most often right.

    Monotone: what works for a number works for every larger one. None when not even `most` does.

    Parameters
    ----------
    guess
        Tried first; at least 1.
    works
        Whether a number does.
    most
        No larger number is tried, but for the guess.
    """
    if works(guess):
        if guess == 1 or not works(guess - 1):
            return guess
        low, high = 0, guess - 1
    else:
        low, high, step = guess, min(guess + 1, most), 1
        while not works(high):
            if high >= most:
                return None
            low, step = high, step * 2
            high = min(guess + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def least_from_below(works: Callable[[int], bool], most: int) -> int | None:
    """The least whole number from 1 to `most` that works, 0 known not to; None when not even `most` does.

    That is asked first: where something else is in the way, nobody doubles a step until he knows.

    Examples
    --------
    >>> least_from_below(lambda number: number >= 7, 100), least_from_below(lambda number: False, 100)
    (7, None)
    """
    if most < 1 or not works(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high
