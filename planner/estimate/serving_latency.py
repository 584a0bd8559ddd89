"""Latencies of a replica in an open loop, as functions of the mean number of sequences that decode.

Everything that does not depend on that number is worked out once (`Demand`); the rest is closed form
(`Point`): the arrival rate, the share of prefill, and the percentiles of every latency.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.queueing import (
    gamma_percentile,
    mixed_step_s,
    others_in_window,
    running_variance,
    slot_wait_probability,
    wait_percentile_s,
)
from planner.equations.registry import as_float
from planner.equations.serving_load import (
    crowd_in_line_s,
    crowd_stiffness,
    interactive_requests_per_s,
    relieved_share,
    users_of_others,
)
from planner.equations.serving_memory import whole_above
from planner.estimate.serving_levels import LEVELS, SCORE, Level, excess, late_s
from planner.estimate.serving_requests import KEYS, RequestShape
from planner.estimate.serving_step import StepTimes

Values = NDArray[np.float64]
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
    budget: Values  # tokens of one step of one attention rank, which has the whole of a prompt
    variability: Values  # c_a^2
    alone_s: Values  # first token of a mean prompt on an idle engine
    request_s: Values
    first_token_s: Values  # time per token of one sequence by itself
    full_token_s: Values  # and in a full batch
    tokens_of_step: Values  # tokens that a step gives one sequence: above 1 with speculation
    ranks: Any = 1.0  # of attention, which step together
    transfer_s: Any = 0.0  # of the cache, after the first token
    elsewhere_s: Any = 0.0  # before the first step here
    think_s: Any = np.inf  # from an answer to the next request of the same user; infinite: requests come by themselves

    @classmethod
    def of(
        cls,
        replica: StepTimes,
        shape: RequestShape,
        limit: Any,
        variability: Any,
        max_batched_tokens: Any,
        think_s: Any = np.inf,
    ) -> Demand:
        """Work out everything that does not depend on the load.

        Parameters
        ----------
        replica
            Times of one replica, or of several side by side.
        shape
            Lengths of the requests of each: means and second moments; of a mix the mean context is that of its classes.
        limit
            Sequences that may run at once.  [count]
        variability
            Squared coefficient of variation of the times between arrivals; 1 = Poisson.
        max_batched_tokens
            Most tokens of one step, those of running sequences among them.  [tokens]
        think_s
            Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
        """
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
            budget=np.maximum((as_float(max_batched_tokens) - slots) / replica.ranks, 16.0),
            ranks=as_float(replica.ranks),
            variability=as_float(variability),
            alone_s=as_float(replica.prefill_alone_s(shape.input_tokens, cached)),
            request_s=as_float(replica.request_s),
            first_token_s=alone,
            full_token_s=as_float(replica.token_s(np.maximum(slots, 1.0), context)),
            tokens_of_step=as_float(replica.step_s(1.0, context)) / alone,
            think_s=as_float(think_s),
        )

    @cached_property
    def closed(self) -> bool:
        """Whether requests are those of users who wait for each answer."""
        return bool(np.isfinite(self.think_s).all())

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
    def prefill_third_moment(self) -> Values:
        """Mean cube of it, for the same lengths."""
        first, second, spread = self.linear_s * self.new, self.square_s * self.new**2, self.input_spread
        cube = spread * spread * spread
        return np.asarray(
            cube * first**3
            + 3 * cube**2 * first**2 * second
            + 3 * spread * cube**3 * first * second**2
            + cube**5 * second**3
        )

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
        # a number, or an array of one, is of all rows
        parts = {n: value[index] if np.size(value) > 1 else value for n, value in rows.items() if n != "replica"}
        replica: Any = self.replica
        return Demand(replica=replica.take(index), **parts)

    def prefill_at(self, level: Level) -> Values:
        """Percentile of the engine time of a prompt."""
        if not np.any(self.sigma):
            return self.prefill_s
        tokens = self.new * np.exp(level.score * self.sigma - self.sigma**2 / 2)
        return np.asarray(self.linear_s * tokens + self.square_s * tokens**2)

    @cached_property
    def prefill_of_mean_s(self) -> Values:
        """Engine time of a prompt of mean length."""
        return self.linear_s * self.new + self.square_s * self.new**2

    @cached_property
    def chunks(self) -> Values:
        """Steps that a mean prompt is cut into."""
        return np.asarray(whole_above(self.new / self.budget))


@dataclass(frozen=True, kw_only=True)
class Point:
    """A replica whose sequences see a batch of a given size.

    In a closed loop a request sees those of the other users: `rate`, and what follows from it, is theirs.
    """

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
        """Prefill of those who come before a request's first token and hold up what follows it, if anything does."""
        demand = self.demand
        others = as_float(others_in_window(self.rate * self.before_s, demand.variability))
        return demand.prefill_s * others * np.minimum(demand.later, 1.0)

    @cached_property
    def before_s(self) -> Values:
        """Time before a first token in which those come whose prompts follow at once: its step, and the line."""
        demand, share = self.demand, self.share
        seen = as_float(mixed_step_s(self.step_s, self.rate, demand.prefill_s, self.gathered))
        return self.step_s + demand.prefill_s + seen * (share + demand.unshared * (1 - share) / 2)

    @cached_property
    def gathered(self) -> Values:
        """Dispersion of the prefill work that comes, less what a line of it keeps from coming in a closed loop."""
        return np.asarray(self.demand.work_dispersion * self.relief)

    @cached_property
    def relief(self) -> Values:
        """What a line of prompts is to that of an open loop: users who stand in it send nothing."""
        demand = self.demand
        if not demand.closed:
            return as_float(1.0)
        moments = demand.prefill_s, demand.prefill_second_moment, demand.prefill_third_moment
        crowd = crowd_in_line_s(self.rate, *moments)
        outside = demand.think_s + demand.request_s + demand.later * self.token_s / (1 - self.share)
        return np.asarray(relieved_share(crowd, self.share, outside))

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
        if demand.closed:
            return np.asarray(self.decoding * peak / crowd_stiffness(self.elasticity, self.inside_s, demand.think_s))
        return np.asarray(running_variance(self.decoding, self.elasticity, peak))

    @cached_property
    def inside_s(self) -> Values:
        """Mean time from a request to its last token where a slot is free."""
        return self.unblocked_s + self.demand.later * self.tpot_s

    @cached_property
    def users(self) -> Values:
        """Users of a closed loop, of whom one sees the others so."""
        return np.asarray(users_of_others(self.rate, self.e2e("mean"), self.demand.think_s))

    @cached_property
    def sent(self) -> Values:
        """Requests of all users of a closed loop, or of an open one.  [1/s]"""
        if not self.demand.closed:
            return self.rate
        return np.asarray(interactive_requests_per_s(self.users, self.e2e("mean"), self.demand.think_s))

    @property
    def load(self) -> Values:
        """What the replica carries: users of a closed loop, else requests.  [count] or [1/s]"""
        return self.users if self.demand.closed else self.rate

    @property
    def running(self) -> Values:
        """Mean number of requests in slots, of all users of a closed loop."""
        return np.asarray(self.sequences * (self.sent / self.rate)) if self.demand.closed else self.sequences

    @property
    def work_dispersion(self) -> Values:
        """Of the prompts that come in between."""
        return self.demand.work_dispersion

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

    @property
    def queue_s(self) -> Values:
        """Mean wait for the step that the prefill starts in."""
        return self.gated_s

    @cached_property
    def gated_s(self) -> Values:
        """That wait where the next step takes in all prompts that came during the last one."""
        demand = self.demand
        seen = as_float(mixed_step_s(self.step_s * self.busy, self.rate, demand.prefill_s, self.gathered))
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

    @property
    def late_rate(self) -> Values:
        """Arrivals while all slots are taken: in a closed loop those who fill them send nothing.  [1/s]"""
        if not self.demand.closed:
            return self.rate
        more = np.maximum(self.demand.limit - self.sequences, 0.0)
        return np.asarray(np.maximum(self.rate - more / self.demand.think_s, 0.0))

    @cached_property
    def slot_probability(self) -> Values:
        """Probability that an arrival finds all slots taken."""
        load = self.late_rate / self.full_rate
        return np.asarray(slot_wait_probability(self.demand.limit, self.sequences, self.variance, load))

    @cached_property
    def slot_mean_s(self) -> Values:
        """Mean wait for a slot of those who wait."""
        free = self.full_rate - self.late_rate
        burst = (1 + self.demand.variability) / 2
        return np.where(free > 0, burst / np.where(free > 0, free, 1.0), np.inf)

    def ttft(self, key: str) -> Values:
        """Time to the first token: mean or percentile."""
        if key == "mean":
            return self.unblocked_s + self.slot_probability * self.slot_mean_s
        return self.ttft_at(LEVELS[key])

    @cached_property
    def unblocked_s(self) -> Values:
        """Mean time to the first token of those who find a slot."""
        return self.demand.request_s + self.queue_s + self.first_s

    def ttft_at(self, level: Level) -> Values:
        """Time to the first token that a share of the requests keep."""
        demand = self.demand
        blocked = as_float(wait_percentile_s(self.slot_probability, self.slot_mean_s, level.share))
        return self.unblocked_s + excess(
            *self.waits_at(level),
            demand.prefill_at(level) - demand.prefill_s,
            blocked,  # rare and long: not about its mean
        )

    def waits_at(self, level: Level) -> tuple[Values, ...]:
        """Independent parts of the wait for the step that prefill starts in, over their means."""
        boundary = self.step_s * self.busy  # an arrival waits for the end of a step, evenly spread
        others = np.maximum(self.queue_s - boundary / 2, 0.0)
        waiting = np.maximum(1 - (1 - self.share) ** 2, 1e-12)
        late = as_float(wait_percentile_s(waiting, others / waiting, level.share)) - others
        return boundary * (level.share - 0.5), late * np.sqrt(self.relief)

    def tpot(self, key: str) -> Values:
        """Time per output token of a request: mean or percentile, over requests."""
        return self.request_tpot_s if key == "mean" else self.tpot_at(LEVELS[key])

    @cached_property
    def request_tpot_s(self) -> Values:
        """Mean time per output token, over requests: those with few tokens are held up most."""
        demand, held = self.demand, self.held_s / (1 - self.share)
        return self.tpot_s + held / np.maximum(demand.later, 1.0) * (demand.output_spread - 1)

    def tpot_at(self, level: Level) -> Values:
        """Time per output token that a share of the requests keep."""
        floor = self.token_s
        stall = np.maximum(self.request_tpot_s - floor, 1e-12)
        sigma2 = np.log(1 + (self._tpot_deviation / stall) ** 2)
        return np.asarray(floor + stall * np.exp(level.score * np.sqrt(sigma2) - sigma2 / 2))

    @cached_property
    def _tpot_deviation(self) -> Values:
        """Spread over requests: prompts that came in between, and the batch that they met."""
        demand = self.demand
        later, spread = np.maximum(demand.later, 1.0), demand.output_spread
        exposed = self.token_s * spread / later + self.before_s * spread**3 / later**2
        prompts = self.rate * exposed * self.work_dispersion / (1 - self.share) ** 3
        batch = 0.7 * self.variance * (self.elasticity * self.tpot_s / self.decoding) ** 2
        return np.asarray(np.sqrt(prompts + batch))

    def e2e(self, key: str) -> Values:
        """From arrival to the last token: mean or percentile."""
        mean = self.ttft("mean") + self.demand.later * self.tpot_s
        return mean if key == "mean" else self.e2e_at(LEVELS[key])

    def e2e_at(self, level: Level) -> Values:
        """Time from arrival to the last token that a share of the requests keep."""
        later, mean = self.demand.later, self.unblocked_s + self.slot_probability * self.slot_mean_s
        sigma = np.sqrt(np.log(self.demand.output_spread))
        tokens = later * (np.exp(level.score * sigma - sigma**2 / 2) - 1)
        return (
            mean
            + later * self.tpot_s
            + excess(
                late_s(self.ttft_at(level), mean),
                tokens * self.tpot_s,
                later * late_s(self.tpot_at(level), self.request_tpot_s),
            )
        )

    @cached_property
    def itl_p99_s(self) -> Values:
        """99th percentile of the time between two tokens of a sequence; taken as no less than the mean."""
        return np.fmax(self.late_step_s, self.tpot("mean"))

    @cached_property
    def full_step_s(self) -> Values:
        """Prompts of a step that has no room for more."""
        demand = self.demand
        longest = demand.new * np.exp(SCORE["p99"] * demand.sigma)
        tokens = demand.budget * as_float(demand.ranks)
        return np.asarray(tokens * (demand.linear_s + demand.square_s * np.maximum(2 * longest, demand.budget)))

    @cached_property
    def late_step_s(self) -> Values:
        """99th percentile of the engine's steps: one with prompts, if one in a hundred is."""
        demand, step, rate = self.demand, self.step_s, self.rate
        mean = step / (1 - self.share)
        variance = rate * demand.work_dispersion * mean / (1 - self.share**2)
        plain = np.exp(-rate * (step + demand.prefill_s))
        mixed = 1 - plain / (1 - np.exp(-rate * step) + plain)  # steps with prompts
        mixed = np.where(demand.budget < 2 * demand.new, 1 - np.exp(-rate * mean * demand.chunks), mixed)
        each = np.maximum((mean - step) / mixed, 1e-12)
        spread = np.maximum((variance + (mean - step) ** 2) / mixed / each**2 - 1, 1e-6)
        late = np.minimum(gamma_percentile(each, spread, 1 - np.minimum(0.01 / mixed, 0.99)), self.full_step_s)
        return np.asarray(step + np.where(mixed > 0.01, late, 0.0))

    def latencies(self, metric: str) -> dict[str, Values]:
        """Every figure of `ttft`, `tpot` or `e2e`."""
        return {key: np.asarray(getattr(self, metric)(key)) for key in KEYS}
