"""Tier T3: seeded discrete-event simulation of a serving replica, to check a plan and the formulas.

First come first served, chunked prefill, continuous batching.

Requests come at given times, or each user sends one some time after the answer to the last (a closed loop).

Each step of the engine decodes one step of every running sequence and fills what is left of
`max_batched_tokens` with prompts in the order of their arrival, the last of them cut where the step is
full. Steps in which nothing arrives, ends or prefills are taken in one stride.

Step times of one replica, tabulated once: the inner loop only looks up and interpolates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.registry import as_float
from planner.estimate.serving_requests import KEYS
from planner.estimate.serving_step import StepTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Requests in the order of their arrival; arrays of one length.

    In a closed loop `arrival_s` is when each user sends its first, (users,), and `think_s` the time between the answer
    to a request and the next one of its user.
    """

    arrival_s: Values
    input_tokens: Values
    output_tokens: Values
    cached_tokens: Values
    think_s: Values | None = None

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return len(self.input_tokens)


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


Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoad:
    """What a simulated replica did; the keys of the mappings are those of an open load."""

    requests: int  # measured, after the warm-up
    requests_per_s: float
    sequences: float  # mean running, prompts in prefill among them
    prefill_share: float  # of the time, for prompts
    slot_wait_s: float  # mean wait before prefill starts because all slots are taken
    ttft_s: Mapping[str, float]
    tpot_s: Mapping[str, float]
    e2e_s: Mapping[str, float]
    itl_p99_s: float


def simulate_replica(
    replica: StepTimes,
    work: Workload,
    *,
    batch_limit: int,
    max_batched_tokens: int = 8192,
    warmup_share: float = 0.1,
) -> SimulatedLoad:
    """Simulate a workload, and measure all but its ends.

    A workload with users is a closed loop: its arrival times are those of each user's first request. The first
    `warmup_share` of the requests, and the last that share, load the replica without being measured. The same arguments
    give the same figures.

    Parameters
    ----------
    replica
        Its step times; numbers, or arrays of one element.
    work
        The requests.
    batch_limit
        Sequences that run at once at most.
    max_batched_tokens
        Of one step: one for each running sequence, the others for prompts.
    warmup_share
        Share of the requests at either end that is not measured.

    Raises
    ------
    ValueError
        There is no slot or no token a step.
    """
    if batch_limit < 1 or max_batched_tokens < 1:
        raise ValueError("a replica needs at least one slot and one token a step")
    table = StepTable.of(replica, work, batch_limit)
    engine = _Engine(table=table, work=work, limit=batch_limit, budget=max_batched_tokens)
    engine.run()
    return engine.measured(warmup_share)


