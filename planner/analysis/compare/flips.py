"""The price at which a decision flips back: of a price that moved it, and of the runner-up.

*A price that moved.* All else as in B, let p be the price of one offer, and z(p) the least cost: the lower envelope of
one line per plan, cost = rest + hours of the offer × p, so concave and piecewise linear. B's plan x is on it at B's
price, and not at A's price, where another plan y is cheaper. From y on: p' is where the lines of x and y meet. The
envelope at p' lies on or below both; when it is no lower, p' is the price at which x stops being best. Otherwise the
best plan at p' takes the place of y, and its line meets that of x nearer to B's price. No plan comes twice, so this
ends, with a plan as good as x at p' as the proof. Prices are whole micro-dollars an hour, so p' is right to one.

Where a limit on money leaves plans out at some prices only, the envelope need not be concave. So what was found is
tried a thousandth to either side, and told as unproven when the decision does not flip between the two.

*The runner-up* is the best plan with another decision (`plan.others.decisions`): the machines of some provider given up
for some workload, on some price model; the same machines a region further are no other decision. The share of their
prices at which its offers would win is `optimize.break_even`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from planner.analysis.compare.cause import LEVELS
from planner.analysis.compare.changes import Change
from planner.analysis.compare.outcome import Outcome
from planner.analysis.compare.resolve import Question, Resolver
from planner.analysis.others.decisions import decision_of, unlike
from planner.analysis.others.other_plans import Key, Labels, parts_of, told_apart
from planner.candidates.offers import Site
from planner.candidates.search import Candidates
from planner.candidates.shared_nodes import NODES
from planner.carriers import dataclass
from planner.optimize.break_even import break_even
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution

TRIED = Fraction(1, 2000)  # to either side of a price: together within 0.1 %
MOST_STEPS = 60
DEAREST = 10**12  # micro-USD an hour of a shape: no offer costs a million dollars an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """The price of an offer at which the decision of B stops being the best.  [micro-USD/h of a shape]"""

    offer: str
    price_microusd: int
    below: bool  # B's decision is the best below this price (else above)
    proven: bool


def flip_price(resolver: Resolver, number: int, level: str) -> Flip | None:
    """Where B's decision flips back as the price of one changed offer goes from B's to A's; None when it does not.

    Parameters
    ----------
    resolver
        Answers questions between A and B.
    number
        Of the change; None is told unless it is of a price, or an offer that came or went.
    level
        Of decisions, at which A and B differ; any but what, where and how: layouts tell them apart.

    Raises
    ------
    ExhaustedError
        Too many questions were asked.
    """
    change, full = resolver.between.changes[number], resolver.outcome(resolver.every)
    far = resolver.outcome(resolver.every - {number})
    if change.kind not in ("price", "added", "removed") or _decided(far, level) == _decided(full, level):
        return None
    if full.cost_microusd is None or far.cost_microusd is None:
        return None  # a price decides whether there is a plan at all: a limit on money, which has its own break-even
    price = _crossing(resolver, change, full, far, level)
    if price is None:
        return None
    below = change.new is not None and change.new <= price
    question = _with_offer(resolver, number)
    near, beyond = (_at(resolver, question, change, price, side if below else -side) for side in (-TRIED, TRIED))
    flips = _decided(near, level) == _decided(full, level) != _decided(beyond, level)
    return Flip(offer=change.id, price_microusd=price, below=below, proven=flips and full.settled)


def _with_offer(resolver: Resolver, number: int) -> Question:
    """B's question in which the offer is to be had."""
    removed = resolver.between.changes[number].kind == "removed"
    return resolver.every - {number} if removed else resolver.every


def _at(resolver: Resolver, question: Question, change: Change, price: int, aside: Fraction = Fraction(0)) -> Outcome:
    return resolver.outcome(question, {change.id: max(1, round(price * (1 + aside)))})


def _decided(outcome: Outcome, level: str) -> object:
    return getattr(outcome, level) if level in LEVELS else outcome.how


def _crossing(resolver: Resolver, change: Change, full: Outcome, far: Outcome, level: str) -> int | None:
    """The iteration of the module's proof."""
    number = resolver.between.changes.index(change)
    question = _with_offer(resolver, number)
    mine = _line(full, change.id, change.new)
    other = _line(far, change.id, change.old)
    found: int | None = None
    for _ in range(MOST_STEPS):
        rest, slope = mine[0] - other[0], other[1] - mine[1]
        if slope == 0:
            return found
        price = round(rest / slope)
        if not 0 < price < DEAREST or price == found:
            return found
        found = price
        best = _at(resolver, question, change, price)
        if best.cost_microusd is None or best.cost_microusd >= mine[0] + mine[1] * price - 1:
            return found
        other = _line(best, change.id, price)
    return found


