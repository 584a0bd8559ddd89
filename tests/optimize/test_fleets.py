"""Every row kind of a fleet against trying everything, with both solvers and after pruning."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.program import restrict
from planner.candidates.prune import prune
from planner.optimize.solve import optimize
from tests.optimize.brute_fleets import KINDS, best_fleet, random_fleet

INSTANCES = 100


@pytest.mark.parametrize("kind", KINDS)
def test_equals_brute_force(kind: str) -> None:
    """With HiGHS, with CBC, and without the columns that are dominated: the very same plan."""
    infeasible = dropped = 0
    for seed in range(INSTANCES):
        question = random_fleet(kind, seed)
        expected = best_fleet(question)
        kept = prune(question)
        small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
        dropped += question.column_count - len(kept)
        answers = [optimize(question), optimize(question, solver="cbc"), optimize(small)]
        if expected is None:
            infeasible += 1
            assert [answer.status for answer in answers] == ["infeasible"] * 3, (seed, answers)
            continue
        assert [answer.status for answer in answers] == ["optimal"] * 3, (seed, [a.messages for a in answers])
        assert answers[0].units.tolist() == list(expected), seed
        assert answers[1].units.tolist() == list(expected), seed
        assert answers[2].units.tolist() == [expected[k] for k in kept], seed
        assert sum(expected[k] for k in range(len(expected)) if k not in kept) == 0, seed
        assert answers[0].messages == (), seed
    assert 0.1 * INSTANCES <= infeasible <= 0.85 * INSTANCES
    assert dropped
