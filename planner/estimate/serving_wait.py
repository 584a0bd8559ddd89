"""Waiting for a step that takes in every prompt that came during the last one, where prompts are of several classes.

The distribution, not two moments of it: a few long prompts hold up many short ones for up to their whole length,
which no exponential tail of the same mean says. Transforms of Takagi, "Queueing Analysis," vol. 1, 1991, sec. 2.4
(gated vacations, one queue), inverted on a lattice (J. Abate and W. Whitt, "The Fourier-series method for inverting
transforms of probability distributions," Queueing Systems 10, 1992).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.queueing import normal_share_below

Values = NDArray[np.float64]
Complex = NDArray[Any]  # of complex numbers
POINTS = 320  # of the lattice
TURNS = 24  # steps before the one that an arrival falls into, at most; the rest is a geometric series
LINEAR = 1e-4  # of a transform's argument times the longest prompt: from here on each turn is the one before, shrunk
DAMPING = 1.0  # of the transform; what lies beyond the lattice folds back with its exponential
REACH = 3.0  # of the lattice, in longest prompts
SPREADS = 12.0  # and in mean waits
FINEST = 0.25  # mean that a lattice tells, in its steps: a smaller one, and one below 0, is of the inversion
TURN = 2 * np.pi * np.arange(POINTS // 2 + 1)[:, None]
SMOOTH = np.exp(-0.5 * (TURN / POINTS) ** 2)  # over one point
PLACE = np.arange(POINTS)[:, None] / POINTS
UNDAMPED = np.exp(DAMPING * PLACE)
BELOW_JUMP = np.asarray(normal_share_below(PLACE * POINTS))  # the jump at 0 is smoothed too


@dataclass(frozen=True, kw_only=True)
class Steps:
    """An engine whose steps take in what came before; arrays (n,), or (classes, n) where said."""

    decode_s: Values  # decoding part of a step D
    requests_per_s: Values  # x, Poisson
    prefill_s: Values  # (classes, n)
    variation: Values  # squared, of the prefill of a class, (classes, n)
    shares: Values  # of the classes, (classes, 1)
    unshared: Values  # share of the work in prompts that share no step with others
    mean_s: Values  # wait that the distribution is scaled to

    def _work(self, at: Complex) -> Complex:
        """x (1 - E[exp(-s P)]) of (..., n), prompts of a class being gamma distributed about their mean."""
        scale, shape, weight = self._prompts
        real, imaginary = 1 + at.real[..., None, :] * scale, at.imag[..., None, :] * scale
        size = weight * np.exp(np.log(real * real + imaginary * imaginary) / (-2 * shape))  # of (1 + s P c)^(-1 / c)
        angle = np.arctan2(imaginary, real) / shape
        found = np.empty(at.shape, dtype=np.complex128)
        found.real = self.requests_per_s - (size * np.cos(angle)).sum(axis=-2)
        found.imag = (size * np.sin(angle)).sum(axis=-2)
        return found

    @cached_property
    def _prompts(self) -> tuple[Values, Values, Values]:
        """Scale, shape and requests/s of prompts, classes of equal ones together: many differ in answers alone."""
        shape = np.maximum(self.variation, 1e-3)
        scale, requests_per_s = self.prefill_s * shape, self.shares * self.requests_per_s
        alike: dict[tuple[bytes, bytes], list[int]] = {}
        for i in range(len(shape)):
            alike.setdefault((scale[i].tobytes(), shape[i].tobytes()), []).append(i)
        first = [places[0] for places in alike.values()]
        together = [requests_per_s[places].sum(axis=0) for places in alike.values()]
        return scale[first], shape[first], np.stack(together)

    def _exponent(self, *at: Complex) -> list[Complex]:
        """Sum of s, w(s), w(w(s)), ... of each (points, n): the transform of a step's length is exp(-D times it)."""
        now = np.stack(at)
        total, longest = now, self.prefill_s.max(axis=0)
        found: list[Complex | None] = [None] * len(at)
        for turn in range(TURNS):
            now = self._work(now)
            total = total + now
            small = (np.abs(now) * longest <= LINEAR).all(axis=(1, 2)) | (turn == TURNS - 1)
            for place in np.flatnonzero(small).tolist():
                if found[place] is None:  # each is the series up to its own last turn, whoever stands beside it
                    found[place] = total[place] + now[place] * (1 / self._free - 1)
            if small.all():
                break
        return [each for each in found if each is not None]

    @cached_property
    def mean_prefill_s(self) -> Values:
        """Over all classes."""
        return np.asarray((self.shares * self.prefill_s).sum(axis=0))

    @cached_property
    def reach_s(self) -> Values:
        """Time that the lattice spans."""
        return np.asarray(REACH * self.prefill_s.max(axis=0) + SPREADS * self.mean_s + 4 * self.decode_s)

    @cached_property
    def wait_table(self) -> tuple[Values, Values]:
        """Share of arrivals that wait longer than a time, and the times, (points, n)."""
        rate = (DAMPING + 1j * TURN) / self.reach_s
        decode, free = np.maximum(self.decode_s, 1e-3 * self.mean_prefill_s), self._free
        inner = self._work(rate)
        before, after = self._exponent(inner, inner + rate)
        shared = np.exp(-decode * before) - np.exp(-decode * after)
        gated = shared * free / (rate * decode)  # Takagi: residual of a step, and all prompts that come in during it
        line = -np.expm1(-rate * decode) / (rate * decode) * free * rate / (rate - inner)  # Pollaczek and Khinchine
        tail, times = self._inverted(gated + self.unshared * (line - gated), rate)
        mean = (tail.sum(axis=0) - 0.5) * self.reach_s / POINTS
        told = mean > FINEST * self.reach_s / POINTS  # else waits of a replica that is hardly busy are finer than the
        finer = np.minimum(self.mean_s * POINTS / self.reach_s, 1.0)  # lattice, a step of which stands for the mean
        return tail, times * np.where(told, self.mean_s / np.where(told, mean, 1.0), finer)

    @cached_property
    def step_table(self) -> tuple[Values, Values]:
        """Share of steps that are longer than a time, and the times, (points, n)."""
        rate = (DAMPING + 1j * TURN) / self.reach_s
        prompts = np.exp(-self.decode_s * (self._exponent(rate)[0] - rate))
        tail, times = self._inverted(prompts, rate)
        return tail, times + self.decode_s

    @property
    def _free(self) -> Values:
        return np.maximum(1 - self.requests_per_s * self.mean_prefill_s, 1e-6)

    def _inverted(self, transform: Complex, rate: Complex) -> tuple[Values, Values]:
        """Share above each time of the lattice, from a transform at its rates."""
        above = (1 - transform) / rate * SMOOTH
        lattice = np.fft.irfft(above, POINTS, axis=0) * POINTS / self.reach_s * UNDAMPED
        lattice = lattice / BELOW_JUMP
        tail = np.minimum.accumulate(np.clip(lattice[: POINTS * 3 // 4], 0.0, 1.0), axis=0)
        return tail, PLACE[: len(tail)] * self.reach_s

    def wait_s(self, share: Any) -> Values:
        """Wait that a share of the arrivals does not pass; `share` is a number, or an array (..., 1).  [s]"""
        return _percentile(*self.wait_table, share)

    def length_s(self, share: Any) -> Values:
        """Length that a share of the steps does not pass.  [s]"""
        return _percentile(*self.step_table, share)


def _percentile(tail: Values, times: Values, share: Any) -> Values:
    wanted = 1 - np.ravel(np.asarray(share, dtype=np.float64))
    rows = range(tail.shape[1])
    found = np.stack([np.interp(wanted, tail[::-1, row], times[::-1, row]) for row in rows], axis=-1)
    return np.asarray(found.reshape(*np.shape(share)[:-1], tail.shape[1]))
