"""Latencies of a replica in an open loop, as functions of the mean number of sequences that decode.

Everything that does not depend on that number is worked out once (`Demand`); the rest is closed form
(`Point`): the arrival rate, the share of prefill, and the percentiles of every latency.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.equations.percentiles import gamma_percentile, wait_percentile_s
from planner.equations.queueing import mixed_step_s, others_in_window, running_variance, slot_wait_probability
from planner.equations.registry import as_float
from planner.estimate.serving_requests import KEYS, RequestShape
from planner.estimate.serving_step import StepTimes

Values = NDArray[np.float64]
SHARE = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
SCORE = {key: NormalDist().inv_cdf(share) for key, share in SHARE.items()}
FEWEST_TOKENS = 1e-6  # after the first: one-token answers still have a rate


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What requests ask of a replica, whatever its load; arrays of one length, or numbers."""

    replica: StepTimes
    context: Values  # mean tokens of a running sequence
    output: Values
    later: Values  # tokens after the first
    output_spread: Values  # E[O^2] / E[O]^2
    new: Values  # prompt tokens that are not in the cache
    input_spread: Values  # E[n^2] / E[n]^2 of them
    linear_s: Values  # prefill of n tokens: linear_s n + square_s n^2
    square_s: Values
    limit: Values  # running sequences
    budget: Values  # tokens of one step
    variability: Values  # c_a^2
    alone_s: Values  # first token of a mean prompt on an idle engine
    request_s: Values
    first_token_s: Values  # time per token of one sequence by itself
    full_token_s: Values  # and in a full batch
    tokens_of_step: Values  # tokens that a step gives one sequence: above 1 with speculation
    transfer_s: Any = 0.0  # of the cache, after the first token
    elsewhere_s: Any = 0.0  # before the first step here

    @classmethod
    def of(
        cls, replica: StepTimes, shape: RequestShape, limit: Any, variability: Any, max_batched_tokens: Any
    ) -> Demand:
        """Work out everything that does not depend on the load."""
        context, cached = shape.context_tokens, as_float(shape.cached_tokens)
        new = np.maximum(as_float(shape.input_tokens) - cached, 1.0)
        once = as_float(replica.prefill_s(new + cached, cached))
        twice = as_float(replica.prefill_s(2 * (new + cached), 2 * cached))  # longer prompts share longer prefixes
        square = np.maximum(twice / 2 - once, 0.0) / new**2
        slots, alone = as_float(limit), as_float(replica.token_s(1.0, context))
        return cls(
            replica=replica,
            context=context,
            output=as_float(shape.output_tokens),
            later=np.maximum(as_float(shape.output_tokens) - 1, FEWEST_TOKENS),
            output_spread=shape.output_spread,
            new=new,
            input_spread=shape.input_spread,
            linear_s=once / new - square * new,
            square_s=square,
            limit=slots,
            budget=np.maximum(as_float(max_batched_tokens) - slots, 16.0),
            variability=as_float(variability),
            alone_s=as_float(replica.prefill_alone_s(shape.input_tokens, cached)),
            request_s=as_float(replica.request_s),
            first_token_s=alone,
            full_token_s=as_float(replica.token_s(np.maximum(slots, 1.0), context)),
            tokens_of_step=as_float(replica.step_s(1.0, context)) / alone,
        )

    @cached_property
    def prefill_s(self) -> Values:
        """Mean engine time of a prompt."""
        return self.linear_s * self.new + self.square_s * self.new**2 * self.input_spread

    @cached_property
    def prefill_second_moment(self) -> Values:
        """Mean square of it, for lengths that are log-normal: E[n^k] = E[n]^k c^(k (k - 1) / 2)."""
        first, second, spread = self.linear_s * self.new, self.square_s * self.new**2, self.input_spread
        cube = spread * spread * spread
        return first * first * spread + 2 * first * second * cube + second * second * cube * cube

    @cached_property
    def work_dispersion(self) -> Values:
        """Variance of the prefill work that comes in a long time, for one arrival."""
        return self.prefill_second_moment + (self.variability - 1) * self.prefill_s**2

    @cached_property
    def launch_s(self) -> Values:
        """What a prompt takes of an idle engine beyond its engine time: weights and launches, at most a step."""
        return np.clip(self.alone_s - self.prefill_of_mean_s, 0.0, self.first_token_s * self.tokens_of_step)

    @cached_property
    def walk_s(self) -> Values:
        """Latency of a prompt beyond what it takes of the engine: the other stages of a pipeline."""
        return np.maximum(self.alone_s - self.prefill_of_mean_s - self.launch_s, 0.0)

    @cached_property
    def fewest(self) -> Values:
        """Sequences that one sees, itself among them, at the lowest load; below 1 where arrivals are even."""
        return 1 + (self.variability - 1) / self.output_spread

    @cached_property
    def unshared(self) -> Values:
        """1 for prompts too long to share a step with another, 0 for those short enough."""
        return np.clip(2 - self.budget / np.maximum(self.new, 1.0), 0.0, 1.0)

    @cached_property
    def sigma(self) -> Values:
        """Of the logarithm of prompt lengths."""
        return np.asarray(np.sqrt(np.log(self.input_spread)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of arrays over the rows."""
        return np.broadcast_shapes(*(np.shape(getattr(self, f.name)) for f in fields(self) if f.name != "replica"))

    def take(self, index: NDArray[np.intp]) -> Demand:
        """The rows of `index`; the replica must know how to take rows."""
        rows = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {name: value[index] if np.ndim(value) else value for name, value in rows.items() if name != "replica"}
        replica: Any = self.replica
        return Demand(replica=replica.take(index), **parts)

    def prefill_at(self, key: str) -> Values:
        """Percentile of the engine time of a prompt."""
        if not np.any(self.sigma):
            return self.prefill_s
        tokens = self.new * np.exp(SCORE[key] * self.sigma - self.sigma**2 / 2)
        return self.linear_s * tokens + self.square_s * tokens**2

    @cached_property
    def prefill_of_mean_s(self) -> Values:
        """Engine time of a prompt of mean length."""
        return self.linear_s * self.new + self.square_s * self.new**2

    @cached_property
    def chunks(self) -> Values:
        """Steps that a mean prompt is cut into."""
        return np.ceil(self.new / self.budget)


@dataclass(frozen=True, kw_only=True)
class Point:
    """A replica whose sequences see a batch of a given size."""

    demand: Demand
    token_s: Values  # without prefill in between
    clock_rate: Values  # arrivals in a second without prefill
    rate: Values  # arrivals  [1/s]
    share: Values  # of the time for prefill
    slope: Values  # rise of token_s with one more sequence

    @classmethod
    def at(cls, demand: Demand, more: Values) -> Point:
        """The point where a sequence decodes with `more` others than by itself, on average over its tokens.

        In time without prefill, sequences arrive at y = x / (1 - rho) and stay for (O - 1) D, so that y (O - 1) D
        decode on average. A sequence sees these, and those of its own clump: z = 1 + (c_a^2 G - 1) / c_O,
        G - 1 = 2 u + (E[P^2] / E[P]^2) u^2 with u = y E[P]. The sum being given, y is the root of a quadratic.
        """
        batch = np.minimum(np.maximum(demand.fewest + more, 1.0), np.maximum(demand.limit, 1.0))
        token = as_float(demand.replica.token_s(batch, demand.context))
        slope = np.maximum(demand.full_token_s - token, 0.0) / np.maximum(demand.limit - batch, 1.0)
        weight = demand.variability / demand.output_spread
        first = demand.later * token + 2 * weight * demand.prefill_s
        clock = 2 * more / (first + np.sqrt(first**2 + 4 * weight * demand.prefill_second_moment * more))
        rate = clock / (1 + clock * demand.prefill_s)
        return cls(
            demand=demand, token_s=token, clock_rate=clock, rate=rate, share=rate * demand.prefill_s, slope=slope
        )

    @cached_property
    def decoding(self) -> Values:
        """Mean number of sequences between their first and last tokens."""
        return self.clock_rate * (self.demand.later * self.token_s + self.held_s)

    @cached_property
    def tpot_s(self) -> Values:
        """Mean time per output token after the first, over tokens."""
        return self.decoding / (self.rate * self.demand.later)

    @cached_property
    def held_s(self) -> Values:
        """Prefill of those who come before a request's first token and hold up what follows it."""
        demand = self.demand
        return demand.prefill_s * as_float(others_in_window(self.rate * self.before_s, demand.variability))

    @cached_property
    def before_s(self) -> Values:
        """Time before a first token in which those come whose prompts follow at once: its step, and the line."""
        demand, share = self.demand, self.share
        seen = as_float(mixed_step_s(self.step_s, self.rate, demand.prefill_s, demand.work_dispersion))
        return self.step_s + demand.prefill_s + seen * (share + demand.unshared * (1 - share) / 2)

    @cached_property
    def step_s(self) -> Values:
        """Decoding part of a step."""
        return self.token_s * self.demand.tokens_of_step

    @cached_property
    def elasticity(self) -> Values:
        """Relative rise of the time per token for a relative rise of the batch."""
        return np.minimum(self.slope * self.decoding / self.token_s, 0.95)

    @cached_property
    def variance(self) -> Values:
        """Of the number decoding."""
        demand, backlog = self.demand, self.clock_rate * self.demand.prefill_s
        clump = 2 * backlog + self.clock_rate**2 * demand.prefill_second_moment
        peak = np.maximum(demand.fewest + demand.variability * clump / demand.output_spread, 0.05)
        return np.asarray(running_variance(self.decoding, self.elasticity, peak))

    @cached_property
    def busy(self) -> Values:
        """Probability that an arrival finds another sequence running."""
        return 1 - np.exp(-self.decoding)

    @cached_property
    def first_s(self) -> Values:
        """From the start of a mean prompt's prefill to its first token."""
        demand = self.demand
        mixed = self.step_s * demand.chunks + demand.prefill_s + demand.walk_s
        return np.maximum(demand.alone_s, self.busy * mixed + (1 - self.busy) * demand.alone_s)

    @cached_property
    def sequences(self) -> Values:
        """Mean number of requests in slots: decoding or in prefill."""
        return self.decoding + self.rate * self.first_s

    @cached_property
    def queue_s(self) -> Values:
        """Mean wait for the step that the prefill starts in."""
        demand = self.demand
        seen = as_float(mixed_step_s(self.step_s * self.busy, self.rate, demand.prefill_s, demand.work_dispersion))
        return np.asarray(
            seen / 2 + demand.prefill_s * as_float(others_in_window(self.rate * seen, demand.variability))
        )

    @cached_property
    def full_rate(self) -> Values:
        """Rate at which a replica with all slots taken finishes requests."""
        demand = self.demand
        token = self.token_s + self.slope * np.maximum(demand.limit - self.sequences, 0.0)
        decoding = (demand.later * token + self.held_s) / (1 - self.share)
        return demand.limit / (decoding + self.first_s)

    @cached_property
    def slot_probability(self) -> Values:
        """Probability that an arrival finds all slots taken."""
        load = self.rate / self.full_rate
        return np.asarray(slot_wait_probability(self.demand.limit, self.sequences, self.variance, load))

    @cached_property
    def slot_mean_s(self) -> Values:
        """Mean wait for a slot of those who wait."""
        free = self.full_rate - self.rate
        burst = (1 + self.demand.variability) / 2
        return np.where(free > 0, burst / np.where(free > 0, free, 1.0), np.inf)

    def ttft(self, key: str) -> Values:
        """Time to the first token: mean or percentile."""
        demand, queue = self.demand, self.queue_s
        probability, conditional = self.slot_probability, self.slot_mean_s
        mean = demand.request_s + queue + self.first_s
        if key == "mean":
            return mean + probability * conditional
        boundary = self.step_s * self.busy  # an arrival waits for the end of a step, evenly spread
        others = np.maximum(queue - boundary / 2, 0.0)
        waiting = np.maximum(1 - (1 - self.share) ** 2, 1e-12)
        return mean + excess(
            boundary * (SHARE[key] - 0.5),
            as_float(wait_percentile_s(waiting, others / waiting, SHARE[key])) - others,
            demand.prefill_at(key) - demand.prefill_s,
            as_float(wait_percentile_s(probability, conditional, SHARE[key])),  # rare and long: not about its mean
        )

    def tpot(self, key: str) -> Values:
        """Time per output token of a request: mean or percentile, over requests."""
        demand, held = self.demand, self.held_s / (1 - self.share)
        later = np.maximum(demand.later, 1.0)
        mean = self.tpot_s + held / later * (demand.output_spread - 1)
        if key == "mean":
            return mean
        floor = self.token_s
        stall = np.maximum(mean - floor, 1e-12)
        deviation = self._tpot_deviation
        sigma2 = np.log(1 + (deviation / stall) ** 2)
        return np.asarray(floor + stall * np.exp(SCORE[key] * np.sqrt(sigma2) - sigma2 / 2))

    @cached_property
    def _tpot_deviation(self) -> Values:
        """Spread over requests: prompts that came in between, and the batch that they met."""
        demand = self.demand
        later, spread = np.maximum(demand.later, 1.0), demand.output_spread
        exposed = self.token_s * spread / later + self.before_s * spread**3 / later**2
        prompts = self.rate * exposed * demand.work_dispersion / (1 - self.share) ** 3
        batch = 0.7 * self.variance * (self.elasticity * self.tpot_s / self.decoding) ** 2
        return np.asarray(np.sqrt(prompts + batch))

    def e2e(self, key: str) -> Values:
        """From arrival to the last token: mean or percentile."""
        later = self.demand.later
        mean = self.ttft("mean") + later * self.tpot_s
        if key == "mean":
            return mean
        sigma = np.sqrt(np.log(self.demand.output_spread))
        tokens = later * (np.exp(SCORE[key] * sigma - sigma**2 / 2) - 1)
        return mean + excess(
            late_s(self.ttft(key), self.ttft("mean")),
            tokens * self.tpot_s,
            later * late_s(self.tpot(key), self.tpot("mean")),
        )

    @cached_property
    def itl_p99_s(self) -> Values:
        """99th percentile of the time between two tokens of a sequence: a step with prompts, if one in a hundred is."""
        demand, step, rate = self.demand, self.step_s, self.rate
        mean = step / (1 - self.share)
        variance = rate * demand.work_dispersion * mean / (1 - self.share**2)
        plain = np.exp(-rate * (step + demand.prefill_s))
        mixed = 1 - plain / (1 - np.exp(-rate * step) + plain)  # steps with prompts
        mixed = np.where(demand.budget < 2 * demand.new, 1 - np.exp(-rate * mean * demand.chunks), mixed)
        each = np.maximum((mean - step) / mixed, 1e-12)
        spread = np.maximum((variance + (mean - step) ** 2) / mixed / each**2 - 1, 1e-6)
        longest = demand.new * np.exp(SCORE["p99"] * demand.sigma)
        full = demand.budget * (demand.linear_s + demand.square_s * np.maximum(2 * longest, demand.budget))
        late = np.minimum(gamma_percentile(each, spread, 1 - np.minimum(0.01 / mixed, 0.99)), full)
        return np.asarray(step + np.where(mixed > 0.01, late, 0.0))

    def latencies(self, metric: str) -> dict[str, Values]:
        """Every figure of `ttft`, `tpot` or `e2e`."""
        return {key: np.asarray(getattr(self, metric)(key)) for key in KEYS}


def late_s(percentile: Values, mean: Values) -> Values:
    """A percentile over its mean; nothing where both are infinite, since the mean says it all."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(mean), 0.0, percentile - mean)


def excess(*parts: Values) -> Values:
    """What independent parts add to their means at a percentile: the root of the sum of signed squares."""
    total = sum((part * np.abs(part) for part in parts), start=as_float(0.0))
    return np.sign(total) * np.sqrt(np.abs(total))
