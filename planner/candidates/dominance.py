"""Which columns others of their family cover: the comparison behind `prune`, on whole arrays.

A sheet holds, for every column that may be dominated, what the claim of `prune` compares. Joint rows
that touch few columns of a task are not spread out into dense rows times columns: a column keeps a short
list of the rows that it touches (its *signature*) with its coefficients there.

1. *Champions*: the best column of a family or signature by some score, against all others of it.
2. Columns with one signature are sorted best first and compared with each other.
3. A column with fewer rows may stand in for one that touches all of these and more (rows that
   cannot bind are not in any signature, so that is how columns of different pools meet).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, Row
from planner.carriers import dataclass

Numbers = IntArray | NDArray[np.float64]
Mask = NDArray[np.bool_]
CHAMPIONS = (0.0, 0.3, 3.0)  # weights of the sizes beside the first criterion
PAIRS = 4_000_000  # compared at a time
MOST_PAIRS = 200_000_000  # compared between signatures; more are left alone, which only prunes less
DENSE = 8  # rows of a task that are spread out in full
WIDE = 64  # signatures with more columns are gone through one by one...
PASSES = 2000  # ...as far as this; fewer only prunes less


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Columns side by side, as dominance sees them; all arrays have one entry for each."""

    linear: tuple[IntArray, ...]  # linear criteria in chain order: less is better
    cost: int  # which of them is the cost
    tie_microusd: int  # the most by which costs may differ and be equal
    sizes: tuple[Numbers, ...]  # quantities that must all be <=
    rows: IntArray  # (layers, m) sparse joint rows touched, ascending; -1 = no more
    uses: IntArray  # (layers, m) coefficients there, all > 0
    family: IntArray  # only columns of one family are compared
    enough: Mask  # may stand in for others

    def only(self, kept: IntArray) -> Sheet:
        """Some of the columns."""
        return Sheet(
            cost=self.cost,
            tie_microusd=self.tie_microusd,
            linear=tuple(key[kept] for key in self.linear),
            sizes=tuple(size[kept] for size in self.sizes),
            rows=self.rows[:, kept],
            uses=self.uses[:, kept],
            family=self.family[kept],
            enough=self.enough[kept],
        )

    def covers(self, first: IntArray, second: IntArray) -> Mask:
        """Given that `first` comes earlier: whether it is nowhere larger, sparse rows apart, and no worse in a tie.

        Coming earlier it is better at the first criterion that tells them apart, or equal and first in canonical order.
        Where that is the cost, by so little that a plan may be as cheap, those after it must not say otherwise.
        """
        fine = self.enough[first]
        for size in self.sizes:
            fine &= size[first] <= size[second]
        if not self.tie_microusd:
            return np.asarray(fine)
        cost = self.linear[self.cost]
        near = fine & (cost[first] < cost[second]) & (cost[second] - cost[first] <= self.tie_microusd)
        for key in self.linear[: self.cost]:
            near &= key[first] == key[second]
        if near.any():
            doubtful = np.flatnonzero(near)
            better = self._better_in_a_tie(np.broadcast_to(first, near.shape)[doubtful], second[doubtful])
            fine[doubtful] = better
        return np.asarray(fine)

    def _better_in_a_tie(self, first: IntArray, second: IntArray) -> Mask:
        """Whether the first criterion after the cost that differs is better; no where none does."""
        better, open_ = np.zeros(len(first), dtype=bool), np.ones(len(first), dtype=bool)
        for key in self.linear[self.cost + 1 :]:
            better |= open_ & (key[first] < key[second])
            open_ &= key[first] == key[second]
        return better


