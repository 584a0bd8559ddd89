"""Planted price changes: is the one that moves the decision named, and is its break-even price right to 0.1 %?

Run ``python benchmarks/compare.py [--plantings N] [--offers N] [--seed S] [SCENARIO ...]``. Each planting has a catalog
of 380 offers: a random choice of the shipped ones, with those that the plan uses. One price is changed so that the plan
rents something else: an offer that it does not use becomes cheaper, or one that it uses dearer, in few steps.

*one*: all others stay. *all*: every other price moves by up to 0.2 %, too little to move anything: the ways are solved
with these moves alone, and with the planted change alone, and another planting is drawn where they do.

Named: the planted change is the one cause that `plan compare` finds. Break-even: the planted price is put 0.1 % to
either side of the price told, and both catalogs are planned from the start (`enumerate_candidates`, `optimize`): on one
side the decision of B must be the best, on the other it must not.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner import api
from planner.analysis.compare.outcome import Outcome, outcome_of
from planner.analysis.compare.side import Side
from planner.analysis.tighten import solve_within_targets
from planner.candidates.reprice import offers_in_play, repriced
from planner.candidates.search import Candidates
from planner.catalog.frozen import digest_of
from planner.catalog.model import Catalog
from planner.scenario.schema import Scenario

SCENARIOS = ("scenarios/llama.yaml", "scenarios/old-cards.yaml", "scenarios/tpu.yaml")
CHEAPER, DEARER = (0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05), (1.1, 1.3, 1.6, 2.0, 3.0, 5.0)
NOISE, APART = 0.002, 0.001
Prices = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """One price that was changed, and what every other one was multiplied by."""

    scenario: Scenario
    before: Catalog
    offer: str
    price: int
    noise: Prices

    def catalog(self, *, price: int | None = None, noise: bool) -> Catalog:
        """The catalog with the planted price (None: as it was), and with the small moves."""
        prices = dict(self.noise) if noise else {}
        prices.pop(self.offer, None)
        return priced(self.before, prices | ({} if price is None else {self.offer: price}))


def priced(catalog: Catalog, prices: Prices) -> Catalog:
    """A catalog with other prices, under its own digest."""
    offers = tuple(
        replace(offer, price_microusd_per_hour=prices[offer.id]) if offer.id in prices else offer
        for offer in catalog.offers
    )
    changed = replace(catalog, offers=offers)
    return replace(changed, digest=digest_of(changed))


def outcome(scenario: Scenario, catalog: Catalog) -> Outcome:
    """The best plan, from the start."""
    return _solved(api.enumerate_candidates(scenario, catalog))


def _solved(listed: Candidates) -> Outcome:
    return outcome_of(*solve_within_targets(listed, lambda asked: api.optimize(asked.program)), untouched=True)


def plantings(scenario: Scenario, shipped: Catalog, count: int, offers: int, seed: int) -> Iterator[Planting]:
    """Prices that move the decision, drawn until there are enough."""
    rng, used = random.Random(seed), outcome(scenario, shipped).used
    while count:
        planted = _drawn(scenario, shipped, used, offers, rng)
        if planted is not None:
            yield planted
            count -= 1


def _drawn(
    scenario: Scenario, shipped: Catalog, used: frozenset[str], offers: int, rng: random.Random
) -> Planting | None:
    others = [offer for offer in shipped.offers if offer.id not in used]
    there = used & {offer.id for offer in shipped.offers}
    kept = {offer.id for offer in rng.sample(others, offers - len(there))} | there
    before = replace(shipped, offers=tuple(offer for offer in shipped.offers if offer.id in kept))
    before = replace(before, digest=digest_of(before))
    listed = api.enumerate_candidates(scenario, before)
    base = _solved(listed)
    raised = rng.random() < 1 / 3
    priced_here = (base.used if raised else offers_in_play(listed) - base.used) & kept  # not what is owned
    name = rng.choice(sorted(priced_here))
    now = next(offer.price_microusd_per_hour for offer in before.offers if offer.id == name)
    noise = {
        offer.id: max(1, round(offer.price_microusd_per_hour * (1 + rng.uniform(-NOISE, NOISE))))
        for offer in before.offers
    }
    for factor in DEARER if raised else CHEAPER:
        planted = Planting(scenario=scenario, before=before, offer=name, price=round(now * factor), noise=noise)
        moved = _solved(repriced(listed, planted.catalog(price=planted.price, noise=False)))
        if moved.what != base.what:
            return planted if _irrelevant(planted, listed, base, moved) else None
    return None


def _irrelevant(planted: Planting, listed: Candidates, base: Outcome, moved: Outcome) -> bool:
    """Whether the small moves do nothing, neither alone nor beside the planted change."""
    alone = _solved(repriced(listed, planted.catalog(noise=True)))
    both = _solved(repriced(listed, planted.catalog(price=planted.price, noise=True)))
    return (alone.what, both.what) == (base.what, moved.what)


def judged(planted: Planting, first: Side, *, noise: bool) -> dict[str, bool | int | float]:
    """Whether the change was named, and whether its break-even holds 0.1 % to either side."""
    after = planted.catalog(price=planted.price, noise=noise)
    second = api.side_of("B", planted.scenario, after)
    began = time.process_time()
    cause = api.compare(first, second).document["comparisons"][0]["cause"]
    spent = time.process_time() - began
    found = cause["found"]
    named = cause["verdict"] == "single" and [row["id"] for row in found] == [planted.offer]
    flip = found[0]["break_even"] if named else None
    decided = outcome(planted.scenario, after).what
    right = False
    if flip is not None:
        told = flip["price_usd_per_hour"] * 1e6
        sides = [
            outcome(planted.scenario, planted.catalog(price=round(told * (1 + aside)), noise=noise)).what == decided
            for aside in (-APART, APART)
        ]
        right = sides == [flip["holds"] == "below", flip["holds"] == "above"]
    return {
        "named": named,
        "right": right,
        "proven": bool(flip and flip["proven"]),
        "solves": cause["resolved"]["solves"],
        "changes": cause["changes"],
        "cpu_s": spent,
    }


def main() -> int:
    """Print one line a scenario and kind; 1 when any was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--plantings", type=int, default=51, help="of each kind, over all scenarios")
    parser.add_argument("--offers", type=int, default=380)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shipped, missed, total = api.load_catalog(), 0, Counter[str]()
    head = ("scenario", "prices", "plantings", "named", "±0.1 %", "proven", "solves", "cpu s")
    print("{:12} {:6} {:>9} {:>6} {:>7} {:>7} {:>7} {:>6}".format(*head))
    for place, path in enumerate(given.scenarios):
        scenario = api.load_scenario(path)
        count = given.plantings // len(given.scenarios) + (place < given.plantings % len(given.scenarios))
        rows: dict[str, list[dict[str, bool | int | float]]] = {"one": [], "all": []}
        drawn = plantings(scenario, shipped, 10**6, given.offers, given.seed + place)
        while min(map(len, rows.values())) < count:
            planted = next(drawn)
            first = api.side_of("A", scenario, planted.before)
            for kind, found in rows.items():
                found.append(judged(planted, first, noise=kind == "all"))
                if not (found[-1]["named"] and found[-1]["right"]):
                    print(f"  missed: {kind} {planted.offer} {planted.price} {found[-1]}", flush=True)
        for kind, found in rows.items():
            sums = {name: sum(int(row[name]) for row in found) for name in ("named", "right", "proven")}
            mean = {name: sum(float(row[name]) for row in found) / len(found) for name in ("solves", "cpu_s")}
            missed += 2 * len(found) - sums["named"] - sums["right"]
            total.update(
                {f"{kind} {name}": number for name, number in sums.items()} | {f"{kind} plantings": len(found)}
            )
            print(
                f"{Path(path).stem:12} {kind:6} {len(found):9} {sums['named']:6} {sums['right']:7} {sums['proven']:7} "
                f"{mean['solves']:7.1f} {mean['cpu_s']:6.2f}",
                flush=True,
            )
    print("all together:", ", ".join(f"{name} {number}" for name, number in sorted(total.items())))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
