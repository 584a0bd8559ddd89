"""A validation as one HTML page: tables, and predicted against measured on logarithmic axes. Works offline."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.blocks import Block, Grid, Lines
from planner.report.chart.model import Chart, Dot, Panel, Series, chart
from planner.report.chart.scale import logarithmic
from planner.report.html.sheet import render_sheet
from planner.report.validation_tables import NAMES
from planner.validate.model import Quantity
from planner.validate.result import Validation, devices_of
from planner.validate.summary import Shown

_SCALES: dict[Quantity, tuple[float, str]] = {
    "step_time_s": (1.0, "s"),
    "tpot_s": (1e-3, "ms"),
    "ttft_s": (1e-3, "ms"),
    "output_tokens_per_s": (1.0, "tokens/s"),
    "batch_latency_s": (1.0, "s"),
    "prefill_tokens_per_s": (1.0, "tokens/s"),
    "peak_memory_bytes": (1e9, "GB"),
    "device_hours": (1.0, "h"),
}
_LOOKS = ("circle", "square", "diamond", "triangle", "star")
_HEIGHT = 460  # [px]


def render_page(result: Validation, blocks: Sequence[Block]) -> str:
    """The page: figures first, then the tables of errors, what was not predicted, and how to read it."""
    quantities = [name for name in _SCALES if any(quantity == name for quantity, _ in result.targets)]
    first, *tables = blocks
    told = [Lines(lines=first.lines[1:])] if isinstance(first, Lines) else []
    figures = [part for name in quantities for part in (_figure(result, name), _table(tables, NAMES[name]))]
    others = [block for block in tables if block not in figures]
    return render_sheet(f"Predicted against measured: {result.kind}", [*told, *figures, *others])


def _table(blocks: Sequence[Block], quantity: str) -> Block | None:
    """The table of errors of a quantity, which stands below its figure."""
    return next((one for one in blocks if isinstance(one, Grid) and one.title.startswith(f"{quantity}:")), None)


def _figure(result: Validation, quantity: Quantity) -> Chart:
    """Predicted against measured, a kind of mark a family, with the line on which a prediction is right."""
    scored = [item for name, item in result.targets if name == quantity]
    scale, unit = _SCALES[quantity]
    low, high = _ends(scored, scale)
    series = [Series(name="exact", look="dots", paths=[((low, low), (high, high))])]
    for number, family in enumerate(sorted({item.family for item in scored})):
        look = f"{_LOOKS[number % len(_LOOKS)]} hue-{number % 10}"
        dots = [
            Dot(item.measured / scale, item.predicted / scale, _told(item, scale, unit))
            for item in scored
            if item.family == family
        ]
        series.append(Series(name=family or "unstated", look=look, dots=dots))
    return chart(
        id=quantity.replace("_", "-"),
        title=f"{NAMES[quantity]}: predicted against measured",
        summary=f"{NAMES[quantity]} of {len(scored):,} rows, predicted against measured; the tables below give errors",
        panels=[
            Panel(
                x=logarithmic(low, high, f"measured, {unit}"),
                y=logarithmic(low, high, f"predicted, {unit}"),
                height=_HEIGHT,
                series=series,
            )
        ],
    )


def _ends(scored: Sequence[Shown], scale: float) -> tuple[float, float]:
    values = [value / scale for item in scored for value in (item.predicted, item.measured)]
    return min(values) / 1.2, max(values) * 1.2


def _told(item: Shown, scale: float, unit: str) -> str:
    figures = f"measured {item.measured / scale:.4g} {unit}, predicted {item.predicted / scale:.4g} {unit}"
    return (
        f"{item.row.name}: {item.row.model or ''}, {devices_of(item.row)}; {figures}, error {100 * item.error:+.1f} %"
    )
