"""Separate pools for prefill and decode: what one replica of either carries within its targets.

A prefill replica takes prompts one by one in their order; a decode replica never stops for a prompt.
Between them the cache of a prompt travels, which lengthens the gap between the first two tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.queueing import arrival_wait_factor, prefill_queue_wait_s, wait_percentile_s
from planner.equations.registry import FloatOrArray, as_float
from planner.estimate.serving_latency import Demand, Point
from planner.estimate.serving_levels import LEVELS, SHARE, excess, late_s
from planner.estimate.serving_open import solved
from planner.estimate.serving_requests import KEYS, OpenLoad, RequestShape, Targets
from planner.estimate.serving_root import crossing
from planner.estimate.serving_step import StepTimes

Values = NDArray[np.float64]
LEAST = 1e-6
UNLIMITED = 1e12  # tokens of a step: prompts are never cut
FULLEST = 0.999  # share of a prefill replica's time that may be taken


def prefill_pool_capacity(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    *,
    arrival_variability: FloatOrArray = 1.0,
    requests_per_s: FloatOrArray | None = None,
) -> OpenLoad:
    """Largest rate of prompts that a prefill replica takes within the targets on the first token.

    Other targets are not its concern. With `requests_per_s` its latencies at that rate instead.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix its moments count.
    targets
        Latencies to keep, of which those of the first token count.
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    requests_per_s
        Rate at which latencies are asked for; None: the largest is sought.  [1/s]
    """
    line = _Line.of(replica, shape, as_float(arrival_variability))
    asked = {name: limit for name, limit in targets.asked.items() if name.startswith("ttft")}
    shapes = [line.service_s.shape, *(limit.shape for limit in asked.values())]
    ones = np.ones(np.broadcast_shapes(*shapes, np.shape(requests_per_s) if requests_per_s is not None else ()))

    def over(where: Values) -> Values:
        share = np.exp(where)
        worst = share * 0.0 - 1.0
        for name, limit in asked.items():
            worst = np.maximum(worst, np.log(line.ttft(share, name.split("_")[1]) / limit))
        return np.where(np.isnan(worst), 1.0, np.clip(worst, -50.0, 1.0))

    with np.errstate(all="ignore"):
        if requests_per_s is not None:
            rate = ones * as_float(requests_per_s)
            return line.load(rate * line.service_s, rate, np.full(ones.shape, ""))
        low, high = np.log(ones * LEAST), np.log(ones * FULLEST)
        at_low, at_high = over(low), over(high)
        found = np.exp(crossing(over, low, at_low, high, at_high))
        share = np.where(at_high <= 0, FULLEST, np.where(at_low <= 0, found, LEAST))
        rate = np.where(at_low <= 0, share / line.service_s, 0.0)
        return line.load(share, rate, line.binding(share, asked))


def decode_pool_capacity(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    *,
    kv_transfer_s: FloatOrArray = 0.0,
    first_token_s: FloatOrArray = 0.0,
    arrival_variability: FloatOrArray = 1.0,
    requests_per_s: FloatOrArray | None = None,
) -> OpenLoad:
    """Largest rate of requests that a decode replica finishes within the targets on later tokens.

    Targets on the first token are not its concern; `first_token_s`, which the other pool takes, counts
    end to end. The transfer and the wait for a slot fall into the gap after the first token. With
    `requests_per_s` its latencies at that rate instead.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix its moments count.
    targets
        Latencies to keep, all but those of the first token.
    batch_limit
        Sequences that may run at once.  [count]
    kv_transfer_s
        Time in which the cache of a prompt comes in.  [s]
    first_token_s
        Time to the first token in the other pool; it counts end to end alone.  [s]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    requests_per_s
        Rate at which latencies are asked for; None: the largest is sought.  [1/s]
    """
    whole = Demand.of(replica, shape, batch_limit, arrival_variability, UNLIMITED)
    nothing = whole.new * 0.0
    demand = replace(
        whole,
        new=nothing,
        linear_s=nothing,
        square_s=nothing,
        alone_s=nothing,
        request_s=nothing,
        input_spread=nothing + 1,
        transfer_s=as_float(kv_transfer_s),
        elsewhere_s=as_float(first_token_s),
    )
    asked = {name: limit for name, limit in targets.asked.items() if not name.startswith("ttft")}
    return solved(_Decode, demand, asked, None if requests_per_s is None else as_float(requests_per_s))


class _Decode(Point):
    """A decode replica: what comes before its first own token lengthens the time per token."""

    def tpot(self, key: str) -> Values:
        demand = self.demand
        later = np.maximum(demand.later, 1.0)
        mean = np.asarray(self.tpot_s + (demand.transfer_s + self.ttft("mean")) / later)
        if key == "mean":
            return mean
        late = late_s(self.ttft(key), self.ttft("mean")) / later
        return np.asarray(mean + excess(late_s(Point.tpot(self, key), Point.tpot(self, "mean")), late))

    def e2e(self, key: str) -> Values:
        """From arrival in the other pool to the last token."""
        later = self.demand.later
        mean = self.ttft("mean") + later * self.tpot_s + self.demand.transfer_s + self.demand.elsewhere_s
        return np.asarray(mean + late_s(Point.e2e(self, key), Point.e2e(self, "mean")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Prompts that wait in a line for a prefill replica."""

    service_s: Values
    second_moment: Values
    spread: dict[str, Values]  # percentile of the service time
    outside_s: Values  # of the request, and of the other stages of a pipeline
    factor: Values  # on waits, of the arrivals

    @classmethod
    def of(cls, replica: StepTimes, shape: RequestShape, variability: Values) -> _Line:
        prompt = Demand.of(replica, shape, 1.0, variability, UNLIMITED)
        fixed = prompt.launch_s  # weights and launches, which no other work shares; a pipeline takes the next meanwhile
        service = fixed + prompt.prefill_s
        second = fixed**2 + 2 * fixed * prompt.prefill_s + prompt.prefill_second_moment
        relative = np.maximum(second / service**2 - 1, 0.0)
        return cls(
            service_s=service,
            second_moment=second,
            spread={key: fixed + prompt.prefill_at(level) for key, level in LEVELS.items()},
            outside_s=prompt.request_s + prompt.walk_s,
            factor=np.asarray(arrival_wait_factor(variability, relative)),
        )

    def wait_s(self, share: Values) -> Values:
        rate = share / self.service_s
        return np.asarray(prefill_queue_wait_s(rate, self.service_s, self.second_moment)) * self.factor

    def ttft(self, share: Values, key: str) -> Values:
        wait = self.wait_s(share)
        mean = self.outside_s + wait + self.service_s
        if key == "mean":
            return mean
        late = as_float(wait_percentile_s(share, wait / share, SHARE[key]))
        return np.asarray(mean) + excess(late - wait, self.spread[key] - self.service_s)

    def binding(self, share: Values, asked: dict[str, Values]) -> NDArray[np.str_]:
        names = np.array(["prefill", *asked])
        used = [share / FULLEST]
        used += [self.ttft(share, name.split("_")[1]) / limit for name, limit in asked.items()]
        chosen: NDArray[np.str_] = names[np.argmax(np.stack(np.broadcast_arrays(*used)), axis=0)]
        return chosen

    def load(self, share: Values, rate: Values, binding: Any) -> OpenLoad:
        none = np.zeros(rate.shape)
        table = {key: none + self.ttft(share, key) for key in KEYS}
        return OpenLoad(
            requests_per_s=rate,
            sequences=share + rate * self.wait_s(share),
            prefill_share=none + share,
            slot_wait_s=none,
            ttft_s=table,
            tpot_s=dict.fromkeys(KEYS, none),
            e2e_s=table,
            itl_p99_s=none,
            binding=binding,
        )
