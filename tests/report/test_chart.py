"""Charts as SVG: where things stand, what is marked, and one that stands alone."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from planner.report import chart_drawing
from planner.report.chart_drawing import svg_alone
from planner.report.charts import (
    Axis,
    Box,
    Chart,
    Dot,
    Panel,
    Series,
    bars,
    chart,
    dates,
    linear,
    logarithmic,
    rows_panel,
    stacked,
    steps,
    ticks,
)
from tests.hostile_names import hostile_names
from tests.report.pages import read

SVG = "{http://www.w3.org/2000/svg}"


def rows_chart(name: str = "a job", title: str = "Two rows") -> Chart:
    series = [
        bars("run", 0, [(0, 0.0, 10.0, "ten days"), (1, 5.0, 20.0, "fifteen days")]),
        ticks("deadline", [(1, 20.0, "twenty days")]),
    ]
    panel = rows_panel(linear(0.0, 20.0, "days"), series, [(name, "10 of 20"), ("b", "")])
    return chart(id="rows", title=title, summary="Bars; the table below", panels=[panel])


def test_bars_stand_at_their_shares_of_the_width_and_tell_their_figures() -> None:
    page = read(chart_drawing.svg(rows_chart()))
    first, second = [element.attributes for element in page.all("rect")]
    assert float(first["x"].rstrip("%")) == 0.0
    whole = 100 - 1.5  # what is left at the right of all
    assert float(first["width"].rstrip("%")) == pytest.approx(whole / 2, abs=0.01)
    assert float(second["x"].rstrip("%")) == pytest.approx(whole / 4, abs=0.01)
    assert float(second["width"].rstrip("%")) == pytest.approx(whole * 3 / 4, abs=0.01)
    assert float(second["y"]) > float(first["y"]) + float(first["height"])  # read from the top
    (limit,) = [e.attributes for e in page.all("line") if e.attributes["class"] == "tick"]
    assert limit["x1"] == limit["x2"] == f"{whole}%"
    assert [e.text for e in page.all("title")] == ["ten days", "fifteen days", "twenty days"]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0, 30, ["0", "5", "10", "15", "20", "25", "30"]),
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (-43, 151, ["-0", "50", "100", "150"]),
        (0, 46_000, ["0", "10k", "20k", "30k", "40k"]),
        (3, 3, ["3", "3.2", "3.4", "3.6", "3.8", "4"]),
    ],
)
def test_marks_are_round(low: float, high: float, marks: list[str]) -> None:
    assert [mark.text for mark in linear(low, high).marks] == [mark.replace("-0", "0") for mark in marks]


def test_a_logarithmic_axis_marks_powers_of_ten() -> None:
    axis = logarithmic(0.5, 2000)
    assert [mark.text for mark in axis.marks] == ["1", "10", "100", "1k"]
    assert axis.share(0.5) == 0
    assert axis.share(2000) == pytest.approx(1)
    assert axis.share(10) - axis.share(1) == pytest.approx(axis.share(1000) - axis.share(100))


@pytest.mark.parametrize(
    ("begin", "days", "marks"),
    [
        ("2026-12-01", 4, ["12-01", "12-02", "12-03", "12-04", "12-05"]),
        ("2026-12-07", 28, ["12-07", "12-14", "12-21", "12-28", "01-04"]),
        ("2026-12-07", 182, ["2027-01", "2027-03", "2027-05"]),
        ("2026-12-07T12:00", 1100, ["2027-01", "2028-01", "2029-01"]),
    ],
)
def test_dates_are_first_days_of_months_or_days(begin: str, days: float, marks: list[str]) -> None:
    axis = dates(begin, days * 24)
    assert [mark.text for mark in axis.marks] == marks
    assert all(0 <= mark.at <= days * 24 for mark in axis.marks)


def test_parts_stand_behind_each_other() -> None:
    assert stacked([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]) == [
        [(0.0, 1.0), (0.0, 2.0)],
        [(1.0, 4.0), (2.0, 6.0)],
        [(4.0, 9.0), (6.0, 6.0)],
    ]
    assert stacked([]) == []


def test_a_step_stays_until_the_next_point() -> None:
    assert steps([(1, 9), (2, 5), (4, 3)]) == [(1, 9), (2, 9), (2, 5), (4, 5), (4, 3)]


def test_what_there_is_none_of_stands_in_no_key() -> None:
    panel = Panel(
        x=Axis(0, 1), y=Axis(0, 1), height=9,
        series=[
            Series(name="some", look="circle", dots=[Dot(0, 0, "")]),
            Series(name="none", look="star"),
            Series(name="", look="fill-0", boxes=[Box(0, 1, 0, 1, "")]),
        ],
    )  # fmt: skip
    assert chart(id="a", title="", summary="", panels=[panel]).key == [("circle", "some")]


def test_a_label_fits_a_narrow_page() -> None:
    long = rows_panel(linear(0, 1), [], [("n" * 90, "f" * 90), ("n" * 90, "")])
    assert [(len(label.name), len(label.figures)) for label in long.labels] == [(22, 24), (46, 0)]
    assert all(label.name.endswith("…") for label in long.labels)


def test_a_chart_alone_has_a_size_a_style_a_title_and_a_key() -> None:
    root = ElementTree.fromstring(svg_alone([rows_chart(), rows_chart(title="Again")]))
    width, height = (int(root.attrib[name]) for name in ("width", "height"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert [text for text in texts if text in ("Two rows", "Again", "run", "deadline")] == [
        "Two rows", "run", "deadline", "Again", "run", "deadline",
    ]  # fmt: skip
    first, second = [child for child in root if child.tag == f"{SVG}svg"]
    assert float(second.attrib["y"]) >= float(first.attrib["y"]) + float(first.attrib["height"])
    assert float(second.attrib["y"]) + float(second.attrib["height"]) <= height
    assert width == 720
    assert "--ink" in "".join(element.text or "" for element in root.iter(f"{SVG}style"))


@pytest.mark.parametrize("name", [*hostile_names()[:40], "\ufffe", "\x00", "]]>", "<!--"])
def test_names_stay_text_in_a_file_of_their_own(name: str) -> None:
    drawn = svg_alone([rows_chart(name, name)])
    assert not re.search(r"<(script|a|image|use|foreignObject)\b", drawn)
    assert [e.tag for e in ElementTree.fromstring(drawn).iter()] == [
        e.tag for e in ElementTree.fromstring(svg_alone([rows_chart("x", "x")])).iter()
    ]