def _line(outcome: Outcome, offer: str, price: int | None) -> tuple[Fraction, Fraction]:
    """What a plan costs beside an offer, and how many shape-hours it takes of it."""
    spend = outcome.spend_microusd.get(offer, 0)
    hours = Fraction(spend, price) if price else Fraction(0)
    return Fraction((outcome.cost_microusd or 0) - spend), hours


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """The best plan with another decision, and the share of its offers' prices at which it would win."""

    cost_microusd: int
    offers: tuple[tuple[str, str, str, int], ...]  # workload, offer, device, shapes: where it decides otherwise
    prices: tuple[tuple[str, int, int], ...]  # offer, micro-USD an hour of a shape, devices of the shape
    share: Fraction | None
    proven: bool


def runner_up(candidates: Candidates, solution: Solution, asker: Asker) -> RunnerUp | None:
    """The runner-up of a solved question; None when there is no other decision, or cost is not what counts first.

    Parameters
    ----------
    candidates
        The ways of the question, with the rates that it was solved with.
    solution
        Its best plan.
    asker
        How further programs are solved.
    """
    if candidates.program.objective[0] != "cost" or not solution.has_plan or candidates.spaces:
        return None
    labels = Labels(key=_machines)
    part = told_apart(candidates, labels, nodes=False)
    best = asker.cheapest(part.program)
    if not best.has_plan:
        return None
    taken = decision_of(part.program, labels.of(part), best.units)
    second = asker.cheapest(unlike(part.program, labels.of(part), [taken]))
    if not second.has_plan:
        return None
    mine = _rented(part, best.units)
    rented = _rented(part, second.units[: part.program.column_count])
    before = {site.offer.id for _, site, _ in mine}
    new = {site.offer.id: site for _, site, _ in rented if site.offer.id not in before}
    share, proven = _winning_share(candidates, set(new), best.cost_microusd, asker)
    return RunnerUp(
        cost_microusd=second.cost_microusd,
        offers=tuple(
            (name, site.offer.id, site.device.id, nodes)
            for name, site, nodes in rented
            if (name, site, nodes) not in mine
        ),
        prices=tuple(
            (name, site.offer.price_microusd_per_hour, site.shape.devices) for name, site in sorted(new.items())
        ),
        share=share,
        proven=proven and str(second.status) == "optimal",
    )


def _machines(candidates: Candidates, workload: str, row: int) -> Key:
    """Provider, device and price model: what tells runners-up apart."""
    sites = [site for site, _ in parts_of(candidates, workload, row)]
    found = sorted((site.offer.provider, site.device.id, site.offer.price_model) for site in sites)
    return tuple(word for one in found for word in one)


def _rented(part: Candidates, units: np.ndarray) -> list[tuple[str, Site, int]]:
    """What each workload rents: a site and how many nodes there, of each of its parts."""
    found = []
    for task in part.program.tasks:
        for column in np.flatnonzero(units[task.first : task.stop]) + task.first if task.kind != "optional" else ():
            parts, taken = parts_of(part, task.name, int(part.rows[column])), int(units[column])
            if part.shared is not None and part.shared.is_share(int(column)):
                ((site, _),) = parts
                parts = [(site, -(-int(part.shared.devices[column]) * taken // site.shape.devices))]  # at least
                taken = 1
            found += [(task.name, site, nodes * taken) for site, nodes in parts]
    return found


def _winning_share(candidates: Candidates, offers: set[str], best: int, asker: Asker) -> tuple[Fraction | None, bool]:
    """The share of their prices at which some offers would be in the best plan.

    Columns that pay other offers as well stay at their full cost, so where there are any the share may be higher.
    """
    whole, partly = replace(candidates.whole, objective=("cost",)), False
    priced = np.zeros(whole.column_count, dtype=bool)
    for task in whole.tasks:
        if task.kind != "optional":
            for column in range(task.first, task.stop):
                parts = parts_of(candidates, task.name, int(candidates.whole_rows[column]))
                paid = {site.offer.id for site, _ in parts}
                priced[column] = paid <= offers
                partly |= bool(paid & offers) and not priced[column]
        elif task.name == NODES and candidates.whole_shared is not None:
            shared = candidates.whole_shared
            for column in range(task.first, task.stop):
                priced[column] = shared.sites[int(shared.site[column])].offer.id in offers
    if not priced.any():
        return None, False
    found = break_even(whole, priced, best, asker=asker)
    return found.share, found.proven and not partly
