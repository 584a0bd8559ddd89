"""How a training job is split: one layout or a million, as parallel arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL = 0, 1, 2
FEW_SHORT = 0.10  # of the places for layers that chunks of two sizes leave empty
ENDS = 2  # embedding and loss, where a pipeline counts each as a layer


def equal_chunks(layers: int, stages: int, chunks: int) -> bool:
    """Whether layers, or layers with the embedding and the loss for one each, make chunks of one size on all stages.

    Parameters
    ----------
    layers
        Of the model.
    stages, chunks
        Stages of the pipeline, and chunks of each.

    Examples
    --------
    >>> equal_chunks(80, 8, 5), equal_chunks(126, 16, 8), equal_chunks(126, 16, 5)
    (True, True, False)
    """
    return layers % (stages * chunks) == 0 or (layers + ENDS) % (stages * chunks) == 0


def shares_nothing(layout: Layout) -> bool:
    """Whether no weights of any layout lie on two ranks: experts that are spread are shared by tensor ranks, too."""
    return bool(np.all(layout.dp * layout.cp * np.where(layout.ep > 1, layout.tp, 1) == 1))


def expert_tensor_degree(tp: Any, ep: Any) -> Any:
    """Over how many tensor ranks one expert is cut: over none where experts are spread, else over all.

    Guides spread experts before they cut them (Megatron-Core, "Mixture of Experts": expert tensor parallelism of 1),
    and every measured row with experts spread did so. Ranks that share experts follow each other then, tensor ranks
    first, so that eight of them lie in a node of eight.

    Parameters
    ----------
    tp, ep
        Degrees of tensor and of expert parallelism.

    Examples
    --------
    >>> expert_tensor_degree(np.array([4, 4, 1]), np.array([1, 8, 8])).tolist()
    [4, 1, 1]
    """
    return np.where(np.asarray(ep) > 1, 1.0, tp)


def cut_chunks(layers: int, stages: int, chunks: int) -> bool:
    """Whether layers make chunks of one size, or of two that differ by a layer with few chunks of the smaller one.

    Recipes lay the 61 layers of DeepSeek-V3 out as 32 chunks of two, three of them of one.

    Parameters
    ----------
    layers
        Of the model.
    stages, chunks
        Stages of the pipeline, and chunks of each.

    Examples
    --------
    >>> cut_chunks(80, 8, 5), cut_chunks(61, 16, 2), cut_chunks(61, 16, 3)
    (True, True, False)
    """
    places = stages * chunks
    missing = -layers % places
    return equal_chunks(layers, stages, chunks) or (places <= layers and missing <= FEW_SHORT * (layers + missing))


def chunk_layers(layers: int, stages: int, chunks: int) -> tuple[int, ...]:
    """Layers of each chunk in the order of the model, of those that `cut_chunks` allows beside equal ones.

    The first chunk and the last ones, of one stage after the other, have a layer less: no stage holds more than the
    fullest of a pipeline without chunks.

    Parameters
    ----------
    layers
        Of the model.
    stages, chunks
        Stages of the pipeline, and chunks of each.

    Examples
    --------
    >>> chunk_layers(13, 2, 4)
    (1, 2, 2, 2, 2, 2, 1, 1)
    """
    places = stages * chunks
    missing = -layers % places
    short = {0, *range(places - missing + 1, places)} if missing else set()
    return tuple(-(-layers // places) - (place in short) for place in range(places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Fields are numbers or arrays of one shape. devices = dp tp pp cp; ep lies inside dp cp tp.

    Sequence parallelism is always on when tp > 1: it needs no more communication and less memory.
    """

    devices: Any  # N
    dp: Any  # data parallel d
    tp: Any  # tensor parallel t
    pp: Any  # pipeline stages p
    vpp: Any  # chunks of layers per stage v
    cp: Any  # context parallel c
    ep: Any  # expert parallel
    micro_batch: Any  # sequences of one pass of one rank b
    sharding: Any  # ZeRO stage 0 to 3
    recompute: Any  # 0 none, 1 selective (attention core), 2 full
    global_batch: Any  # sequences of an optimizer step B

    @property
    def micro_batches(self) -> NDArray[np.float64]:
        """Passes m of each rank in a step: ceil(B / (d b))."""
        per_pass = np.asarray(self.dp, dtype=np.float64) * self.micro_batch
        return np.asarray(np.ceil(np.asarray(self.global_batch, dtype=np.float64) / per_pass))

    def select(self, which: NDArray[Any] | slice) -> Layout:
        """The layouts of a mask, of indices or of a slice."""
        return Layout(**{field.name: np.asarray(getattr(self, field.name))[which] for field in fields(self)})

    def as_floats(self) -> Layout:
        """The same layouts in float64, so that no product can overflow."""
        return Layout(**{field.name: np.asarray(getattr(self, field.name), dtype=np.float64) for field in fields(self)})

    @classmethod
    def concatenate(cls, parts: Sequence[Layout]) -> Layout:
        """Several layouts, one after the other."""
        return cls(
            **{
                field.name: np.concatenate([np.atleast_1d(getattr(part, field.name)) for part in parts])
                for field in fields(cls)
            }
        )
