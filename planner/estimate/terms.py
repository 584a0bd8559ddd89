"""Named parts of an estimate whose sum is the total: what `explain` prints is what the search used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Terms(Mapping[str, Values]):
    """Frozen, ordered mapping of term name to an array; every array has one shape (scalars: ())."""

    __slots__ = ("_arrays", "_total")

    def __init__(self, arrays: Mapping[str, Any], total: Values | None = None) -> None:
        shape = np.broadcast_shapes(*(np.shape(array) for array in arrays.values())) if arrays else (0,)
        self._arrays: dict[str, Values] = {name: _shaped(array, shape) for name, array in arrays.items()}
        self._total = total

    def __getitem__(self, name: str) -> Values:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Terms({', '.join(f'{name}={array}' for name, array in self._arrays.items())})"

    @property
    def total(self) -> Values:
        """Sum of the terms, in their order."""
        if self._total is None:
            arrays = list(self._arrays.values())
            total = np.zeros(np.shape(arrays[0]) if arrays else 0)
            for array in arrays:
                total = total + array
            self._total = np.asarray(total)
        return self._total

    def row(self, index: int) -> dict[str, float]:
        """Terms of one element as numbers; element 0 of a scalar estimate is itself."""
        return {name: float(np.reshape(array, -1)[index]) for name, array in self._arrays.items()}

    def select(self, which: NDArray[Any]) -> Terms:
        """The elements of a mask or of indices."""
        return Terms({name: array[which] for name, array in self._arrays.items()})

    @classmethod
    def concatenate(cls, parts: Sequence[Terms]) -> Terms:
        """Elements of several estimates, one after the other; a term that one of them lacks is 0 there."""
        full = [part for part in parts if len(part)]
        names = dict.fromkeys(name for part in full for name in part)
        zeros = [np.zeros(np.shape(next(iter(part.values())))) for part in full]
        return cls({n: np.concatenate([p.get(n, z) for p, z in zip(full, zeros, strict=True)]) for n in names})


def _shaped(array: Any, shape: tuple[int, ...]) -> Values:
    values = np.asarray(array, dtype=np.float64)
    return values if values.shape == shape else np.broadcast_to(values, shape)
