"""What `plan validate -o json` prints (`plan/validation/v1`) as types, of which its JSON Schema is made."""

from __future__ import annotations

from typing import Literal, NotRequired, final

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

Quantity = Literal[
    "step_time_s", "tokens_per_s_per_device", "tflops_per_device", "peak_memory_bytes", "ttft_s", "tpot_s",
    "output_tokens_per_s", "prefill_tokens_per_s", "batch_latency_s", "device_hours",
]  # fmt: skip


class FigureBand(TypedDict):
    """What a figure may turn out to be where another source measures it."""

    p10: float
    p50: float
    p90: float
    tag: str
    "calibrated: on rows of this very device and kind, of serving of this engine and family; inherited: of its family, "
    "of serving of both apart; unfitted: of others"
    rows: int
    "of this very device and kind, behind the band; of memory: of all devices"
    sources: int


class RowValidated(TypedDict):
    """One measured row, and what was predicted for it."""

    id: str
    predicted: dict[Quantity, float]
    bands: NotRequired[dict[Quantity, FigureBand]]
    "of each predicted figure"
    measured: dict[Quantity, float]
    error: dict[Quantity, float]
    "predicted over measured, less one"
    skipped: str | None
    "why nothing was predicted"


class RowLabel(TypedDict):
    """What people know a row by."""

    model: str
    device: str
    family: str | None
    engine: NotRequired[str]
    load: NotRequired[str | None]
    source: str
    left_out: str
    "why it counts in no figure; empty where it does"


class Named(TypedDict):
    """A group of rows."""

    group: str
    name: str
    rows: int


class Errors(Named):
    """Absolute errors of a group of rows, as shares."""

    configurations: int
    "different ones"
    sources: int
    "publications"
    mean: float
    median: float
    p90: float
    worst: float
    bias: float
    "mean with its sign"
    mean_of_sources: float
    low: float
    "end of the bootstrap 90 % interval of the mean"
    high: float
    "end of the bootstrap 90 % interval of the mean"
    noise_floor: float | None
    "mean distance of rows of one configuration from their median; null: no such rows"


@final
class ErrorRow(Errors):
    """Absolute errors of a quantity."""

    quantity: Quantity


@final
class KindRow(Errors):
    """Absolute errors of a kind of figure, of serving rows."""

    quantity: Quantity
    kind: str


@final
class CoverageRow(Named):
    """How many rows got a prediction."""

    quantity: Literal["coverage"]
    predicted: int
    skipped: int
    share: float
    refusals: dict[str, list[str]]
    "rows by the reason why nothing was predicted"
    left_out_rows: int
    "that count in no figure"


@final
class BandRow(Named):
    """How many figures lie within the band that was drawn for them."""

    quantity: Literal["band"]
    inside: int
    share: float


@final
class MemoryFitRow(Named):
    """How the memory model sorts cells whose outcome is known."""

    quantity: Literal["memory_fit"]
    right: int
    share: float


@final
class LintRow(Named):
    """What is odd about measurements, by row."""

    quantity: Literal["lint"]
    details: dict[str, str]


SummaryRow = ErrorRow | KindRow | CoverageRow | BandRow | MemoryFitRow | LintRow


@with_config(ConfigDict(extra="forbid", strict=True))
class ValidationDocument(TypedDict):
    """Predictions held against measurements, as plan validate -o json prints them."""

    rows: list[RowValidated]
    summary: list[SummaryRow]
