"""The figures that predictions are held to, group by group, and whether they are reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.carriers import dataclass
from planner.validate.score import Scored
from planner.validate.summary import FEWEST_ROWS, Summary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure to reach, over the rows that a test picks."""

    name: str
    holds: Callable[[Scored], bool]
    statistic: str  # a field of Summary
    limit: float  # a share
    above_noise: bool = False  # the limit comes on top of the noise floor
    fewest: int = FEWEST_ROWS
    best_known: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A bar with what was reached; `reached` is None when the rows are too few to say."""

    bar: Bar
    summary: Summary | None
    value: float | None
    limit: float
    reached: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBar:
    """One figure to reach by rows that their fit has not seen; groups are "device kind precision"."""

    name: str
    devices: tuple[str, ...]  # how their names begin; none: all
    kinds: tuple[str, ...]
    precisions: tuple[str, ...]
    limits: Mapping[str, float]  # by statistic of a verdict: mean, median

    def holds(self, group: str) -> bool:
        """Whether a group of rows belongs to this figure."""
        device, kind, precision = group.split(" ")
        near = not self.devices or device.startswith(self.devices)
        return near and kind in self.kinds and (not self.precisions or precision in self.precisions)


_HOPPER, _BLACKWELL = ("H100", "H200"), ("B200", "GB200", "B300", "GB300")
_WIDE, _NARROW = ("16bit",), ("fp8",)


def _bar(
    name: str, devices: tuple[str, ...], kind: str, precisions: tuple[str, ...], mean: float, median: float = 0.0
) -> JudgedBar:
    limits = {"mean": mean, "median": median} if median else {"mean": mean}
    return JudgedBar(name=name, devices=devices, kinds=(kind,), precisions=precisions, limits=limits)


TIME_BARS = (
    _bar("A100 dense 16-bit", ("A100",), "dense", _WIDE, 0.09, 0.065),
    _bar("Hopper dense 16-bit", _HOPPER, "dense", _WIDE, 0.07),
    _bar("Hopper dense fp8", _HOPPER, "dense", _NARROW, 0.11),
    _bar("Blackwell dense 16-bit", _BLACKWELL, "dense", _WIDE, 0.10),
    _bar("Blackwell dense fp8", _BLACKWELL, "dense", _NARROW, 0.11),
    _bar("mixtures of experts", (), "experts", (), 0.15),
    _bar("hybrids without shape", (), "hybrid", (), 0.25),
    _bar("TPU dense 16-bit", ("TPU",), "dense", _WIDE, 0.08),
    _bar("TPU dense 8-bit", ("TPU",), "dense", _NARROW, 0.12),
    _bar("LoRA, QLoRA and full fine-tuning", (), "tuning", (), 0.15),
)
# few rows: reported, and held against one constant for the device
FEW = ("MI300X", "Trainium1", "V100", "RTX-4090")
KORTHIKANTI = Bar(
    name="fitted on MPT and vTrain, tested on Korthikanti Table 5, mean",
    holds=lambda item: True,
    statistic="mean",
    limit=0.04,
    fewest=1,
    best_known="3.7 % (Calculon, tuned near those rows)",
)
MEMORY_BARS = (
    Bar(
        name="peak memory allocated, pre-training, mean",
        holds=lambda item: item.row.memory_kind == "allocated" and item.row.kind != "tuning",
        statistic="mean",
        limit=0.03,
        best_known="0.36 % (SimuMax, on its own rows)",
    ),
    Bar(
        name="peak memory reserved or of the device, pre-training, mean",
        holds=lambda item: item.row.memory_kind in ("reserved", "process") and item.row.kind != "tuning",
        statistic="mean",
        limit=0.11,
    ),
    Bar(
        name="peak memory of LoRA, QLoRA and full fine-tuning, mean",
        holds=lambda item: item.row.kind == "tuning",
        statistic="mean",
        limit=0.12,
    ),
)


def judge(scored: Sequence[Scored], bars: Sequence[Bar]) -> list[Verdict]:
    """Each bar held against the rows that it speaks of."""
    return [_verdict(bar, [item for item in scored if bar.holds(item)]) for bar in bars]


def _verdict(bar: Bar, part: Sequence[Scored]) -> Verdict:
    if not part:
        return Verdict(bar=bar, summary=None, value=None, limit=bar.limit, reached=None)
    summary = summarise(part, "bar", bar.name)
    value = float(getattr(summary, bar.statistic))
    limit = bar.limit + (summary.noise_floor or 0.0) * bar.above_noise
    reached = value <= limit if summary.rows >= bar.fewest else None
    return Verdict(bar=bar, summary=summary, value=value, limit=limit, reached=reached)