@dataclass(slots=True, kw_only=True)
class Touched:
    """Joint rows by column: those that most columns of a task touch in full, others as short lists."""

    dense: list[IntArray]  # (n,) each; a task has its own meaning for each
    taken: IntArray  # (tasks,) how many of these it uses
    rows: IntArray  # (layers, n) as in `Sheet`
    uses: IntArray

    @classmethod
    def of(cls, program: Program, task: IntArray, rows: list[Row], asked: Mask) -> Touched:
        """Spread out the rows of a program; `task` is the task of each column, `asked` those that matter.

        Parameters
        ----------
        program
            Its columns and tasks; its own rows do not count.
        task
            (n,) number of the task of each column.
        rows
            Joint rows that may bind.
        asked
            (n,) columns that may be dominated; coefficients of others are left out.
        """
        n, tasks = program.column_count, len(program.tasks)
        sizes = np.array([each.stop - each.first for each in program.tasks], dtype=np.int64)
        depth, none = np.zeros(n, dtype=np.int64), np.zeros((0, n), dtype=np.int64)
        table = cls(dense=[], taken=np.zeros(tasks, dtype=np.int64), rows=none, uses=none)
        for number, row in enumerate(rows):
            used = (row.coefficients != 0) & asked[row.columns]
            columns, uses = _some(row.columns, used), _some(row.coefficients, used)
            owner = task[columns]
            counts = np.bincount(owner, minlength=tasks)
            many = (2 * counts > sizes) & (table.taken < DENSE)
            many[owner[uses < 0]] = True  # a supply is compared with the zero of those without it
            full, slots = many[owner], table.taken[many & (counts > 0)]
            for slot in range(int(slots.min(initial=0)), int(slots.max(initial=-1)) + 1):
                here = full & (table.taken == slot)[owner]
                table._slot(slot, n)[_some(columns, here)] = _some(uses, here)
            table.taken[many & (counts > 0)] += 1
            columns, uses = _some(columns, ~full), _some(uses, ~full)
            layers = depth[columns]
            for layer in range(int(layers.min(initial=n)), int(layers.max(initial=-1)) + 1):
                if layer == len(table.rows):
                    table.rows = np.vstack([table.rows, np.full((1, n), -1, dtype=np.int64)])
                    table.uses = np.vstack([table.uses, np.zeros((1, n), dtype=np.int64)])
                here = _some(columns, layers == layer)
                table.rows[layer, here], table.uses[layer, here] = number, _some(uses, layers == layer)
            depth[columns] = layers + 1
        return table

    def add(self, task: int, part: slice, size: IntArray) -> None:
        """One more quantity of a task.

        Parameters
        ----------
        task
            Its number.
        part
            Columns of the task.
        size
            Of each of these; less is better.
        """
        self._slot(int(self.taken[task]), self.rows.shape[1])[part] = size
        self.taken[task] += 1

    def _slot(self, slot: int, n: int) -> IntArray:
        while slot >= len(self.dense):
            self.dense.append(np.zeros(n, dtype=np.int64))
        return self.dense[slot]


def _some(values: IntArray, mask: Mask) -> IntArray:
    return values if mask.all() else values[mask]


def undominated(sheet: Sheet, order: Callable[[IntArray], IntArray]) -> IntArray:
    """Places that no other column dominates, ascending.

    Parameters
    ----------
    order
        Sorts places by the canonical order; asked only for those that are equal at first sight.
    """
    kept = np.arange(len(sheet.family))
    # columns of one family that touch the same sparse rows
    segment = compressed(sheet.family, *sheet.rows)
    for weight in CHAMPIONS:
        left = np.flatnonzero(~_beaten(sheet, segment, weight))
        sheet, segment, kept = sheet.only(left), segment[left], kept[left]
    rank = np.empty(len(kept), dtype=np.int64)
    rank[_best_first(sheet, lambda places: np.searchsorted(kept, order(kept[places])))] = np.arange(len(kept))
    ordered = np.lexsort((rank, segment))
    sheet, segment, kept, rank = sheet.only(ordered), segment[ordered], kept[ordered], rank[ordered]
    alive = ~_later_copies(sheet, segment)
    small, part, kept, rank = sheet.only(np.flatnonzero(alive)), segment[alive], kept[alive], rank[alive]
    alive = np.ones(len(kept), dtype=bool)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(part)) + 1, [len(part)]])
    for first, second in _pairs_within(bounds):
        alive[second[small.covers(first, second) & _uses_less(small, first, second)]] = False
    for start, stop in pairwise(bounds):
        if stop - start > WIDE:
            _thin_out(small, alive, int(start), int(stop))
    small, part, kept, rank = small.only(np.flatnonzero(alive)), part[alive], kept[alive], rank[alive]
    alive = np.ones(len(kept), dtype=bool)
    for second in _beaten_elsewhere(small, part, rank):
        alive[second] = False
    return np.sort(kept[alive])


