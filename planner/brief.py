"""What things call themselves: short, whatever they hold; and who draws them, which is said above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

LONGEST = 400  # characters
_views: dict[tuple[str, str], Callable[..., Any]] = {}  # by name of a class and form


def brief(kind: str, *facts: object) -> str:
    """`<Kind fact, fact>`, cut where it gets long; what is empty is left out."""
    told = ", ".join(str(fact) for fact in facts if fact not in ("", None))
    whole = f"<{kind} {told}>" if told else f"<{kind}>"
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 2]}…>"


def some(names: Iterable[object], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    found = [str(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def shows(kind: str, form: str, view: Callable[..., Any]) -> None:
    """Say what draws things of a class: a room above theirs, which they need not know.

    Parameters
    ----------
    kind
        Name of the class.
    form
        html, frame.
    view
        Takes the thing, and what else its caller gives.
    """
    _views[kind, form] = view


def shown(thing: object, form: str, *given: object) -> Any:
    """A thing as a notebook or a table shows it; None where nobody has said how."""
    view = _views.get((type(thing).__name__, form))
    return None if view is None else view(thing, *given)
