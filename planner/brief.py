"""What things call themselves: short, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 400  # characters


def brief(kind: str, *facts: object) -> str:
    """`<Kind fact, fact>`, cut where it gets long; what is empty is left out."""
    told = ", ".join(str(fact) for fact in facts if fact not in ("", None))
    whole = f"<{kind} {told}>" if told else f"<{kind}>"
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 2]}…>"


def some(names: Iterable[object], most: int = 5) -> str:
    """The first of some names, and how many more there are."""
    found = [str(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