def compressed(*labels: IntArray) -> IntArray:
    """One number from 0 for each combination of labels."""
    joined = labels[0] - labels[0].min(initial=0)
    for label in labels[1:]:
        span = int(label.max(initial=0)) - int(label.min(initial=0)) + 1
        if (int(joined.max(initial=0)) + 1) * span >= 2**62:
            joined = np.unique(joined, return_inverse=True)[1].reshape(-1).astype(np.int64)
        joined = joined * span + (label - label.min(initial=0))
    if int(joined.max(initial=0)) > 4 * len(joined) + 1000:
        joined = np.unique(joined, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.asarray(joined, dtype=np.int64)


def _beaten(sheet: Sheet, segment: IntArray, weight: float) -> Mask:
    """Columns that their segment's champion dominates for sure.

    The champion has the least first criterion, to which sizes are added with a weight, each as a
    share of its mean.
    """
    if not sheet.enough.any():
        return np.zeros(len(segment), dtype=bool)
    score = sheet.linear[0].astype(np.float64)
    if weight:
        score /= score.mean() or 1.0
        for size in (*sheet.sizes, *sheet.uses)[:4]:
            score += weight * (size / (np.abs(size).mean() or 1.0))
    score[~sheet.enough] = np.inf
    least = np.full(int(segment.max()) + 1, np.inf)
    np.minimum.at(least, segment, score)
    champion = np.zeros(len(least), dtype=np.int64)
    winners = np.flatnonzero(score == least[segment])
    champion[segment[winners]] = winners
    first = champion[segment]
    margin = sheet.tie_microusd if sheet.cost == 0 else 0
    beaten = (sheet.linear[0] - sheet.linear[0][first] > margin) & sheet.enough[first]
    for size in (*sheet.sizes, *sheet.uses):
        beaten &= size[first] <= size
    return np.asarray(beaten)


def _best_first(sheet: Sheet, order: Callable[[IntArray], IntArray]) -> IntArray:
    """Places sorted by family, linear criteria, canonical order."""
    family, cost = sheet.family, sheet.linear[0]
    ranked = np.lexsort((cost, family))
    same = np.zeros(len(family), dtype=bool)
    same[1:] = (family[ranked[1:]] == family[ranked[:-1]]) & (cost[ranked[1:]] == cost[ranked[:-1]])
    same[:-1] |= same[1:]
    where = np.flatnonzero(same)
    if len(where):
        members = ranked[where]
        place = np.empty(len(family), dtype=np.int64)
        place[order(np.sort(members))] = np.arange(len(members))
        keys = (place[members], *(key[members] for key in reversed(sheet.linear)), family[members])
        ranked[where] = members[np.lexsort(keys)]
    return np.asarray(ranked)


def _later_copies(sheet: Sheet, segment: IntArray) -> Mask:
    """Of neighbours in sorted order, those that the one before covers: most copies go at once."""
    first = np.arange(len(segment) - 1) if len(segment) else np.zeros(0, dtype=np.int64)
    later = np.zeros(len(segment), dtype=bool)
    if len(first):
        fine = (segment[:-1] == segment[1:]) & sheet.covers(first, first + 1) & _uses_less(sheet, first, first + 1)
        later[1:] = fine
    return later


def _uses_less(sheet: Sheet, first: IntArray, second: IntArray) -> Mask:
    """Whether `first` uses no more of the sparse rows that both touch, being of one signature."""
    fine = np.ones(len(first), dtype=bool)
    for use in sheet.uses:
        fine &= use[first] <= use[second]
    return fine


def _pairs_within(bounds: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """All pairs (earlier, later) of places in the same segment, of segments that are not wide."""
    lengths = np.diff(bounds)
    for length in np.unique(lengths[(lengths > 1) & (lengths <= WIDE)]).tolist():
        starts = bounds[:-1][lengths == length]
        first, second = np.triu_indices(length, 1)
        at_once = max(1, PAIRS // len(first))
        for begin in range(0, len(starts), at_once):
            here = starts[begin : begin + at_once, None]
            yield (here + first).ravel(), (here + second).ravel()


def _thin_out(sheet: Sheet, alive: Mask, start: int, stop: int) -> None:
    """A wide segment: one column after another against all later ones that are left."""
    places = np.arange(start, stop)
    done = 0
    while done + 1 < len(places) and done < PASSES:
        first, rest = places[done], places[done + 1 :]
        done += 1
        if sheet.enough[first]:
            first = np.broadcast_to(first, rest.shape)
            gone = sheet.covers(first, rest) & _uses_less(sheet, first, rest)
            if gone.any():
                alive[rest[gone]] = False
                places = np.concatenate([places[:done], rest[~gone]])


def _beaten_elsewhere(sheet: Sheet, segment: IntArray, rank: IntArray) -> Iterator[IntArray]:
    """Columns that one of the same family with fewer rows dominates."""
    if not len(sheet.rows):
        return
    starts = (
        np.concatenate([[0], np.flatnonzero(np.diff(segment)) + 1]) if len(segment) else np.zeros(0, dtype=np.int64)
    )
    lengths = np.diff(np.append(starts, len(segment)))
    budget = MOST_PAIRS
    for small, large in _nested(sheet.rows[:, starts], sheet.family[starts]):
        counts = lengths[small] * lengths[large]
        budget -= int(counts.sum())
        if budget < 0:
            return
        cuts = np.searchsorted(np.cumsum(counts), np.arange(PAIRS, counts.sum() + PAIRS, PAIRS), side="left") + 1
        for chunk in np.split(np.arange(len(counts)), np.unique(np.minimum(cuts, len(counts)))):
            first, second = _crossed(starts, lengths, small[chunk], large[chunk])
            if not len(first):
                continue
            fine = rank[first] < rank[second]
            first, second = first[fine], second[fine]
            fine = sheet.covers(first, second)
            first, second = first[fine], second[fine]
            for row, use in zip(sheet.rows, sheet.uses):
                fine = (row[first] < 0) | (use[first] <= _use_of(sheet, row[first], second))
                first, second = first[fine], second[fine]
            yield second


def _crossed(starts: IntArray, lengths: IntArray, small: IntArray, large: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs of places of pairs of segments."""
    counts = lengths[small] * lengths[large]
    pair = np.repeat(np.arange(len(small)), counts)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = lengths[large][pair]
    return starts[small][pair] + within // np.maximum(width, 1), starts[large][pair] + within % np.maximum(width, 1)


def _use_of(sheet: Sheet, row: IntArray, columns: IntArray) -> IntArray:
    """Coefficient of each column in a row; 0 where it does not touch it."""
    found = np.zeros(len(columns), dtype=np.int64)
    for rows, uses in zip(sheet.rows, sheet.uses):
        found = np.where(rows[columns] == row, uses[columns], found)
    return found


def _nested(rows: IntArray, family: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of signatures (small, large) of one family, small a proper part of large, a batch at a time.

    A signature can only be part of those that share its first row, or of any when it is empty.
    """
    layers, count = rows.shape
    size = (rows >= 0).sum(axis=0)
    width = int(rows.max(initial=-1)) + 2
    keys = [family * width + 1 + row for row in rows]  # of family and row; the row -1 comes first
    entries = np.concatenate([np.where(row >= 0, key, -1) for row, key in zip(rows, keys)])
    owner = np.tile(np.arange(count), layers)
    # every signature also stands under its family alone, for the empty one
    entries, owner = np.concatenate([entries, family * width]), np.concatenate([owner, np.arange(count)])
    owner, entries = owner[entries >= 0], entries[entries >= 0]
    ordered = np.argsort(entries, kind="stable")
    owner, entries = owner[ordered], entries[ordered]
    anchor = np.where(size > 0, keys[0], family * width)
    low, high = np.searchsorted(entries, anchor, "left"), np.searchsorted(entries, anchor, "right")
    counts = high - low
    at_once = np.searchsorted(np.cumsum(counts), np.arange(PAIRS, counts.sum() + PAIRS, PAIRS), side="left") + 1
    for chunk in np.split(np.arange(count), np.unique(np.minimum(at_once, count))):
        small = np.repeat(chunk, counts[chunk])
        offset = np.arange(len(small)) - np.repeat(np.cumsum(counts[chunk]) - counts[chunk], counts[chunk])
        large = owner[low[small] + offset] if len(small) else small
        fine = size[small] < size[large]
        small, large = small[fine], large[fine]
        for row in rows:
            inside = (rows[:, large] == row[small]).any(axis=0) | (row[small] < 0)
            small, large = small[inside], large[inside]
        if len(small):
            yield small, large
