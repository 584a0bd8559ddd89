"""Runs that end: a pile of requests sent at once, and requests that arrive at a rate until so many have come.

A run is as long as its last answer. What is sent at once ends with the longest answers, in ever smaller batches; what
arrives at a rate leaves the batch before it is full, or a queue that grows as long as requests come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.kv_cache import mean_resident_tokens
from planner.equations.lengths import largest_score, lognormal_length
from planner.equations.queueing import prefill_queue_wait_s
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_load import front_end_s, offline_makespan_s, prompts_per_step
from planner.estimate.serving_closed import STEP_TOKENS
from planner.estimate.serving_step import Replica

Values = NDArray[np.float64]
# Shares of the answers that have ended, and the quantiles of the standard normal distribution there.
_ENDED = ((0.25, -0.6745), (0.5, 0.0), (0.75, 0.6745), (0.9, 1.2816), (0.97, 1.8808))
_MOMENTS = 160  # of a run that is followed in time
_BATCHES = (0.0, 0.1, 0.35, 1.0)  # shares of the largest batch at which a step is timed


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """Means over the requests of a run in which they arrive at random."""

    tpot_s: Values
    ttft_s: Values
    requests_per_s: Values  # from the first arrival to the last answer
    behind: NDArray[np.bool_]  # the queue grew for as long as requests came


def pile_s(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    requests: FloatOrArray,
    batch_limit: FloatOrArray,
    step_tokens: FloatOrArray = STEP_TOKENS,
    beams: FloatOrArray = 1,
    variation: FloatOrArray = 0.0,
) -> Values:
    """Time that the engine takes for requests that are all there from the start.  [s]

    With beam search every request runs `beams` sequences, of which one is its answer. Answers that vary by
    `variation`, their standard deviation over their mean, are taken as log-normal.

    Parameters
    ----------
    replica
        One replica, or arrays with one element a replica.
    input_tokens, output_tokens
        Prompt and answer of a request.  [tokens]
    requests
        That one replica is sent.  [count]
    batch_limit
        Requests that may run at once.  [count]
    step_tokens
        Most tokens of one step.  [tokens]
    beams
        Sequences that each request runs; 1 = no beam search.  [count]
    variation
        Standard deviation of the answers over their mean; 0 = all alike.
    """
    count, made = as_float(requests), as_float(output_tokens)
    batch = np.maximum(np.minimum(as_float(batch_limit), count), 1.0)
    context = mean_resident_tokens(input_tokens, output_tokens)
    prompts = prompts_per_step(batch, output_tokens, input_tokens, step_tokens)
    prompt = as_float(replica.prefill_s(input_tokens, 0, prompts))
    step = as_float(replica.token_s(batch * as_float(beams), context))
    alike = np.asarray(offline_makespan_s(count, prompt, step, made, batch), dtype=np.float64)
    rows = np.flatnonzero(np.broadcast_to(as_float(variation) > 0, alike.shape))
    if not len(rows):
        return alike
    whole = [np.broadcast_to(part, alike.shape)[rows] for part in (count, made, batch, prompt, step)]
    drain = _drain_s(
        replica.take(rows),
        np.broadcast_to(context, alike.shape)[rows],
        whole[1],
        whole[2] * np.broadcast_to(beams, alike.shape)[rows],
        np.broadcast_to(as_float(variation), alike.shape)[rows],
    )
    alike[rows] = whole[0] * whole[3] + np.maximum(whole[0] / whole[2] - 1, 0.0) * whole[1] * whole[4] + drain
    return alike


def _drain_s(replica: Replica, context: Values, made: Values, batch: Values, variation: Values) -> Values:
    """Time in which a batch ends to which nothing is added: its short answers first, its longest last.  [s]"""
    total, before, ended = made * 0.0, made * 0.0, 0.0
    for share, score in (*_ENDED, (1.0, largest_score(batch))):
        until = np.maximum(as_float(lognormal_length(made, variation, score)), before)
        running = np.maximum(batch * (1 - (ended + share) / 2), 1.0)
        total = total + (until - before) * as_float(replica.token_s(running, context))
        before, ended = until, share
    return total


def pile_through_http_s(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    requests: FloatOrArray,
    batch_limit: FloatOrArray,
    variation: FloatOrArray = 0.0,
) -> Values:
    """As `pile_s`, sent through the engine's server, which takes its time for every request and token.  [s]

    Parameters
    ----------
    replica
        One replica, or arrays with one element a replica.
    input_tokens, output_tokens
        Prompt and answer of a request.  [tokens]
    requests
        That one replica is sent.  [count]
    batch_limit
        Requests that may run at once.  [count]
    variation
        Standard deviation of the answers over their mean; 0 = all alike.
    """
    own = replica.constants
    front = front_end_s(requests, output_tokens, own.front_request_s, own.front_token_s)
    return np.maximum(pile_s(replica, input_tokens, output_tokens, requests, batch_limit, variation=variation), front)


def open_run(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    requests_per_s: FloatOrArray,
    requests: FloatOrArray,
    batch_limit: FloatOrArray,
    step_tokens: FloatOrArray = STEP_TOKENS,
) -> OpenRun:
    """Follows a run in time: arrivals, prompts in their order, answers of equal length; one element a replica.

    Prompts come before further tokens of what runs, as many as have a slot. Waits of random arrivals for each other's
    prompts are added as of an M/G/1 queue where it has a steady state.

    Parameters
    ----------
    replica
        One replica, or arrays with one element a replica.
    input_tokens, output_tokens
        Prompt and answer of a request.  [tokens]
    requests_per_s
        Rate at which requests are sent to one replica.  [1/s]
    requests
        That one replica is sent in the whole run.  [count]
    batch_limit
        Requests that may run at once.  [count]
    step_tokens
        Most tokens of one step.  [tokens]
    """
    made, sent = np.atleast_1d(as_float(output_tokens)), np.atleast_1d(as_float(requests))
    own = replica.constants
    ceiling = 1 / np.maximum(as_float(front_end_s(1.0, made, own.front_request_s, own.front_token_s)), 1e-9)
    rate = np.minimum(np.atleast_1d(as_float(requests_per_s)), ceiling)
    most = np.maximum(np.minimum(np.atleast_1d(as_float(batch_limit)), sent), 1.0)
    context = mean_resident_tokens(input_tokens, output_tokens)
    prompts = prompts_per_step(np.minimum(most, rate * made), output_tokens, input_tokens, step_tokens)
    prompt = np.atleast_1d(as_float(replica.prefill_s(input_tokens, 0, prompts)))
    sizes = [np.maximum(share * most, 1.0) for share in _BATCHES]
    steps = [np.atleast_1d(as_float(replica.token_s(size, context))) for size in sizes]
    full = most / (prompt * most + made * steps[-1])
    last = sent / rate
    end = np.maximum(last, sent / full) + prompt + 2 * made * steps[-1]
    waits, runs, finished = _followed(rate, sent, most, made, prompt, np.stack(sizes), np.stack(steps), end)
    load = rate * prompt
    queue = np.where(load < 1, as_float(prefill_queue_wait_s(np.minimum(rate, full), prompt, prompt**2)), 0.0)
    first = as_float(own.request_s) + as_float(replica.prefill_alone_s(input_tokens)) + steps[0] / 2
    return OpenRun(
        tpot_s=np.maximum(runs / sent / np.maximum(made - 1, 1.0), steps[0]),
        ttft_s=waits / sent + np.where(np.isfinite(queue), queue, 0.0) + first,
        requests_per_s=sent / finished,
        behind=np.atleast_1d(as_float(requests_per_s)) > np.minimum(full, ceiling),
    )


def _followed(
    rate: Values, sent: Values, most: Values, made: Values, prompt: Values, sizes: Values, steps: Values, end: Values
) -> tuple[Values, Values, Values]:
    """Waiting and running, summed over requests and time, and the end of the run.  [requests s], [requests s], [s]

    By equal moments: what has arrived, what has begun to answer, what has ended; a request ends when as many tokens
    have been made since it began as its answer has.
    """
    moment = end / _MOMENTS
    rows = np.arange(len(rate))
    begun, tokens = np.zeros((_MOMENTS + 1, len(rate))), np.zeros((_MOMENTS + 1, len(rate)))
    ended, oldest = rate * 0.0, np.zeros(len(rate), dtype=np.int64)
    waits, runs, finished = rate * 0.0, rate * 0.0, end.copy()
    for now in range(1, _MOMENTS + 1):
        arrived = np.minimum(rate * moment * now, sent)
        before = begun[now - 1]
        running = before - ended
        room = np.minimum(arrived - before, np.maximum(most - running, 0.0))
        taken = np.clip(room, 0.0, moment / prompt)
        begun[now] = before + taken
        step = _step_between(np.maximum(running + taken / 2, 1.0), sizes, steps)
        tokens[now] = tokens[now - 1] + np.maximum(moment - taken * prompt, 0.0) / step
        while True:
            far = (oldest < now - 1) & (tokens[np.minimum(oldest + 1, now), rows] <= tokens[now] - made)
            if not far.any():
                break
            oldest = oldest + far
        low, high = tokens[oldest, rows], tokens[np.minimum(oldest + 1, now), rows]
        part = np.clip((tokens[now] - made - low) / np.maximum(high - low, 1e-30), 0.0, 1.0)
        done = begun[oldest, rows] + part * (begun[np.minimum(oldest + 1, now), rows] - begun[oldest, rows])
        done = np.where(tokens[now] >= made, done, 0.0)
        waits = waits + (arrived - (before + begun[now]) / 2) * moment - rate * moment**2 / 2 * (arrived < sent)
        runs = runs + ((before + begun[now]) / 2 - (ended + done) / 2) * moment
        finished = np.where((done >= sent * (1 - 1e-9)) & (ended < sent * (1 - 1e-9)), moment * now, finished)
        ended = done
    return np.maximum(waits, 0.0), runs, finished


def _step_between(batch: Values, sizes: Values, steps: Values) -> Values:
    """The time of a step at a batch, on straight lines between those that were timed.  [s]"""
    found: Values = steps[0]
    for low, high, short, long in zip(sizes, sizes[1:], steps, steps[1:], strict=False):
        part = np.clip((batch - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
        found = np.asarray(np.where(batch > low, short + part * (long - short), found))
    return found
