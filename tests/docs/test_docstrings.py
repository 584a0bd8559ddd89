"""Docstrings of equations are taken apart without losing a word."""

from __future__ import annotations

import docstrings
import pytest
from model_pages import equation_rooms

from planner.equations.registry import REGISTRY


def sample(first: float, second: float) -> float:
    """Sum of two
    numbers.

    Parameters
    ----------
    first, second
        Numbers a and b, which may be [negative], or not at all so
        long.  [USD]

    Returns
    -------
    The sum.  [USD/h]

    Notes
    -----
    Eq. (1):  c = a + b
              and no more

    Prose that says why.
    Eq. (2):  c = b + a

    References
    ----------
    [1] Somebody, "A title
        that goes on," 1999.
    [2] Another.

    Examples
    --------
    >>> sample(1, 2)
    3
    """
    return first + second


def test_every_part_is_found() -> None:
    told = docstrings.documented(sample)
    assert told.summary == "Sum of two numbers."
    assert told.arguments == (
        docstrings.Argument(
            names="first, second", text="Numbers a and b, which may be [negative], or not at all so long.", unit="USD"
        ),
    )
    assert (told.returns.text, told.returns.unit) == ("The sum.", "USD/h")
    assert told.notes == (
        "Eq. (1):  c = a + b\n          and no more",
        "Prose that says why.",
        "Eq. (2):  c = b + a",
    )
    assert [docstrings.is_equation(note) for note in told.notes] == [True, False, True]
    assert told.references == ('Somebody, "A title that goes on," 1999.', "Another.")
    assert told.example == ">>> sample(1, 2)\n3"


@pytest.mark.parametrize("identifier", sorted(one for ids in equation_rooms().values() for one in ids))
def test_no_word_of_an_equation_is_lost(identifier: str) -> None:
    function = REGISTRY[identifier]
    told = docstrings.documented(function)
    assert any(map(docstrings.is_equation, told.notes)), "state the equation: Eq. (1):  ..."
    kept = [told.summary, told.returns.text, told.returns.unit, *told.notes, *told.references, told.example]
    kept += [text for argument in told.arguments for text in (argument.names, argument.text, argument.unit)]
    words = " ".join(kept)
    titles = {"Parameters", "Returns", "Notes", "References", "Examples"}
    for word in (function.__doc__ or "").split():
        bare = word.strip("[].;")
        assert bare in titles or set(word) == {"-"} or bare.isdigit() or bare in words, word
