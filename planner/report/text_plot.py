"""Points on two axes, drawn with characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

HEIGHT = 8  # lines of the drawing, without the axis
LABELS = 5  # on the axis below, at most


def scatter(
    xs: Sequence[float],
    ys: Sequence[float],
    marks: Sequence[str],
    *,
    width: int,
    x_label: Callable[[float], str],
    y_label: Callable[[float], str],
    legend: Sequence[str] = (),
) -> list[str]:
    """Lines of a plot of at most `width` characters; a mark per point, later ones on top.

    Parameters
    ----------
    xs, ys
        Places of the points, at least one, (n,).
    marks
        A character a point.
    width
        Of the plot; a legend stands beyond it.  [characters]
    x_label, y_label
        A value of an axis as text.
    legend
        Words at the right of the first lines, one a line.

    Examples
    --------
    >>> for line in scatter([0, 9], [0, 10], "xo", width=20, x_label="{:.0f}".format, y_label="{:.0f}".format):
    ...     print(line.rstrip())
     10┤            o
       │
       │
       │
       │
       │
       │
      0┤x
       └┬─────┬─────┬─
        0     4     9
    """
    low_x, high_x, low_y, high_y = min(xs), max(xs), min(ys), max(ys)
    labels = (
        [y_label(high_y), y_label((low_y + high_y) / 2), y_label(low_y)] if high_y > low_y else ["", y_label(low_y)]
    )
    margin = max(map(len, labels)) + 1
    inner = max(12, width - margin - 4)
    cells = [[" "] * inner for _ in range(HEIGHT)]
    for x, y, mark in zip(xs, ys, marks):
        row = HEIGHT - 1 - _place(y, low_y, high_y, HEIGHT)
        cells[row][_place(x, low_x, high_x, inner)] = mark
    named = {0: labels[0], HEIGHT - 1: labels[-1]}
    lines = []
    for number, row_cells in enumerate(cells):
        tick = "┤" if named.get(number) else "│"
        note = f"   {legend[number]}" if number < len(legend) else ""
        lines.append(f"{named.get(number, ''):>{margin}}{tick}{''.join(row_cells)}{note}".rstrip())
    return [*lines, *_axis(low_x, high_x, inner, margin, x_label)]


def _place(value: float, low: float, high: float, count: int) -> int:
    return round((value - low) / (high - low) * (count - 1)) if high > low else 0


def _axis(low: float, high: float, inner: int, margin: int, label: Callable[[float], str]) -> list[str]:
    """The axis and its labels: both ends, and as many between as leave room between labels."""
    longest = max(len(label(low)), len(label(high))) + 3
    count = max(2, min(LABELS, inner // longest)) if high > low else 1
    places = [round(number * (inner - 1) / (count - 1)) for number in range(count)] if count > 1 else [0]
    rule = ["─"] * inner
    texts = [" "] * (inner + longest)
    for place in places:
        rule[place] = "┬"
        text = label(low + (high - low) * place / max(1, inner - 1))
        start = min(max(0, place - len(text) // 2), inner + longest - len(text))
        texts[start : start + len(text)] = text
    return [f"{'':>{margin}}└{''.join(rule)}─", f"{'':>{margin}} {''.join(texts)}".rstrip()]
