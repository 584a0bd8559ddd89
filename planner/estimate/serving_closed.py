"""What benchmarks of a replica would show: a closed loop of clients, a pile of requests, a static batch."""

from __future__ import annotations

import numpy as np

from planner.carriers import dataclass
from planner.equations.closed_loop import burst_wait_s, closed_loop_tpot_s, cycle_s, prompts_per_step
from planner.equations.kv_cache import mean_resident_tokens
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_load import offline_makespan_s
from planner.estimate.serving_step import Replica

STEP_TOKENS = 8192.0  # of one step, where the engine's limit is not stated
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
) -> ClosedLoop:
    """Times and rate of a closed loop; clients beyond the batch limit queue for a slot.  [s], [1/s]"""
    own = replica.constants
    room = np.maximum(as_float(batch_limit), 1.0)
    inside = np.minimum(as_float(clients), room)
    context = mean_resident_tokens(input_tokens, output_tokens)
    prompts = prompts_per_step(inside, output_tokens, input_tokens, step_tokens)
    prompt = as_float(replica.prefill_s(input_tokens, 0, prompts))
    outside = as_float(own.request_s)
    running, step, cycle = inside, inside, inside
    for _ in range(_ROUNDS):
        step = as_float(replica.token_s(running, context))
        cycle = as_float(cycle_s(running, prompt, step, output_tokens))
        running = inside * cycle / (cycle + outside)
    together = as_float(step_tokens) / np.maximum(as_float(input_tokens), 1.0)
    wait = as_float(burst_wait_s(own.burst, inside, prompt, together))
    rate = inside / (cycle + outside)
    first = outside + step / 2 + as_float(replica.prefill_alone_s(input_tokens)) + wait
    queue = np.maximum(as_float(clients) - inside, 0.0) / rate
    return ClosedLoop(
        sequences=running,
        tpot_s=closed_loop_tpot_s(cycle, wait + prompt, step, output_tokens),
        ttft_s=first + queue,
        requests_per_s=rate,
    )


def offline_tokens_per_s(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    requests: FloatOrArray,
    batch_limit: FloatOrArray,
    step_tokens: FloatOrArray = STEP_TOKENS,
    beams: FloatOrArray = 1,
) -> FloatOrArray:
    """Output tokens per second over a pile of equal requests, all there from the start.  [1/s]

    With beam search every request runs `beams` sequences, of which one is its answer.
    """
    batch = np.maximum(np.minimum(as_float(batch_limit), as_float(requests)), 1.0)
    context = mean_resident_tokens(input_tokens, output_tokens)
    prompts = prompts_per_step(batch, output_tokens, input_tokens, step_tokens)
    prompt = replica.prefill_s(input_tokens, 0, prompts)
    step = replica.token_s(batch * as_float(beams), context)
    whole = offline_makespan_s(requests, prompt, step, output_tokens, batch)
    return as_float(requests) * as_float(output_tokens) / as_float(whole)


def static_batch(
    replica: Replica,
    input_tokens: FloatOrArray,
    output_tokens: FloatOrArray,
    sequences: FloatOrArray,
    step_tokens: FloatOrArray = STEP_TOKENS,
) -> StaticBatch:
    """A batch whose prompts are processed together, then one step per further token.  [s]"""
    batch = as_float(sequences)
    room = np.clip(as_float(step_tokens) / np.maximum(as_float(input_tokens), 1.0), 1.0, batch)
    together = batch * as_float(replica.prefill_s(input_tokens, 0, room))
    first = np.maximum(together, as_float(replica.prefill_alone_s(input_tokens)))
    step = as_float(replica.token_s(batch, mean_resident_tokens(input_tokens, output_tokens)))
    after = np.maximum(as_float(output_tokens) - 1, 0.0)
    return StaticBatch(first_token_s=first, step_s=step, latency_s=first + after * step)
