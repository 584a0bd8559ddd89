"""What an open loop is asked and what it answers: requests, targets, the load of a replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.queueing import resident_tokens_mean
from planner.equations.registry import as_float
from planner.estimate.serving_work import taken

Values = NDArray[np.float64]
KEYS = ("mean", "p50", "p90", "p95", "p99")
INF = float("inf")
EACH = "each"  # ends the name of a target of every class


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """Requests that a replica sees: means and second moments of their lengths; numbers or arrays.

    A second moment that is not given is the square of the mean: all requests alike.
    """

    input_tokens: Any
    output_tokens: Any
    input_second_moment: Any = None  # tokens^2
    output_second_moment: Any = None  # tokens^2
    cached_tokens: Any = 0  # prefix found in the cache
    mix: Mix | None = None  # the classes of which these are the moments, where there are several

    @property
    def context_tokens(self) -> Values:
        """Mean length of a running sequence over its decode steps.  [tokens]"""
        if self.mix is not None:
            stays = self.mix.share * as_float(self.mix.classes.output_tokens)
            return as_float((stays * self.mix.classes.context_tokens).sum(axis=0) / stays.sum(axis=0))
        second = self.output_second_moment
        square = as_float(self.output_tokens) ** 2 if second is None else as_float(second)
        return as_float(resident_tokens_mean(self.input_tokens, self.output_tokens, square))

    @property
    def input_spread(self) -> Values:
        """E[I^2] / E[I]^2, at least 1."""
        return _spread(self.input_tokens, self.input_second_moment)

    @property
    def output_spread(self) -> Values:
        """E[O^2] / E[O]^2, at least 1."""
        return _spread(self.output_tokens, self.output_second_moment)

    def take(self, index: NDArray[np.intp]) -> RequestShape:
        """The rows of `index`, where there are rows."""
        rows: RequestShape = taken(self, index)
        return rows if self.mix is None else replace(rows, mix=self.mix.take(index))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Classes of requests that come in one stream; arrays (classes, 1), the same for every row."""

    share: Values  # of the requests; adds up to 1; (classes, n) where rows have mixes of their own
    classes: RequestShape

    def take(self, index: NDArray[np.intp]) -> Mix:
        """The mixes of these rows."""
        return self if self.share.shape[1] == 1 else replace(self, share=self.share[:, index])

    @property
    def alike(self) -> bool:
        """Whether all classes are the same."""
        lengths = [as_float(getattr(self.classes, f.name)) for f in fields(RequestShape) if f.name != "mix"]
        return all(bool((length == length[..., :1, :]).all()) for length in lengths if length.ndim > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Latencies that a percentile of the requests must keep; infinite = not asked for.  [s]"""

    ttft_p50_s: Any = INF
    ttft_p95_s: Any = INF
    ttft_p99_s: Any = INF
    tpot_p50_s: Any = INF
    tpot_p95_s: Any = INF
    tpot_p99_s: Any = INF
    e2e_p95_s: Any = INF
    spread: Any = INF  # so many times each target is that of every class of a mix by itself

    @property
    def asked(self) -> dict[str, Values]:
        """The finite targets, as `ttft_p95` -> seconds."""
        every = {f.name.removesuffix("_s"): as_float(getattr(self, f.name)) for f in fields(self) if f.name != "spread"}
        return {name: value for name, value in every.items() if not np.isposinf(value).all()}

    @property
    def goals(self) -> dict[str, Values]:
        """Those of all requests together, and as `ttft_p95_each` those of every class."""
        asked = self.asked
        apart = {f"{name}_{EACH}": value * self.spread for name, value in asked.items()}
        return {**asked, **(apart if np.isfinite(self.spread) else {})}

    def take(self, index: NDArray[np.intp]) -> Targets:
        """The rows of `index`, where there are rows."""
        return taken(self, index)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoad:
    """A replica at a rate of arrivals; arrays of one length.

    The mappings have the keys mean, p50, p90, p95, p99. Time per output token is that of a request:
    (end to end - first token) / (tokens - 1); `itl_p99_s` is that of single tokens.
    """

    requests_per_s: Values
    sequences: Values  # mean running, prompts in prefill among them
    prefill_share: Values  # of the engine's time
    slot_wait_s: Values  # mean, over all requests
    ttft_s: Mapping[str, Values]
    tpot_s: Mapping[str, Values]
    e2e_s: Mapping[str, Values]
    itl_p99_s: Values
    binding: NDArray[np.str_]  # what stops a higher rate; "" where that was not asked

    def margin(self, targets: Targets) -> dict[str, Values]:
        """Share of each asked target that is left; negative where it is missed."""
        return {name: 1 - self.latency_s(name) / limit for name, limit in targets.asked.items()}

    def latency_s(self, name: str) -> Values:
        """Latency by a target's name, such as `ttft_p95`.  [s]"""
        metric, key = name.split("_")
        table: Mapping[str, Values] = getattr(self, f"{metric}_s")
        return table[key]

    @classmethod
    def joined(cls, parts: Sequence[OpenLoad]) -> OpenLoad:
        """Loads of several blocks of rows, one after the other."""

        def join(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if name in ("ttft_s", "tpot_s", "e2e_s"):
                return {key: np.concatenate([column[key] for column in columns]) for key in KEYS}
            return np.concatenate(columns)

        return cls(**{f.name: join(f.name) for f in fields(cls)})

    def take(self, index: NDArray[Any]) -> OpenLoad:
        """The rows of `index`, in any order and as often as named."""

        def pick(value: Any) -> Any:
            return {key: column[index] for key, column in value.items()} if isinstance(value, Mapping) else value[index]

        return OpenLoad(**{f.name: pick(getattr(self, f.name)) for f in fields(OpenLoad)})


def _spread(mean: Any, second: Any) -> Values:
    average = as_float(mean)
    if second is None:
        return np.ones_like(average)
    return np.asarray(np.maximum(as_float(second) / np.maximum(average, 1e-300) ** 2, 1.0))
