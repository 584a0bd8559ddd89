"""Requests of a simulation: when they come and how long they are, drawn with a seed or given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.estimate.serving_requests import RequestShape

Values = NDArray[np.float64]
LENGTHS = ("lognormal", "geometric")  # of outputs; one length for all where the second moment says so


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

    @classmethod
    def drawn(
        cls,
        shape: RequestShape,
        requests_per_s: float,
        requests: int,
        *,
        seed: int,
        arrival_variability: float = 1.0,
        lengths: str = "lognormal",
    ) -> Workload:
        """Requests with the moments of a shape: gamma times between arrivals (Poisson at a variability of 1).

        Outputs are log-normal, or geometric whatever their second moment; prompts are log-normal.

        Parameters
        ----------
        shape
            Means and second moments of the lengths, as numbers; its classes do not count.
        requests_per_s
            Mean rate of arrivals, above 0.  [1/s]
        requests
            How many are drawn.
        seed
            The same seed draws the same requests.
        arrival_variability
            Squared coefficient of variation of the times between arrivals; 0 = evenly spaced.
        lengths
            Of the outputs: ``lognormal`` or ``geometric``.

        Raises
        ------
        ValueError
            There is no such distribution of lengths.
        """
        if lengths not in LENGTHS:
            raise ValueError(f"lengths: {lengths!r} is none of {', '.join(LENGTHS)}")
        rng = np.random.default_rng(seed)
        mean_input, mean_output = float(shape.input_tokens), float(shape.output_tokens)
        if arrival_variability > 0:
            kind = 1 / arrival_variability
            gaps = rng.gamma(kind, 1 / (kind * requests_per_s), requests)
        else:
            gaps = np.full(requests, 1 / requests_per_s)
        prompts = _lognormal(rng, mean_input, float(shape.input_spread), requests)
        if lengths == "geometric":
            outputs = rng.geometric(1 / mean_output, requests).astype(np.float64)
        else:
            outputs = _lognormal(rng, mean_output, float(shape.output_spread), requests)
        cached = prompts * (float(shape.cached_tokens) / mean_input)
        return cls(arrival_s=np.cumsum(gaps), input_tokens=prompts, output_tokens=outputs, cached_tokens=cached)

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return len(self.input_tokens)


def _lognormal(rng: np.random.Generator, mean: float, spread: float, count: int) -> Values:
    """Whole lengths of at least 1 with a mean and E[X^2] / E[X]^2."""
    sigma = np.sqrt(np.log(spread))
    drawn = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    return np.asarray(np.maximum(np.rint(drawn), 1.0))
