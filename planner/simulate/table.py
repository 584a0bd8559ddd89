"""Step times of one replica, tabulated once: the inner loop only looks up and interpolates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.serving_step import StepTimes
from planner.simulate.workload import Workload

CONTEXTS = 40  # columns of the table; a step is close to linear in the context
EXACT = 64  # batches below it have rows of their own
PROMPTS = 257  # points of the prefill curve, for parts of prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """Times of one replica for the requests of one workload; plain lists, which a loop reads fastest."""

    rows: list[list[float]]  # [batch][context column], batch from 0  [s]
    base_tokens: float
    column_tokens: float
    prompt_s: list[float]  # engine time of each prompt
    launch_s: list[float]  # more than that, when nothing else runs
    walk_s: list[float]  # latency beyond both: stages of a pipeline
    curve: NDArray[np.float64]  # engine time of the first tokens of a prompt, at even steps of tokens
    curve_tokens: float
    tokens_of_step: float
    request_s: float

    @classmethod
    def of(cls, replica: StepTimes, work: Workload, batch_limit: int) -> StepTable:
        """Tabulate a replica of one row over the batches and contexts that a workload can reach.

        Parameters
        ----------
        replica
            Its step times; numbers, or arrays of one element.
        work
            The requests, whose prompts get a time each.
        batch_limit
            Sequences that run at once at most.
        """
        lengths = work.input_tokens + work.output_tokens
        low, high = float(work.input_tokens.min()), float(lengths.max()) + 2
        contexts = np.linspace(low, high, CONTEXTS)
        batches = _batches(batch_limit)
        grid = as_float(replica.step_s(np.repeat(batches, CONTEXTS), np.tile(contexts, len(batches))))
        table = grid.reshape(len(batches), CONTEXTS)
        every = np.arange(1, batch_limit + 1)
        full = np.stack([np.interp(every, batches, column) for column in table.T], axis=1)
        prompt = _column(replica.prefill_s(work.input_tokens, work.cached_tokens), work)
        alone = _column(replica.prefill_alone_s(work.input_tokens, work.cached_tokens), work)
        single = np.interp(work.input_tokens, contexts, full[0])
        launch = np.clip(alone - prompt, 0.0, single)
        points = np.linspace(0.0, float(work.input_tokens.max()), PROMPTS)
        return cls(
            rows=[full[0].tolist(), *full.tolist()],
            base_tokens=low,
            column_tokens=float(contexts[1] - contexts[0]),
            prompt_s=prompt.tolist(),
            launch_s=launch.tolist(),
            walk_s=np.maximum(alone - prompt - launch, 0.0).tolist(),
            curve=np.concatenate([[0.0], as_float(replica.prefill_s(points[1:]))]),
            curve_tokens=float(points[1]),
            tokens_of_step=float(np.max(as_float(replica.step_s(1.0, low)) / as_float(replica.token_s(1.0, low)))),
            request_s=float(np.max(as_float(replica.request_s))),
        )

    def part_s(self, start: float, end: float) -> float:
        """Engine time of the tokens from `start` to `end` of a prompt."""
        first, last = np.interp([start, end], np.arange(PROMPTS) * self.curve_tokens, self.curve)
        return float(last - first)


def _batches(limit: int) -> NDArray[np.float64]:
    """Whole batches from 1 to the limit, all of the small ones."""
    wide = np.geomspace(EXACT, max(limit, EXACT), 96) if limit > EXACT else np.array([float(limit)])
    return np.unique(np.rint(np.concatenate([np.arange(1, min(limit, EXACT) + 1), wide])))


def _column(values: object, work: Workload) -> NDArray[np.float64]:
    return np.array(np.broadcast_to(as_float(values), work.requests))