@dataclass(slots=True, kw_only=True)
class _Engine:
    """State of the engine between two steps."""

    table: StepTable
    work: Workload
    limit: int
    budget: int
    now_s: float = 0.0
    step: int = 0
    arrival_s: list[float] = field(default_factory=list)  # of the requests that came
    coming: list[float] = field(default_factory=list)  # heap of the times at which further ones come
    context: float = 0.0  # tokens of all decoding sequences
    running: list[tuple[int, int]] = field(default_factory=list)  # heap of (last step, request)
    line: deque[int] = field(default_factory=deque)  # arrived, prefill not complete
    begun: dict[int, float] = field(default_factory=dict)  # tokens of prompts that are cut
    first_s: list[float] = field(default_factory=list)
    last_s: list[float] = field(default_factory=list)
    strides: list[tuple[float, float, float]] = field(default_factory=list)  # step, tokens it gave, start
    prefill: list[tuple[float, float]] = field(default_factory=list)  # start, time for prompts
    blocked: list[tuple[float, float]] = field(default_factory=list)  # start, time that the line waits for a slot

    def run(self) -> None:
        """Until every request has its last token."""
        count = self.work.requests
        self.coming = self.work.arrival_s.tolist()  # sorted, which is a heap
        self.first_s, self.last_s = [0.0] * count, [0.0] * count
        while self.coming or self.line or self.running:
            while self.coming and self.coming[0] <= self.now_s:
                self._arrive(heappop(self.coming))
            if self.line and (self.begun or len(self.running) < self.limit):
                self._mixed_step()
            elif self.running:
                self._stride(self.coming[0] if self.coming and not self.line else float("inf"))
            elif self.coming:
                self.now_s = self.coming[0]

    def _arrive(self, time_s: float) -> None:
        self.line.append(len(self.arrival_s))
        self.arrival_s.append(time_s)
        if len(self.arrival_s) == self.work.requests:  # the users of a closed loop send no more
            self.coming = []

    def _answered(self, request: int) -> None:
        """The user of a closed loop thinks, and sends the next request."""
        if self.work.think_s is not None and len(self.arrival_s) < self.work.requests:
            heappush(self.coming, self.last_s[request] + self.table.request_s + float(self.work.think_s[request]))

    def _decode_s(self, ahead: float) -> float:
        """Decoding part of a step of the running batch, some steps ahead."""
        table, batch = self.table, len(self.running)
        place = max((self.context / batch + ahead - table.base_tokens) / table.column_tokens, 0.0)
        row = table.rows[batch]
        column = min(int(place), len(row) - 2)
        return row[column] + (place - column) * (row[column + 1] - row[column])

    def _stride(self, next_arrival_s: float) -> None:
        """Decode until a sequence ends or a request comes."""
        steps = self.running[0][0] - self.step
        each_s = self._decode_s(steps / 2)
        if self.now_s + (steps - 1) * each_s > next_arrival_s:
            steps = max(int((next_arrival_s - self.now_s) / each_s) + 1, 1)
            each_s = self._decode_s(steps / 2)
        self.strides.append((each_s, len(self.running) * steps, self.now_s))
        if self.line:
            self.blocked.append((self.now_s, each_s * steps * len(self.line)))
        self._advance(steps, each_s * steps)

    def _advance(self, steps: int, time_s: float) -> None:
        self.now_s += time_s
        self.step += steps
        self.context += len(self.running) * steps * self.table.tokens_of_step
        while self.running and self.running[0][0] <= self.step:
            self._end(heappop(self.running)[1])

    def _end(self, request: int) -> None:
        self.last_s[request] = max(self.now_s, self.first_s[request])
        self.context -= float(self.work.input_tokens[request] + self.work.output_tokens[request])
        if not self.running:
            self.context = 0.0
        self._answered(request)

    def _mixed_step(self) -> None:
        """One step with prompts: as many as the tokens of a step and the slots allow."""
        table, batch = self.table, len(self.running)
        room, prompts_s = max(float(self.budget - batch), 1.0), 0.0
        complete: list[int] = []
        decode_s = self._decode_s(0.0) if batch else table.launch_s[self.line[0]]
        while self.line and room > 0 and (self.line[0] in self.begun or batch + len(complete) < self.limit):
            request = self.line[0]
            new = float(self.work.input_tokens[request] - self.work.cached_tokens[request])
            done = self.begun.get(request, 0.0)
            taken = min(new - done, room)
            whole = done == 0.0 and taken == new
            prompts_s += table.prompt_s[request] if whole else self._part_s(request, done, taken)
            room -= taken
            if done + taken < new:
                self.begun[request] = done + taken
                break
            self.begun.pop(request, None)
            complete.append(self.line.popleft())
        if batch:
            self.strides.append((decode_s + prompts_s, batch, self.now_s))
        self.prefill.append((self.now_s, prompts_s))
        if self.line and batch + len(complete) >= self.limit:
            self.blocked.append((self.now_s, (decode_s + prompts_s) * len(self.line)))
        self._advance(1, decode_s + prompts_s)
        for request in complete:
            self._begin(request)

    def _part_s(self, request: int, done: float, taken: float) -> float:
        start = float(self.work.cached_tokens[request]) + done
        return self.table.part_s(start, start + taken)

    def _begin(self, request: int) -> None:
        """The first token of a request is there; it decodes from the next step on."""
        self.first_s[request] = self.now_s + self.table.walk_s[request]
        output = float(self.work.output_tokens[request])
        if output <= 1:
            self.last_s[request] = self.first_s[request]
            self._answered(request)
            return
        steps = max(round((output - 1) / self.table.tokens_of_step), 1)
        heappush(self.running, (self.step + steps, request))
        # the context that a request has given back when it ends is its whole length
        self.context += float(self.work.input_tokens[request]) + output - steps * self.table.tokens_of_step

    def measured(self, warmup_share: float) -> SimulatedLoad:
        """Figures of the requests between the warm-up and the end."""
        work, outside = self.work, self.table.request_s
        skipped = min(int(work.requests * warmup_share), (work.requests - 1) // 2)
        kept = slice(skipped, work.requests - skipped)
        arrival = np.array(self.arrival_s)[kept]
        first, last = np.array(self.first_s)[kept], np.array(self.last_s)[kept]
        later = work.output_tokens[kept] - 1
        decoded = later > 0
        span = max(float(arrival[-1] - arrival[0]), 1e-300)
        strides = np.array(self.strides).reshape(-1, 3)
        until = arrival[-1] if skipped else np.inf
        inside = (strides[:, 2] >= arrival[0]) & (strides[:, 2] < until)

        def between(pairs: list[tuple[float, float]]) -> float:
            rows = np.array(pairs).reshape(-1, 2)
            return float(rows[(rows[:, 0] >= arrival[0]) & (rows[:, 0] < until), 1].sum())

        return SimulatedLoad(
            requests=len(arrival),
            requests_per_s=len(arrival) / span,
            sequences=float(np.sum(last - first) + np.sum(self._prefill_spans(kept))) / span,
            prefill_share=between(self.prefill) / span,
            slot_wait_s=between(self.blocked) / len(arrival),
            ttft_s=_figures(first - arrival + outside),
            tpot_s=_figures(((last - first)[decoded]) / later[decoded]),
            e2e_s=_figures(last - arrival + outside),
            itl_p99_s=_weighted(strides[inside, 0], strides[inside, 1], 0.99),
        )

    def _prefill_spans(self, kept: slice) -> Values:
        """Time that a prompt takes in a step of its own, about."""
        return np.array(self.table.prompt_s)[kept]


def _figures(values: Values) -> dict[str, float]:
    if not len(values):
        return dict.fromkeys(KEYS, 0.0)
    shares = np.quantile(values, [0.5, 0.9, 0.95, 0.99])
    return dict(zip(KEYS, [float(values.mean()), *map(float, shares)], strict=True))


def _weighted(values: Values, weights: Values, share: float) -> float:
    if not len(values):
        return 0.0
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])
