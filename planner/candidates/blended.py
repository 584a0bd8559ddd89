"""What replicas carry of a mix of requests within its targets, worked out where it may matter.

Percentiles of a mix take the distribution of its waits, a thousand times what moments take. So each replica starts
with a bound that is cheap: the rate at which its slots are full, whatever that does to latencies; of a mix of one class
the moments say it all. Of layouts that cost the same (equal machines, shapes and replicas: a *set*) only the best
counts. Sets are taken by the cost of a fleet on one of them alone, at their bounds; a layout that is too late already
at the rate at which that would cost as much as a fleet that is known has that rate as its bound. What no such fleet
comes near stays bounded and is no less true for it: a plan is made of exact rates only (`planner.analysis.tighten` asks
for those that it wants), a proof may rest on either (`planner.plan.certificate.settled`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.registry import FloatOrArray, as_float
from planner.estimate.resolve_serving import Requests
from planner.estimate.serving import ServingMemory
from planner.estimate.serving_fleet import (
    FleetAsk,
    Replicas,
    full_load,
    keeps_targets,
    keeps_targets_idle,
    load_within_targets,
)

Rows = NDArray[np.int64]
Values = NDArray[np.float64]
FIRST = 2  # layouts that set the first known cost
BELOW = 1 - 1e-9  # a rate that was too late is not carried


def endless() -> bool:
    """No time is ever up."""
    return False


class AloneCost(Protocol):
    """What a fleet on one kind of replica alone costs."""

    def at(self, rows: Rows, requests_per_s: Values) -> Values:
        """On each of some layouts at a rate of each; infinite where it carries nothing."""

    def rate_below(self, rows: Rows, most: float) -> Values:
        """The least rate of one replica at which that is at most so much; infinite where none is.  [1/s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """Rates of replicas side by side on one mix; exact or bounded from above.

    Parameters
    ----------
    set_of
        Number of the set of each layout, (n,).
    """

    ask: FleetAsk
    share: float  # of what fills its slots that may be planned of a replica
    replicas: Replicas
    requests: Requests  # one row: the mix
    memory: ServingMemory  # (n,) with the mix
    batch: Values  # (n,)
    set_of: Rows
    full: Values  # (n,) [1/s] at which its slots are taken, whatever that does to latencies
    bound: Values  # (n,) [1/s] no layout carries more
    exact: NDArray[np.bool_]  # (n,)
    carried: Values  # (n,) [1/s] at which a layout is known to keep its targets
    found: dict[int, float]  # exact rates that were asked for of such layouts, for whatever question  [1/s]

    @classmethod
    def of(
        cls, ask: FleetAsk, share: float, replicas: Replicas, requests: Requests, memory: ServingMemory, able: Rows,
        set_of: Rows,
    ) -> Blend:  # fmt: skip
        """Bounds of all layouts; 0, exactly, of those that are not `able`; exact where the mix is one class.

        Parameters
        ----------
        ask
            What is asked of every replica, its targets among it.
        share
            The fleet's target load.
        replicas
            (n,) one of each layout.
        requests
            The mix, in one row.
        memory
            (n,) of each replica with the mix.
        able
            Numbers of the layouts that hold the mix and whose times are known.
        set_of
            (n,) number of the set of each layout: those that cost the same.
        """
        batch = np.array(np.broadcast_to(as_float(memory.batch), set_of.shape))
        bound, exact = np.zeros(len(batch)), np.ones(len(batch), dtype=bool)
        one, each = requests.classes is None, _repeated(requests, len(able))
        some, slots = replicas.take(able), batch[able]
        full = np.zeros(len(batch))
        full[able] = _rates(full_load(ask, some, each, slots), len(able))
        bound[able] = full[able]
        if one:
            bound[able] = _rates(load_within_targets(ask, some, each, slots), len(able))
        exact[able[full[able] > 0]] = one
        return cls(
            ask=ask,
            share=share,
            replicas=replicas,
            requests=requests,
            memory=memory,
            batch=batch,
            set_of=set_of,
            full=full,
            bound=bound,
            exact=exact,
            carried=bound * one,
            found=replicas.recalled("found", ask, dict[int, float], requests, batch),
        )

    @property
    def able(self) -> NDArray[np.bool_]:
        """Layouts that may keep the targets at some rate, (n,)."""
        return self.bound > 0

    def guess(self, rows: Rows) -> Values:
        """Rates of some layouts within the targets by the moments of the mix alone: a guess, no bound.  [1/s]"""
        open_rows = rows[~self.exact[rows]]
        each = replace(_repeated(self.requests, len(open_rows)), classes=None, share=None)
        found = load_within_targets(self.ask, self.replicas.take(open_rows), each, self.batch[open_rows])
        rates = np.where(self.exact, self.bound, 0.0)
        rates[open_rows] = _rates(found, len(open_rows))
        return np.asarray(rates[rows])

    def searched(
        self,
        cost: AloneCost,
        among: Rows | None = None,
        below: float = np.inf,
        over: Callable[[], bool] = endless,
        guessed: Values | None = None,
    ) -> Blend:
        """Exact rates of what the cheapest fleet on one kind of replica alone would be made of.

        Parameters
        ----------
        among
            Layouts to choose from; left out: all, and then also those that cost the same.
        below
            Fleets that cost more are not looked for.
        over
            Whether the time for it is up.
        guessed
            What a fleet on each layout costs by the moments of the mix; left out: it is worked out.
        """
        rows = np.arange(len(self.bound)) if among is None else among
        known, best = self, np.inf
        guessed = cost.at(rows, self.guess(rows)) if guessed is None else guessed
        for place in np.argsort(guessed, kind="stable")[: FIRST if among is None else 1].tolist():
            if np.isfinite(guessed[place]):
                known = known.exactly([int(rows[place])])
        if among is None and not np.isfinite(cost.at(rows, np.where(known.exact, known.bound, 0.0)[rows])).any():
            known = known._idle()
        exact = rows[known.exact[rows]]
        best = float(np.min(cost.at(exact, known.bound[exact]), initial=below))
        hoped = cost.at(rows, known.bound[rows])
        for place in np.argsort(hoped, kind="stable").tolist():
            row = int(rows[place])
            if hoped[place] > best or (hoped[place] >= best and among is not None):
                break
            if known.exact[row]:
                continue
            if over():
                return known
            known = known._tried(row, float(cost.rate_below(rows[[place]], best)[0]))
            if known.exact[row]:
                best = min(best, float(cost.at(rows[[place]], known.bound[[row]])[0]))
        exact = rows[known.exact[rows]]
        paid = cost.at(exact, known.bound[exact])
        return known.settled(int(exact[np.argmin(paid)])) if np.isfinite(paid).any() else known

    def _idle(self) -> Blend:
        """The same where those that miss a target at any rate are known to carry nothing."""
        rows = np.flatnonzero(~self.exact)
        each, some = _repeated(self.requests, len(rows)), self.replicas.take(rows)
        late = rows[~keeps_targets_idle(self.ask, some, each, self.batch[rows])]
        bound, exact = self.bound.copy(), self.exact.copy()
        bound[late], exact[late] = 0.0, True
        return replace(self, bound=bound, exact=exact)

    def _tried(self, row: int, wanted: float) -> Blend:
        """Bounded below a rate that is wanted where that is too late, else exact."""
        if wanted >= self.bound[row]:
            return self if not np.isfinite(wanted) else self.exactly([row])
        known = self.asked(row, wanted)
        return known if known.bound[row] < wanted else known.exactly([row])

    def asked(self, row: int, requests_per_s: float) -> Blend:
        """Whether a layout carries a rate: it does from now on, or is bounded below it."""
        if requests_per_s <= self.carried[row] or requests_per_s > self.bound[row]:
            return self
        late = self._late(row, requests_per_s)
        changed = (self.bound if late else self.carried).copy()
        changed[row] = requests_per_s * (BELOW if late else 1.0)
        return replace(self, bound=changed) if late else replace(self, carried=changed)

    def _late(self, row: int, requests_per_s: float) -> bool:
        """Whether more requests than a target allows are late at a rate."""
        one, batch = self.replicas.take(np.array([row])), self.batch[[row]]
        return not keeps_targets(self.ask, one, self.requests, batch, np.array([requests_per_s])).all()

    def exactly(self, rows: Sequence[int]) -> Blend:
        """The same with the exact rates of some layouts; each by itself, as the verifier works it out."""
        bound, exact, carried = self.bound.copy(), self.exact.copy(), self.carried.copy()
        for row in rows:
            if not exact[row]:
                if row not in self.found:
                    one = self.replicas.take(np.array([row]))
                    found = load_within_targets(self.ask, one, self.requests, self.batch[[row]])
                    self.found[row] = float(_rates(found, 1)[0])
                bound[row] = carried[row] = self.found[row]
                exact[row] = True
        return replace(self, bound=bound, exact=exact, carried=carried)

    def known(self) -> Blend:
        """The same with all exact rates that were worked out, for whatever question."""
        return self.exactly(list(self.found))

    def settled(self, row: int) -> Blend:
        """Exact as far as the best layout of the set of a row is known."""
        known = self
        while True:
            best = known.best()[known.set_of[row]]
            if known.exact[best]:
                return known
            known = known.exactly([int(best)])

    def best(self) -> Rows:
        """The layout of each set of which most may be planned, or at most, an exact one first, then the first."""
        planned = np.minimum(self.bound, self.full * self.share)
        order = np.lexsort((np.arange(len(self.bound)), ~self.exact, -self.bound, -planned))
        _, first = np.unique(self.set_of[order], return_index=True)
        return np.asarray(order[first], dtype=np.int64)


def _repeated(requests: Requests, count: int) -> Requests:
    """One mix for each of so many replicas."""
    each: dict[str, Any] = {name: np.repeat(getattr(requests, name), count) for name in Requests.measures()}
    return replace(requests, **each)


def _rates(requests_per_s: FloatOrArray, count: int) -> Values:
    """The rate of each of so many replicas; 0 where there is none.  [1/s]"""
    rate = np.broadcast_to(as_float(requests_per_s), (count,))
    return np.where(np.isfinite(rate), rate, 0.0)
