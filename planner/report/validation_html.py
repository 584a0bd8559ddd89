"""A validation as one HTML page: tables, and predicted against measured on logarithmic axes. Works offline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.files import read_package_text
from planner.report import validation as views
from planner.report.blocks import Grid
from planner.report.escape import html, terminal
from planner.validate.model import Quantity
from planner.validate.result import Validation, devices_of
from planner.validate.summary import Shown

TEMPLATE = "report/templates/validation.html"
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
_MARKS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "pentagon", "hexagram", "bowtie")


def render_page(result: Validation) -> str:
    """The page, with the script of its figures inside."""
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    template = Environment(autoescape=True).from_string(read_package_text(TEMPLATE))
    quantities = [name for name in _SCALES if any(quantity == name for quantity, _ in result.targets)]
    blocks = views.validation_blocks(result, wide=True)
    page: str = template.render(
        title=f"Predicted against measured: {result.kind}",
        lines=[terminal(line) for line in blocks[0].lines[1:]],  # type: ignore[union-attr]
        figures=[_figure(result, name) for name in quantities],
        grids=[_cleaned(block) for block in blocks if isinstance(block, Grid) and block.rows],
        refusals=[terminal(item) for items in views.refusal_items(result) for item in items.items],
        notes=views.reading_notes(result),
        script=get_plotlyjs() if quantities else "",
    )
    return page + "\n"


def _cleaned(grid: Grid) -> dict[str, Any]:
    return {
        "title": grid.title,
        "heads": [(column.head, column.right) for column in grid.columns],
        "rows": [[terminal(cell) for cell in row] for row in grid.rows],
    }


def _figure(result: Validation, quantity: Quantity) -> dict[str, str]:
    """One scatter plot, a trace a family, with the line on which a prediction is right."""
    import plotly.graph_objects as go

    scored = [item for name, item in result.targets if name == quantity]
    scale, unit = _SCALES[quantity]
    ends = _ends(scored, scale)
    figure = go.Figure(go.Scatter(x=ends, y=ends, mode="lines", name="exact", line={"color": "#888", "dash": "dot"}))
    families = sorted({item.family for item in scored})
    for number, family in enumerate(families):
        part = [item for item in scored if item.family == family]
        figure.add_trace(_trace(part, family, scale, unit, _MARKS[number % len(_MARKS)]))
    figure.update_layout(template="plotly_white", height=620, legend_title_text="Family", margin={"t": 30})
    figure.update_xaxes(type="log", title_text=f"measured [{unit}]")
    figure.update_yaxes(type="log", title_text=f"predicted [{unit}]")
    body = figure.to_html(
        include_plotlyjs=False, full_html=False, div_id=quantity.replace("_", "-"), config={"displaylogo": False}
    )
    summary = (
        f"{views.NAMES[quantity]} of {len(scored):,} rows, predicted against measured; the tables below give errors"
    )
    return {"title": views.NAMES[quantity], "body": body, "summary": summary}


def _ends(scored: Sequence[Shown], scale: float) -> list[float]:
    values = [value / scale for item in scored for value in (item.predicted, item.measured)]
    return [min(values) / 1.2, max(values) * 1.2]


def _trace(part: Sequence[Shown], family: str, scale: float, unit: str, mark: str) -> Any:
    import plotly.graph_objects as go

    return go.Scatter(
        x=[item.measured / scale for item in part],
        y=[item.predicted / scale for item in part],
        text=[_hover(item) for item in part],
        mode="markers",
        marker={"symbol": mark, "size": 8, "opacity": 0.75},
        name=html(family or "unstated"),
        hovertemplate=f"%{{text}}<br>measured %{{x:.4g}} {unit}<br>predicted %{{y:.4g}} {unit}<extra></extra>",
    )


def _hover(item: Shown) -> str:
    parts = (f"{item.row.name}: {item.row.model or ''}", devices_of(item.row))
    return "<br>".join(map(html, parts)) + f"<br>error {100 * item.error:+.1f} %"
