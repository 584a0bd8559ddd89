"""Layouts whose layers cost the same, computed once: a layer knows nothing of stages, batches and replicas.

A million layouts of one job hold a few thousand ways to run a layer. The exact values are shared,
so results do not depend on what else is asked at the same time.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.estimate.layout import Layout
from planner.estimate.stack import Stack
from planner.estimate.step_layer import Context

FEWEST = 64  # layouts below which sharing does not pay
_OF_A_LAYER = ("micro_batch", "tp", "cp", "ep", "sharding", "recompute")
_MOST = 2.0**62

Index = NDArray[np.intp]


def distinct(ctx: Context) -> tuple[Context, Index | None]:
    """One layout of every way to run a layer, and which of them each layout is; (ctx, None) where all may differ."""
    count = np.size(ctx.tokens)
    if count < FEWEST or _varies(ctx.work) or _varies(ctx.machine) or any(_varies(one) for one in ctx.work.layers):
        return ctx, None
    key = _key(ctx, count)
    if key is None:
        return ctx, None
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    few = _select(ctx, first, count)
    return (few, inverse) if _same_software(ctx.stack, few.stack, inverse) else (ctx, None)


def spread(value: Any, inverse: Index | None) -> Any:
    """Values of the distinct layouts for all layouts."""
    return value if inverse is None or np.ndim(value) == 0 else value[inverse]


def _varies(thing: Any) -> bool:
    return any(np.ndim(getattr(thing, f.name)) > 0 for f in fields(thing) if f.name != "layers")


def _key(ctx: Context, count: int) -> NDArray[np.int64] | None:
    """A whole number that is equal for layouts whose layers cost the same; None when it would not fit."""
    key, room = np.zeros(count, dtype=np.int64), 1.0
    columns = [getattr(ctx.layout, name) for name in _OF_A_LAYER] + [ctx.expert_tensor]
    for column in columns:
        whole = np.broadcast_to(np.asarray(column), (count,)).astype(np.int64)
        if not np.array_equal(whole, np.broadcast_to(np.asarray(column), (count,))):
            return None
        base = int(whole.max()) + 1
        room *= base
        if room > _MOST or whole.min() < 0:
            return None
        key = key * base + whole
    return key


def _select(ctx: Context, first: Index, count: int) -> Context:
    def take(value: Any) -> Any:
        return value[first] if np.ndim(value) == 1 and np.shape(value)[0] == count else value

    layout = Layout(**{f.name: take(getattr(ctx.layout, f.name)) for f in fields(Layout)})
    stack = Stack(**{f.name: take(getattr(ctx.stack, f.name)) for f in fields(Stack)})
    own = ("work", "layout", "machine", "stack", "constants")
    rest = {f.name: take(getattr(ctx, f.name)) for f in fields(Context) if f.name not in own}
    return replace(ctx, layout=layout, stack=stack, **rest)


def _same_software(stack: Stack, few: Stack, inverse: Index) -> bool:
    """Whether layouts of one key share their software."""
    names = [f.name for f in fields(Stack) if np.ndim(getattr(stack, f.name)) > 0]
    return all(np.array_equal(getattr(stack, name), getattr(few, name)[inverse]) for name in names)
