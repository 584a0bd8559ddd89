"""What is varied: how it is written, what is refused, and the grid in its order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UsageError
from planner.sweeps import axes
from planner.sweeps.axes import axis_of, grid_of
from planner.sweeps.question import Question
from tests.tiers import settings


@pytest.mark.parametrize(
    ("text", "values", "numbers"),
    [
        ("a.qpm=300,600", ("300", "600"), (300, 600)),
        ("a.qpm=600,300", ("600", "300"), ()),  # in an order of one's own
        ("a.qpm=0..600/4", ("0", "200", "400", "600"), (0, 200, 400, 600)),
        ("a.deadline=7d..21d/3", ("7d", "14d", "21d"), (7, 14, 21)),
        ("a.deadline=7 days..21 days/2", ("7 days", "21 days"), (7, 21)),
        ("budget=$10k..$20k/3", ("$10k", "$15k", "$20k"), (10, 15, 20)),
        ("budget=$2,400,$5,500", ("$2400", "$5500"), (2400, 5500)),  # commas between thousands
        ("budget=$2,400", ("$2400",), ()),
        ("budget=$2,400..$5,500/2", ("$2400", "$5500"), (2400, 5500)),
        ("budget=€1,234,567.50,€20", ("€1234567.50", "€20"), ()),
        ("budget=2,400 USD,5,500 EUR", ("2400 USD", "5500 EUR"), ()),
        ("budget=$100,$200,$3000", ("$100", "$200", "$3000"), (100, 200, 3000)),
        ("budget=$2,4000", ("$2", "4000"), ()),  # no thousands: refused as no amount where it is put in
        ("a.qpm=1,200", ("1", "200"), (1, 200)),  # counts never have commas: two values
        ("price:h100-*=-30%..+30%/3", ("-30%", "0%", "+30%"), (-30, 0, 30)),
        ("price:h100-*=-10%,5%", ("-10%", "5%"), (-10, 5)),
        ("price:h100-*=$1.5,$2", ("$1.5", "$2"), (1.5, 2)),
        ("a.rate=0..0.3/4", ("0", "0.1", "0.2", "0.3"), (0, 0.1, 0.2, 0.3)),
        ("a.lengths=[1,2],[3,4]", ("[1,2]", "[3,4]"), ()),
        ("a.model={preset: x, y: 1},'b,c'", ("{preset: x, y: 1}", "'b,c'"), ()),
        ("a.deadline=7d,2 weeks", ("7d", "2 weeks"), ()),
        ("case=low,high", ("low", "high"), ()),
        ("prices=2025-11..2026-02", ("2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01"), ()),
        ("prices=2026-01-01,2026-02-15", ("2026-01-01", "2026-02-15"), ()),
        ("catalog=../one,two", ("../one", "two"), ()),
    ],
)  # fmt: skip
def test_values(text: str, values: tuple[str, ...], numbers: tuple[float, ...]) -> None:
    axis = axis_of(text)
    assert axis.texts == values
    assert axis.numbers == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("serving.chat.qpm=300..800/4", "300 466.7 633.3 800"),
        ("a=1000000..1000001/3", "1000000 1000000.5 1000001"),
        ("a=$10k..$60k/4", "$10k $26.67k $43.33k $60k"),
        ("a=0.001..0.002/4", "0.001 0.0013333 0.0016667 0.002"),
    ],
)
def test_values_between_the_ends_are_round(text: str, values: str) -> None:
    """They stood as "466.666666667" in every table and command."""
    assert " ".join(axis_of(text).texts) == values


def test_a_range_without_a_number_of_steps_has_seven() -> None:
    assert len(axis_of("price:*=-30%..+30%").texts) == 7


def test_questions_of_every_kind_of_axis() -> None:
    grid = grid_of(
        ["a.qpm=1,2", "price:x=-5%,0%", "price:y=$2", "case=c", "catalog=d", "prices=2026-01-01", "seed=3"][:6]
    )
    assert grid.questions[0] == Question(
        settings=("a.qpm=1",), prices=("x=-5%", "y=$2"), case="c", catalog="d", until="2026-01-01"
    )
    assert grid.questions[1].prices == ("y=$2",)  # 0 % is the price as it is
    assert grid_of(["price:x=40%,50%"]).questions[0].prices == ("x=+40%",)
    assert grid_of(["seed=3"]).questions == (Question(seed=3),)


def test_the_last_axis_changes_fastest() -> None:
    grid = grid_of(["a=1,2", "b=3,4,5"])
    assert grid.shape == (2, 3)
    assert grid.points == (("1", "3"), ("1", "4"), ("1", "5"), ("2", "3"), ("2", "4"), ("2", "5"))
    assert [one.settings for one in grid.questions] == [(f"a={a}", f"b={b}") for a, b in grid.points]


@pytest.mark.parametrize(
    ("over", "reference"),
    [
        ([], "missing-option"),
        (["a"], "bad-axis"), (["a="], "bad-axis"), (["=1"], "bad-axis"), (["price:=1"], "bad-axis"),
        (["a=1,,2"], "bad-axis"), (["a=1,"], "bad-axis"),
        (["a=1,1"], "given-twice"), (["a=1", "a=2"], "given-twice"),
        (["a=1..b"], "bad-range"), (["a=2..1"], "bad-range"), (["a=1..1"], "bad-range"), (["a=1..2/1"], "bad-range"),
        (["a=1..2/x"], "bad-range"), (["a=1d..2h"], "bad-range"), (["a=1..2/100001"], "bad-range"),
        (["a=1..2/" + "9" * 5000], "bad-range"),
        (["prices=yesterday"], "bad-value"), (["prices=2026-02-30"], "bad-value"), (["prices=20260201"], "bad-value"),
        (["prices=2026-02..2026-01"], "bad-range"), (["prices=2026-02..x"], "bad-range"),
        (["prices=2026-00..2026-02"], "bad-range"), (["prices=2026-01-01..2026-03-01"], "bad-range"),
        (["seed=x"], "bad-value"), (["seed=-1"], "bad-value"), (["seed=2147483648"], "bad-value"),
        (["a=1..2/2000", "b=1..2/2000"], "too-many"), ([f"a{k}=1" for k in range(7)], "too-many"),
        (["a=" + ",".join(map(str, range(100_001)))], "too-many"),
    ],
)  # fmt: skip
def test_what_is_refused(over: list[str], reference: str) -> None:
    with pytest.raises(UsageError) as told:
        grid_of(over)
    assert told.value.problems[0].reference == reference
    assert told.value.problems[0].hint
    assert len(told.value.problems[0].message) < 300


@settings(50)
@given(st.text(max_size=40))
def test_any_text_is_an_axis_or_a_usage_error(text: str) -> None:
    for written in (text, f"a={text}", f"price:{text}", f"a={text}..{text}/3"):
        try:
            axis = axis_of(written)
        except UsageError:
            continue
        assert axis.texts
        assert len(set(axis.texts)) == len(axis.texts)


@settings(50)
@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e6), st.integers(2, 50))
def test_a_range_goes_from_end_to_end_and_is_read_back(low: float, wide: float, count: int) -> None:
    first, last = float(f"{low:.6f}"), float(f"{low + wide:.6f}")
    if not first < last:
        return
    axis = axis_of(f"a={first:.6f}..{last:.6f}/{count}")
    assert len(axis.texts) == count
    assert (axis.numbers[0], axis.numbers[-1]) == pytest.approx((first, last), rel=1e-11)
    assert [float(text) for text in axis.texts] == pytest.approx(axis.numbers, rel=1e-11)
    assert list(axis.numbers) == sorted(axis.numbers)


def test_the_bound_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes, "MOST_QUESTIONS", 6)
    assert grid_of(["a=1,2", "b=1,2,3"]).shape == (2, 3)
    with pytest.raises(UsageError):
        grid_of(["a=1,2,3", "b=1,2,3"])
