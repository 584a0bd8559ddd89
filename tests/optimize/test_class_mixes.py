"""The small program over replicas at mixes, against every combination of units; and what is never asked."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy.optimize import linprog

from planner.candidates.serving_question import ServingQuestion
from planner.estimate.serving_fleet import Replicas
from planner.optimize.class_mixes import MUCH, PROGRAM_GAP, SAVED, _Kinds, _Search
from tests.tiers import cases

GRID = np.array([[1.0, 0.0], [1.0, 0.5], [1.0, 1.0], [0.5, 1.0], [0.0, 1.0]])
MOST = 3  # units at each mix


def search(draw: np.random.Generator) -> tuple[_Search, np.ndarray]:
    """Two kinds of replicas with rates at five mixes."""
    share = np.array([0.7, 0.3])
    question = cast("ServingQuestion", SimpleNamespace(fleet=SimpleNamespace(traffic=SimpleNamespace(share=share))))
    kinds = _Kinds(
        places=np.arange(2),
        unit_microusd=draw.integers(50, 200, 2).astype(float) * 1e6,
        replicas=draw.integers(1, 3, 2),
        caps=np.array([MOST, MOST]),
    )
    one = _Search(
        question=question,
        everyone=cast("Replicas", None),
        kinds=kinds,
        demand=np.array([7.0, 3.0]) * draw.uniform(0.2, 0.6),
        grid=GRID,
        least_replicas=int(draw.integers(0, 3)),
    )
    return one, draw.uniform(0.5, 3.0, (2, len(GRID))) * draw.choice([0, 1, 1], (2, len(GRID)))


def cheapest(one: _Search, rates: np.ndarray) -> float:
    """Of all units of each kind at each mix that carry the peak, and are sent no more than there is."""
    shares = GRID * np.array([0.7, 0.3])
    shares /= shares.sum(axis=1, keepdims=True)
    each = np.concatenate([rates[k][:, None] * shares for k in range(2)])
    replicas = np.repeat(one.kinds.replicas, len(GRID))
    cost = np.repeat(one.kinds.unit_microusd, len(GRID))
    carrying = np.flatnonzero(each.any(axis=1))
    best = np.inf
    for some in itertools.product(range(MOST + 1), repeat=2):
        for units in splits(some, carrying):
            total = float(cost @ units)
            if total >= best or replicas @ units < one.least_replicas:
                continue
            if ((replicas * units) @ each < one.demand - 1e-9).any():
                continue
            full = np.where(units > 0, units, 0).astype(float)
            bounds = [(0.0, most) for most in full]
            sides = ((replicas[:, None] * each).T, -(replicas[:, None] * each).T)
            found = linprog(
                np.zeros(len(units)), A_ub=np.concatenate(sides), bounds=bounds,
                b_ub=np.concatenate([one.demand * MUCH, -one.demand]),
            )  # fmt: skip
            if found.status == 0:
                best = total
    return best


def splits(units: tuple[int, ...], carrying: np.ndarray) -> Any:
    """Ways to share out so many units of each kind among its mixes."""
    places = [[p for p in carrying.tolist() if p // len(GRID) == kind] for kind in range(2)]
    ways = [list(itertools.combinations_with_replacement(mine, n)) for mine, n in zip(places, units)]
    for chosen in itertools.product(*ways):
        found = np.zeros(2 * len(GRID), dtype=int)
        for place in itertools.chain(*chosen):
            found[place] += 1
        yield found


def test_the_small_program_finds_what_every_combination_shows() -> None:
    paid, told = 1e9, 0
    for seed in range(cases(12, 200)):
        one, rates = search(np.random.default_rng(seed))
        found, best = one._units(rates, paid), cheapest(one, rates)
        if found is None:
            assert best > paid * (1 - SAVED), seed
            continue
        cost = float((found.sum(axis=1) * one.kinds.unit_microusd).sum())
        assert best <= cost + 1e-6, seed
        assert cost <= best * (1 + PROGRAM_GAP) + 1e-6, seed
        told += 1
        assert one._units(rates, best * (1 + SAVED / 2)) is None, seed  # nothing is cheaper than the cheapest
    assert told >= cases(3, 50)
