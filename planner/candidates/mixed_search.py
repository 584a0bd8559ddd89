"""Which mixes are worth having at some prices of the joint limits: exact, without a solver.

A mix x takes a block of each of at least two sources. With W its weighed prices per hour, s its best speed, L the
sequences of the whole run and P what its shapes are charged by the joint limits,

    V(x) = hours(x) W(x) + traffic(x) + P(x),    hours(x) >= h(x) = L g(x) (1 / s(x) + sync(x) / B) / 3600,

since the groups get through a batch B in B / s at best (s sums the best speed of each block at any share of the
batch), reduce gradients in sync(x) at least, and lose g(x) >= 1 to waiting for each other and to size; failures,
checkpoints and what bills add to a run only add to it. So v(x) = h W + traffic + P <= V(x) is a bound: without limits
a ratio of two sums.

**The least v** is found by Dinkelbach's iterations [1]: for a guess t a mix with (v(x) - t) s(x) < 0 is looked for;
its v is the next guess; when there is none, t is the least v. Each guess is the v of a mix, guesses fall strictly,
mixes are finitely many: the iterations end, at the minimum.

**The inner problem** is a walk over the sources, a block of each or none, all blocks of a source at once as arrays
(`mixed_walk`). A mix found is the next guess at once: what was passed over so far had v >= an earlier, higher guess.
The same walk lists every mix with v up to a value when the guess is left where it is.

**The least V** then is exact: mixes with v <= the least V found so far are evaluated from the lowest v on with whole
micro-batches, failures and money rounded as it is paid, until v passes the least V.

References
----------
[1] W. Dinkelbach, "On Nonlinear Fractional Programming," Management Science 13 (7), 1967.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.candidates.mixed import Block, Source, Split, best_split, facts_of
from planner.candidates.mixed_walk import MOST_MIXES, MOST_STEPS, ROUNDING, Choice, MixedJob, Prices, Walk
from planner.candidates.money import DEAREST_MICROUSD, rental_microusd
from planner.carriers import dataclass
from planner.estimate.mixed import joined_run, traffic_usd_per_step
from planner.estimate.run import run_overheads

MOST_VAIN = 400  # mixes that are evaluated, from the least v on, before one is legal

__all__ = ["Mix", "MixedJob", "Prices", "cheapest", "evaluate", "least_bound", "listed", "wall_time_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A mix evaluated: how it shares the batch, how long it takes, what it costs."""

    choice: Choice
    split: Split
    busy_s: float  # of all optimizer steps
    wall_s: float
    cost_microusd: tuple[int, ...]  # of each group, its traffic included
    traffic_microusd: tuple[int, ...]  # of each group
    carbon_mg: int

    def value(self, job: MixedJob, prices: Prices) -> float:
        """V at some prices."""
        charged = sum(prices.node[s] * job.sources[s].blocks[b].nodes for s, b in self.choice)
        return prices.cost * sum(self.cost_microusd) + prices.carbon * self.carbon_mg + float(charged)


def evaluate(job: MixedJob, choice: Choice, *, within_s: float = math.inf) -> Mix | None:
    """A mix as it is paid for; None when it cannot share the batch, or is late, or takes longer than `within_s`.

    Parameters
    ----------
    job
        What may be mixed.
    choice
        The mix.
    within_s
        Limit of all optimizer steps together, failures and checkpoints apart.  [s]
    """
    chosen = [(job.sources[s], job.sources[s].blocks[b]) for s, b in choice]
    margin = max(source.time_margin for source, _ in chosen)
    longest = min(within_s, job.deadline_s / margin)
    split = best_split(chosen, job.batches, job.between, within_s_per_sequence=longest / job.sequences)
    if split is None:
        return None
    busy_s = job.sequences * split.s_per_sequence
    facts = facts_of(chosen, max(pace.gradient_bytes for pace in split.paces))
    wall_s = wall_time_s(job, busy_s, chosen)
    if not wall_s * margin <= job.deadline_s:
        return None
    steps = job.sequences / split.batch * job.batches.factor(split.batch)
    hours = wall_s / 3600.0
    traffic = tuple(round(usd * steps * 1e6) for usd in traffic_usd_per_step(facts, job.between))
    dollars = sum(block.nodes * source.price_microusd_per_hour for source, block in chosen) * hours
    if dollars + sum(traffic) > DEAREST_MICROUSD:
        return None
    rents = [
        rental_microusd(
            block.nodes, source.price_microusd_per_hour, hours, source.bill.seconds(hours) if source.bill else None
        )
        for source, block in chosen
    ]
    carbon = sum(block.nodes * source.carbon_mg_per_hour for source, block in chosen) * hours
    return Mix(
        choice=choice,
        split=split,
        busy_s=busy_s,
        wall_s=wall_s,
        cost_microusd=tuple(rent + sent for rent, sent in zip(rents, traffic)),
        traffic_microusd=traffic,
        carbon_mg=round(carbon),
    )


