"""What benchmarks of a replica would show: a closed loop of clients, a static batch, a rate within limits."""

from __future__ import annotations

import numpy as np

from planner.carriers import dataclass
from planner.equations.kv_cache import mean_resident_tokens
from planner.equations.pipeline import bubble_fraction, idle_stage_factor
from planner.equations.queueing import prefill_queue_wait_s, staffed_batch, tail_wait_s
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_load import (
    burst_wait_s,
    closed_loop_tpot_s,
    cycle_s,
    loaded_time_per_output_token_s,
    offline_makespan_s,
    prompts_per_step,
    steady_state_requests_per_s,
)
from planner.estimate.serving_step import Replica

STEP_TOKENS = 8192.0  # of one step, where the engine's limit is not stated
_HALVINGS = 14  # of a batch between 1 and its limit, on a logarithm: within a few percent
TPOT_TAIL = 1.1  # 99th percentile over mean of requests' time per token: means of many steps each (assumed)
_ROUNDS = 2  # of the clients that wait outside the engine; the second changes the batch by less than 1 %


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """A replica with a fixed number of clients, each of which sends when it has its answer."""

    sequences: FloatOrArray  # in the engine
    tpot_s: FloatOrArray
    ttft_s: FloatOrArray
    requests_per_s: FloatOrArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticBatch:
    """Sequences that begin and end together."""

    first_token_s: FloatOrArray
    step_s: FloatOrArray
    latency_s: FloatOrArray


def closed_loop(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    clients: FloatOrArray,
    batch_limit: FloatOrArray = np.inf,
    step_tokens: FloatOrArray = STEP_TOKENS,
    first_wave: FloatOrArray = 0.0,
) -> ClosedLoop:
    """Times and rate of a closed loop; clients beyond the batch limit queue for a slot.  [s], [1/s]

    Parameters
    ----------
    first_wave
        Share of all requests that are each client's first: all clients begin at once, and a short run is mostly that.
    """
    own = replica.constants
    room = np.maximum(as_float(batch_limit), 1.0)
    inside = np.minimum(as_float(clients), room)
    context = mean_resident_tokens(input_tokens, output_tokens)
    prompts = prompts_per_step(inside, output_tokens, input_tokens, step_tokens)
    prompt = as_float(replica.prefill_s(input_tokens, 0, prompts)) * idle_stage_factor(replica.layout.pp, inside)
    outside = as_float(own.request_s)
    running, step, cycle = inside, inside, inside
    for _ in range(_ROUNDS):
        step = as_float(replica.token_s(running, context))
        cycle = as_float(cycle_s(running, prompt, step, output_tokens))
        running = inside * cycle / (cycle + outside)
    together = as_float(step_tokens) / np.maximum(as_float(input_tokens), 1.0)
    # who sends together waits, and does not wait a second time after the first token: no share is above 1
    share = 1 - (1 - np.minimum(as_float(own.burst), 1.0)) * (1 - as_float(first_wave))
    wait = as_float(burst_wait_s(share, inside, prompt, together))
    rate = inside / (cycle + outside)
    first = outside + step / 2 + as_float(replica.prefill_alone_s(input_tokens)) + wait
    queue = np.maximum(as_float(clients) - inside, 0.0) / rate
    return ClosedLoop(
        sequences=running,
        tpot_s=closed_loop_tpot_s(cycle, wait + prompt, step, output_tokens),
        ttft_s=first + queue,
        requests_per_s=rate,
    )


def timely_requests_per_s(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    batch_limit: FloatOrArray,
    *,
    ttft_s: FloatOrArray,
    tpot_s: FloatOrArray,
    variation: FloatOrArray = 0.0,
    beams: FloatOrArray = 1,
    step_tokens: FloatOrArray = STEP_TOKENS,
) -> FloatOrArray:
    """Largest rate of random arrivals at which 99 of 100 requests keep a first token and a time per token.  [1/s]

    The closed form of what `slo_capacity` finds with whole distributions: the mean batch leaves room for the spread of
    the number in service, prompts wait as in a queue of their own, and a time per token is held by its mean and
    a margin. Rises with the batch until a limit is met, so that the batch is found by halving.

    Parameters
    ----------
    ttft_s, tpot_s
        99th percentiles to keep; infinite = not asked for.  [s]
    variation
        Coefficient of variation of the lengths.
    """
    context = mean_resident_tokens(input_tokens, output_tokens)
    alone = as_float(replica.prefill_alone_s(input_tokens)) + as_float(replica.request_s)
    low = np.ones(np.broadcast(as_float(batch_limit), as_float(output_tokens)).shape)
    high = np.maximum(as_float(staffed_batch(batch_limit)), 1.0) * low
    rate = low * 0.0
    for round_number in range(_HALVINGS):
        batch = high if round_number == 0 else np.sqrt(low * high)
        prompts = prompts_per_step(batch, output_tokens, input_tokens, step_tokens)
        prompt = as_float(replica.prefill_s(input_tokens, 0, prompts))
        step = as_float(replica.token_s(batch * as_float(beams), context))
        there = as_float(steady_state_requests_per_s(prompt, step, output_tokens, batch))
        spread = as_float(loaded_time_per_output_token_s(step, prompt, there))
        square = prompt**2 * (1 + as_float(variation) ** 2)
        wait = as_float(tail_wait_s(prefill_queue_wait_s(there, prompt, square)))
        kept = (spread * TPOT_TAIL <= tpot_s) & (alone + step + wait <= ttft_s)
        rate = np.where(kept, np.maximum(rate, there), rate)
        low, high = np.where(kept, batch, low), np.where(kept, high, batch)
    return rate


def static_batch(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    sequences: FloatOrArray,
    step_tokens: FloatOrArray = STEP_TOKENS,
    batch_limit: FloatOrArray = np.inf,
) -> StaticBatch:
    """A batch whose prompts are processed together, then one step per further token.  [s]

    What does not fit at once (`batch_limit`) follows as slots get free.

    Parameters
    ----------
    replica
        One replica, or arrays with one element a replica.
    input_tokens, output_tokens
        Prompt and answer of a request.  [tokens]
    sequences
        Of the whole batch.  [count]
    step_tokens
        Most tokens of one step.  [tokens]
    batch_limit
        Sequences that may run at once.  [count]
    """
    asked = as_float(sequences)
    batch = np.minimum(asked, np.maximum(as_float(batch_limit), 1.0))
    room = np.clip(as_float(step_tokens) / np.maximum(as_float(input_tokens), 1.0), 1.0, batch)
    parts = np.maximum(batch / room, np.minimum(batch, as_float(replica.layout.pp)))
    together = batch * as_float(replica.prefill_s(input_tokens, 0, room))
    together = together * (1 + as_float(bubble_fraction(replica.layout.pp, parts)))  # fills and drains once
    first = np.maximum(together, as_float(replica.prefill_alone_s(input_tokens)))
    step = as_float(replica.token_s(batch, mean_resident_tokens(input_tokens, output_tokens)))
    after = np.maximum(as_float(output_tokens) - 1, 0.0)
    whole = first + after * step
    waves = as_float(offline_makespan_s(asked, together / batch, step, output_tokens, batch))
    return StaticBatch(first_token_s=first, step_s=step, latency_s=np.where(asked > batch, waves, whole))
