"""Layouts whose layers cost the same, computed once: a layer knows nothing of stages, batches and replicas.

A million layouts of one job hold a few thousand ways to run a layer. The exact values are shared,
so results do not depend on what else is asked at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.estimate.layout import Layout, expert_tensor_degree
from planner.estimate.stack import Stack
from planner.estimate.step_layer import Context

FEWEST = 64  # layouts below which sharing does not pay
_OF_A_LAYER = ("micro_batch", "tp", "cp", "ep", "sharding", "recompute")
_OF_AN_EXCHANGE = ("dp", "cp", "tp", "pp", "ep", "sharding")
_PARTS = ("layout", "machine", "stack", "constants")
_MOST = 2.0**62

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Numbers of layouts that are the same in what a part of a step knows of them, machine and software given.

    Software must follow from the ZeRO stage, and from whether there is one device alone.
    """

    layer: Index  # (layouts,) of a layer of one micro-batch
    exchange: Index  # (layouts,) of the exchange and the update of weights

    @classmethod
    def of(cls, layout: Layout) -> Ways | None:
        """Numbers from 0; None where a degree is no whole number."""
        lay = layout.as_floats()
        layer, exchange = (
            _key(
                [getattr(lay, name) for name in names] + [expert_tensor_degree(lay.tp, lay.ep), _alone(lay)],
                np.size(lay.devices),
            )
            for names in (_OF_A_LAYER, _OF_AN_EXCHANGE)
        )
        if layer is None or exchange is None:
            return None
        layer, exchange = (np.unique(key, return_inverse=True)[1].reshape(-1) for key in (layer, exchange))
        return cls(layer=layer, exchange=exchange)

    def on(self, rows: Index, machine: Index) -> Ways:
        """Of some layouts, each on one of several machines."""
        layer, exchange = (
            numbers[rows] + machine * (int(numbers.max(initial=0)) + 1) for numbers in (self.layer, self.exchange)
        )
        return Ways(layer=layer, exchange=exchange)

    def select(self, which: slice | Index) -> Ways:
        """Of some of the layouts."""
        return Ways(layer=self.layer[which], exchange=self.exchange[which])

    def and_(self, others: Ways) -> Ways:
        """Of these layouts and, after them, others; nothing is the same among the two."""
        pairs = (self.layer, others.layer), (self.exchange, others.exchange)
        layer, exchange = (np.concatenate([own, other + int(own.max(initial=-1)) + 1]) for own, other in pairs)
        return Ways(layer=layer, exchange=exchange)


def distinct(ctx: Context) -> tuple[Context, Index | None]:
    """One layout of every way to run a layer, and which of them each layout is; (ctx, None) where all may differ."""
    count = np.size(ctx.tokens)
    if count < FEWEST or _varies(ctx.work) or _varies(ctx.machine) or any(_varies(one) for one in ctx.work.layers):
        return ctx, None
    key = _key([getattr(ctx.layout, name) for name in _OF_A_LAYER] + [ctx.expert_tensor, _alone(ctx.layout)], count)
    if key is None:
        return ctx, None
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    few = _select(ctx, first, count)
    return (few, inverse) if _same_software(ctx.stack, few.stack, inverse) else (ctx, None)


def one_of_each(ctx: Context, numbers: Index) -> tuple[Context, Index]:
    """One layout of every number, and which of them each layout is."""
    low = int(numbers.min())
    last = np.full(int(numbers.max()) - low + 1, -1, dtype=np.intp)
    last[numbers - low] = np.arange(len(numbers))
    there = last >= 0
    rank = np.cumsum(there) - 1
    return _select(ctx, last[there], len(numbers)), rank[numbers - low]


def spread(value: Any, inverse: Index | None) -> Any:
    """Values of the distinct layouts for all layouts."""
    return value if inverse is None or np.ndim(value) == 0 else value[inverse]


def _alone(layout: Layout) -> Any:
    return np.asarray(layout.devices) == 1


def _varies(thing: Any) -> bool:
    return any(np.ndim(getattr(thing, f.name)) > 0 for f in fields(thing) if f.name != "layers")


def _key(columns: Sequence[Any], count: int) -> NDArray[np.int64] | None:
    """A whole number that is equal for layouts with equal columns; None when it would not fit."""
    key, room = np.zeros(count, dtype=np.int64), 1.0
    for column in columns:
        whole = np.broadcast_to(np.asarray(column), (count,)).astype(np.int64)
        if not np.array_equal(whole, np.broadcast_to(np.asarray(column), (count,))):
            return None
        base = int(whole.max(initial=0)) + 1
        room *= base
        if room > _MOST or whole.min(initial=0) < 0:
            return None
        key = key * base + whole
    return key


def _select(ctx: Context, first: Index, count: int) -> Context:
    def take(value: Any) -> Any:
        return value[first] if np.ndim(value) == 1 and np.shape(value)[0] == count else value

    def taken(thing: Any) -> Any:
        columns = {name: getattr(thing, name) for name in _names(type(thing))}
        return replace(thing, **{name: take(value) for name, value in columns.items() if np.ndim(value) == 1})

    parts = {name: taken(getattr(ctx, name)) for name in _PARTS}
    rest = {name: take(getattr(ctx, name)) for name in _names(Context) if name not in ("work", *_PARTS)}
    return Context(work=ctx.work, **parts, **rest)


def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "overheads")


def _same_software(stack: Stack, few: Stack, inverse: Index) -> bool:
    """Whether layouts of one key share their software."""
    names = [f.name for f in fields(Stack) if np.ndim(getattr(stack, f.name)) > 0]
    return all(np.array_equal(getattr(stack, name), getattr(few, name)[inverse]) for name in names)