def wall_time_s(job: MixedJob, busy_s: float, chosen: Sequence[tuple[Source, Block]]) -> float:
    """Wall time of a run on some groups: failures, checkpoints and what size costs included.  [s]

    Parameters
    ----------
    job
        Size of its checkpoints.
    busy_s
        Time of all optimizer steps.  [s]
    chosen
        Source and block of each group; where nothing is known to fail, nothing is added.
    """
    run = joined_run(facts_of(chosen))
    if run is None:
        return busy_s
    devices = sum(block.devices for _, block in chosen)
    return busy_s + float(run_overheads(busy_s, devices, job.checkpoint_bytes, run).total)


def cheapest(job: MixedJob, prices: Prices, cutoff: float) -> tuple[Mix | None, float]:
    """The mix with the least V below a cutoff, and a bound: no mix has a V below it.

    Parameters
    ----------
    job
        What may be mixed.
    prices
        What money, carbon and shapes weigh.
    cutoff
        A mix is of use only below it; infinite = any.

    Returns
    -------
    The mix, None where none was found below the cutoff; and the bound, at most the cutoff.
    """
    start, complete = least_bound(job, prices, cutoff)
    if start is None:
        return None, complete
    best = evaluate(job, start)
    value = min(cutoff, best.value(job, prices) if best else math.inf)
    best = best if best and best.value(job, prices) < cutoff else None
    found, complete = listed(job, prices, value)  # a walk that was given up says so itself
    for number, (bound, choice) in enumerate(found):
        if bound > value * (1 + ROUNDING):
            return best, value
        if best is None and number == MOST_VAIN:  # all of them late, or without whole shares
            return None, min(value, bound)
        mix = evaluate(job, choice)
        if mix is not None and mix.value(job, prices) < value:
            best, value = mix, mix.value(job, prices)
    return best, min(value, complete)


def least_bound(job: MixedJob, prices: Prices, cutoff: float) -> tuple[Choice | None, float]:
    """The mix with the least bound v, by Dinkelbach's iterations; None when none has a v below the cutoff.

    The second value is a bound of what was not looked at: the cutoff, unless the walk was given up.

    Parameters
    ----------
    job
        What may be mixed.
    prices
        What money, carbon and shapes weigh.
    cutoff
        First guess of the iterations; infinite = none.
    """
    pairs = Walk(job=job, prices=prices, guess=cutoff, least=True, groups=2)  # a good first guess
    pairs.run()
    walk = Walk(job=job, prices=prices, guess=pairs.guess, least=True, found=pairs.found)
    walk.run()
    walk.complete = min(walk.complete, cutoff) if walk.steps > MOST_STEPS else cutoff
    return (walk.found[0][1] if walk.found else None), walk.complete


def listed(
    job: MixedJob, prices: Prices, cutoff: float, most: int = MOST_MIXES
) -> tuple[list[tuple[float, Choice]], float]:
    """Every mix with a bound v up to a cutoff, by v; and the v up to which that is complete.

    Parameters
    ----------
    job
        What may be mixed.
    prices
        What money, carbon and shapes weigh.
    cutoff
        Highest bound of interest.
    most
        Beyond twice as many only so many with the lowest bounds are kept, and the list is complete up to the last.
    """
    walk = Walk(job=job, prices=prices, guess=cutoff, least=False, most=most)
    walk.run()
    return sorted(walk.found), walk.complete
