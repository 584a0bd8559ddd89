"""The figures that predictions are held to, group by group, and whether they are reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def _dense_16_bit(item: Scored) -> bool:
    return not item.row.is_moe and item.row.precision_class == "16bit"


def _blackwell(item: Scored) -> bool:
    return item.family.startswith(("B200", "GB200", "B300", "GB300", "blackwell"))


def _kind(*kinds: str) -> Callable[[Scored], bool]:
    return lambda item: item.row.memory_kind in kinds


# Families as rows name them, or as the catalog does where a table has no such column.
TIME_BARS = (
    Bar(
        name="A100 dense 16-bit, mean",
        holds=lambda item: item.family in ("A100", "ampere") and _dense_16_bit(item),
        statistic="mean",
        limit=0.055,
        best_known="5.9 % (prototype)",
    ),
    Bar(
        name="A100 dense 16-bit, median",
        holds=lambda item: item.family in ("A100", "ampere") and _dense_16_bit(item),
        statistic="median",
        limit=0.035,
        best_known="3.4 % (prototype)",
    ),
    Bar(
        name="H100 dense 16-bit, mean",
        holds=lambda item: item.family in ("H100", "hopper") and _dense_16_bit(item),
        statistic="mean",
        limit=0.07,
        best_known="8.5 %",
    ),
    Bar(
        name="Blackwell dense 16-bit, context parallel included, mean",
        holds=lambda item: _blackwell(item) and _dense_16_bit(item),
        statistic="mean",
        limit=0.09,
        best_known="17.6 %",
    ),
    Bar(
        name="fp8 dense, any family, mean",
        holds=lambda item: not item.row.is_moe and item.row.precision_class == "fp8",
        statistic="mean",
        limit=0.05,
        above_noise=True,
        best_known="none published",
    ),
    Bar(
        name="MoE, any family, mean",
        holds=lambda item: item.row.is_moe,
        statistic="mean",
        limit=0.08,
        above_noise=True,
        best_known="none published",
    ),
    Bar(
        name="TPU, mean",
        holds=lambda item: item.family.lower().startswith("tpu"),
        statistic="mean",
        limit=0.10,
        best_known="6 to 16 % (constant utilisation)",
    ),
    Bar(
        name="V100, median",
        holds=lambda item: item.family in ("V100", "volta"),
        statistic="median",
        limit=0.15,
    ),
)
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
        name="peak memory, allocated, mean",
        holds=_kind("allocated"),
        statistic="mean",
        limit=0.03,
        best_known="0.36 % (SimuMax, on its own rows)",
    ),
    Bar(name="peak memory, allocated, worst", holds=_kind("allocated"), statistic="worst", limit=0.10),
    Bar(
        name="peak memory, reserved and nvidia-smi, mean",
        holds=_kind("reserved", "process"),
        statistic="mean",
        limit=0.08,
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
