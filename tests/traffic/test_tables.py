"""Histograms, load profiles and measured rates: what they say, and one error for each mistake in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.traffic.tables import read_histogram, read_load_profile, read_rates

SHARES = "input_bucket,output_bucket,fraction\n"
WEIGHTS = "hour,weight\n"
RATES = "offer,price_usd_per_hour,input_bucket,output_bucket,max_requests_per_s\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(reader, path: Path) -> list[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as caught:
        reader(path)
    assert all(problem.hint for problem in caught.value.problems)
    return [(p.places[0].line, p.places[0].column, p.reference) for p in caught.value.problems]


def test_histogram_of_upper_edges(tmp_path: Path) -> None:
    found = read_histogram(written(tmp_path, SHARES + "512,128,0.25\n4096,128,0.5\n512,1024,0.25\n"))
    assert found.buckets == ("512/128", "4096/128", "512/1024")
    assert list(found.input_tokens) == [512, 4096, 512]
    assert list(found.output_tokens) == [128, 128, 1024]
    assert list(found.share) == [0.25, 0.5, 0.25]
    assert found.unnamed() is None


def test_rounded_shares_are_scaled(tmp_path: Path) -> None:
    found = read_histogram(written(tmp_path, SHARES + "1,1,0.333\n2,1,0.333\n3,1,0.333\n"))
    assert found.share == pytest.approx(1 / 3)
    assert found.share.sum() == pytest.approx(1, abs=1e-15)


def test_free_text_has_no_lengths(tmp_path: Path) -> None:
    found = read_histogram(written(tmp_path, SHARES + '128,"a, b",0.5\nrow0,col 1,0.5\n'))
    assert found.buckets == ("128/a, b", "row0/col 1")
    problem = found.unnamed()
    assert problem is not None
    assert problem.places[0].line == 2
    assert "profile" in problem.hint


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("1,2,0.5\n", [(1, 28, "bad-sum")]),
        ("1,2,1\n3,2,0\n", [(3, 5, "no-requests")]),
        ("1,2,0.7\n3,2,0.7\n", [(1, 28, "bad-sum")]),
        ("", [(1, 28, "bad-sum")]),
        ("1,2,1.5\n", [(2, 5, "bad-number")]),
        ("1,2,-0.5\n1,3,x\n", [(2, 5, "bad-number"), (3, 5, "bad-number")]),
        ("1,2,0.5\n1,2,0.5\n", [(3, 1, "duplicate-row")]),
        ("1,2,50 %\n", [(2, 5, "bad-number")]),
        ("a/b,2,1\n", [(2, 1, "unsafe-name")]),
        ("a,b\x1b[31m,1\n", [(2, 3, "unsafe-name")]),
        ("a" * 81 + ",b,1\n", [(2, 1, "unsafe-name")]),
        (",b,1\n", [(2, 1, "empty-cell")]),
    ],
)
def test_broken_histograms(tmp_path: Path, rows: str, expected: list[tuple[int, int, str]]) -> None:
    assert mistakes(read_histogram, written(tmp_path, SHARES + rows)) == expected


@pytest.mark.parametrize("slots", [24, 168])
def test_load_profile_has_mean_one(tmp_path: Path, slots: int) -> None:
    rows = [f"{hour},{1 + hour % 5}\n" for hour in range(slots)]
    found = read_load_profile(written(tmp_path, WEIGHTS + "".join(reversed(rows))))
    assert len(found.weights) == slots
    assert np.mean(found.weights) == pytest.approx(1)
    assert found.weights[4] / found.weights[0] == pytest.approx(5)


DAY = [f"{hour},1\n" for hour in range(24)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (DAY[:-1], [(1, 1, "missing-row")]),
        ([*DAY, "24,1\n"], [(1, 1, "missing-row")]),
        ([*DAY, "0,1\n"], [(26, 1, "duplicate-row")]),
        ([*DAY, "168,1\n"], [(26, 1, "bad-number")]),
        ([*DAY[1:], "0.5,1\n"], [(25, 1, "bad-number")]),
        ([*DAY[1:], "0,-1\n"], [(25, 3, "bad-number")]),
        ([f"{hour},0\n" for hour in range(24)], [(1, 6, "bad-sum")]),
        ([], [(1, 1, "missing-row")]),
    ],
)
def test_broken_load_profiles(tmp_path: Path, rows: list[str], expected: list[tuple[int, int, str]]) -> None:
    assert mistakes(read_load_profile, written(tmp_path, WEIGHTS + "".join(rows))) == expected


GOOD = "A10G,1.01,row0,col0,2\nA10G,1.01,row1,col0,0\naws/p4d,3.67,row1,col0,30\naws/p4d,3.67,row0,col0,20\n"


def test_rates_are_joined_in_the_order_of_the_buckets(tmp_path: Path) -> None:
    found = read_rates(written(tmp_path, RATES + GOOD + "A10G,1.01,other,col0,5\n"), ("row1/col0", "row0/col0"))
    assert found.offers == ("A10G", "aws/p4d")
    assert found.price_microusd_per_hour == (1_010_000, 3_670_000)
    assert found.max_requests_per_s.tolist() == [[0, 2], [30, 20]]
    assert len(found.files[0][1]) == 64


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (GOOD + "A10G,1.01,row0,col0,3\n", [(6, 1, "duplicate-row")]),
        (GOOD.replace("1.01,row1", "1.02,row1"), [(3, 6, "conflict")]),
        (GOOD.replace("row1,col0,0", "rowl,col0,0"), [(2, 1, "missing-row")]),
        (GOOD + "L4,-1,row0,col0,1\n", [(6, 4, "bad-number")]),
        (GOOD + "L4,1,row0,col0,inf\n", [(6, 16, "bad-number")]),
        ("", [(1, 1, "missing-row")]),
    ],
)
def test_broken_rates(tmp_path: Path, rows: str, expected: list[tuple[int, int, str]]) -> None:
    path = written(tmp_path, RATES + rows)
    assert mistakes(lambda file: read_rates(file, ("row0/col0", "row1/col0")), path) == expected
