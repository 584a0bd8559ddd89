"""Which change moved the decision, or the money: each group of changes alone, then each change of the groups that do.

*Alone* is A with the change, *without* is B less it. A change is **enough** when alone it leads to B's decision, and
**needed** when B without it decides otherwise. One that is enough is a cause by itself. When none is, the changes
that are left after every one that can go has gone (deletion: halves first, then one by one) are a set that leads to B's
decision together, and of which none can be spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Literal

from planner.analysis.compare.model import Level, Said, Verdict
from planner.analysis.compare.outcome import NOTHING, Items, Outcome
from planner.analysis.compare.resolve import ExhaustedError, Resolver
from planner.carriers import dataclass

Same = Callable[[Outcome, Outcome], bool]
LEVELS: tuple[Level, ...] = (
    "what",
    "where",
    "how",
)  # of decisions, the most important first: machines, places, layouts
MOST_PASSES = 3  # of deletion one by one: where changes work against each other, one pass may not be enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What some changes do: alone to A, and missing in B; None where nothing is, by the claims of `resolve`."""

    numbers: tuple[int, ...]
    alone: Outcome | None
    without: Outcome | None


@dataclass(slots=True, kw_only=True)
class Cause:
    """What moved the decision.

    Parameters
    ----------
    level
        what | where | how | cost | none: the first thing that differs.
    verdict
        single | together | unknown | none.
    numbers
        The single changes that are enough, or the smallest set found.
    """

    level: Level
    verdict: Verdict = "unknown"
    numbers: tuple[int, ...] = ()
    proven: bool = True  # the set cannot be made smaller; nothing was cut short
    groups: dict[str, Effect] = field(default_factory=dict)
    effects: dict[int, Effect] = field(default_factory=dict)


def find_cause(resolver: Resolver) -> Cause:
    """The cause of what sets B's plan apart from A's; cut short when too many questions would have to be solved."""
    base, full = resolver.outcome(()), resolver.outcome(resolver.every)
    level = _level(base, full)
    cause = Cause(level=level)
    if level == "none" or not (base.known and full.known):
        cause.verdict = "none" if level == "none" else "unknown"
        return cause
    same = _same(level)
    try:
        _try_groups(resolver, cause)
        _try_singles(resolver, cause, base, full)
        enough = [n for n, e in cause.effects.items() if e.alone is not None and same(e.alone, full)]
        if enough:
            cause.verdict, cause.numbers = (
                "single",
                tuple(sorted(enough, key=lambda n: _rank(cause.effects[n], full, same))),
            )
        else:
            _smallest_set(resolver, cause, base, full, same)
    except ExhaustedError:
        cause.proven = False
    return cause


def _level(base: Outcome, full: Outcome) -> Level:
    for level in LEVELS:
        if getattr(base, level) != getattr(full, level):
            return level
    return "cost" if base.cost_microusd != full.cost_microusd else "none"


def _same(level: Level) -> Same:
    """Whether two outcomes are the same in what the comparison is about."""
    if level == "cost":
        return lambda one, other: one.how == other.how and one.cost_microusd == other.cost_microusd
    return lambda one, other: bool(getattr(one, level) == getattr(other, level))


def _rank(effect: Effect, full: Outcome, same: Same) -> tuple[bool, int]:
    """Changes that are also needed first, then as they came."""
    needed = effect.without is not None and not same(effect.without, full)
    return not needed, effect.numbers[0]


def _try_groups(resolver: Resolver, cause: Cause) -> None:
    groups: dict[str, list[int]] = {}
    for number, change in enumerate(resolver.between.changes):
        groups.setdefault(change.group, []).append(number)
    for name, numbers in groups.items():
        cause.groups[name] = _effect(resolver, numbers)


def _effect(resolver: Resolver, numbers: Sequence[int]) -> Effect:
    return Effect(numbers=tuple(numbers), alone=resolver.alone(numbers), without=resolver.without(numbers))


def _try_singles(resolver: Resolver, cause: Cause, base: Outcome, full: Outcome) -> None:
    """Every change of the groups that do anything."""
    for group in cause.groups.values():
        if _acts(group.alone, base) or _acts(group.without, full):
            for number in group.numbers:
                cause.effects[number] = group if len(group.numbers) == 1 else _effect(resolver, (number,))


def _acts(outcome: Outcome | None, start: Outcome) -> bool:
    """Whether changes move anything: where, how, or what it costs."""
    if outcome is None:
        return False
    return outcome.how != start.how or outcome.cost_microusd != start.cost_microusd or not outcome.known


def _smallest_set(resolver: Resolver, cause: Cause, base: Outcome, full: Outcome, same: Same) -> None:
    """The changes that none can be spared of, by deletion: first all that do nothing, then halves, then one by one."""

    def holds(numbers: Sequence[int]) -> bool:
        return same(resolver.outcome(numbers), full)

    cause.verdict = "together"
    kept = cause.numbers = tuple(sorted(resolver.every))
    acting = [n for n, e in sorted(cause.effects.items()) if _acts(e.alone, base) or _acts(e.without, full)]
    for fewer in (tuple(acting), tuple(sorted(cause.effects))):
        if fewer and len(fewer) < len(kept) and holds(fewer):
            kept = cause.numbers = fewer
            break
    for part in _parts(len(kept)):
        for _ in range(MOST_PASSES if part == 1 else 1):
            before, place = kept, 0
            while place < len(kept) and len(kept) > 1:
                rest = kept[:place] + kept[place + part :]
                if rest and holds(rest):
                    kept = cause.numbers = rest
                else:
                    place += part
            if kept == before:
                break
    if len(kept) == 1:
        cause.verdict = "single"
    for number in kept:
        if number not in cause.effects:
            cause.effects[number] = _effect(resolver, (number,))


def _parts(count: int) -> Iterator[int]:
    """Halves, quarters, ... down to one."""
    part = count // 2
    while part > 1:
        yield part
        part //= 2
    yield 1


def said_of(outcome: Outcome | None, start: Outcome, base: Outcome, full: Outcome, level: Level) -> Said:
    """What an outcome says beside where it started: which decision it is, of which workloads, and what it costs.

    Parameters
    ----------
    outcome
        With some changes; None: it was not tried, since it is that of the start.
    start
        What the changes were applied to, or taken out of: `base` or `full`.
    base, full
        A and B.
    level
        At which A and B differ; where only the cost does, or nothing, decisions are told apart down to their layouts.
    """
    outcome = outcome or start
    if not outcome.known:
        return {"decision": "unknown", "workloads": [], "problem": outcome.problem, "cost_usd": None, "moved_usd": None}
    part = level if level in LEVELS else "how"
    decided, old, new = (getattr(one, part) for one in (outcome, base, full))
    cost, begun = outcome.cost_microusd, start.cost_microusd
    return {
        "decision": _which(decided, old, new),
        "workloads": sorted(
            name for name in names_of(old | new) if _of(decided, name) == _of(new, name) != _of(old, name)
        ),
        "problem": "",
        "cost_usd": None if cost is None else cost / 1e6,
        "moved_usd": None if cost is None or begun is None else (cost - begun) / 1e6,
    }


def _which(decided: Items, old: Items, new: Items) -> Literal["new", "old", "same", "other"]:
    if decided == old == new:
        return "same"
    return "new" if decided == new else "old" if decided == old else "other"


def names_of(decided: Items) -> set[str]:
    """Workloads of a decision; "" for what is bought for all."""
    return {str(item[0]) for item in decided if item not in NOTHING}


def _of(decided: Items, name: str) -> Items:
    return frozenset(item for item in decided if item[0] == name)
