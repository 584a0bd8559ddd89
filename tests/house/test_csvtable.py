"""Tables of cells: bounds, empty cells, and places of mistakes in awkward files."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.csvtable import Columns, Table, read_table
from planner.errors import InputError

COLUMNS = Columns(kinds={"name": str, "amount": float}, required=("name",), filled=("name",), most={"amount": 10},
                  most_rows=3)  # fmt: skip


def written(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    return path


def places(folder: Path, text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(InputError) as caught:
        read_table(written(folder, text), COLUMNS)
    return [(p.reference, p.places[0].line, p.places[0].column) for p in caught.value.problems]


def test_cells_have_their_types(tmp_path: Path) -> None:
    rows = read_table(written(tmp_path, '\ufeffamount, name\r\n1.5,"a, b"\r\n\r\n, c \r\n'), COLUMNS)
    assert rows == [(2, {"name": "a, b", "amount": 1.5}), (4, {"name": "c", "amount": None})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,amount\na,11\n", [("bad-number", 2, 3)]),
        ("name,amount\n,1\n", [("empty-cell", 2, 1)]),
        ("name,amount\na,1\na,1\na,1\na,1\na,1\n", [("too-large", 5, 1)]),
        ('name,amount\n"a, b",x\n', [("bad-number", 2, 8)]),
        ('name,amount\n"a\nb",1\nc,x\n', [("bad-number", 4, 3)]),
        ("name,amount\ra,1\rb,x\r", [("bad-number", 3, 3)]),
        ("name,amount\n\r\rb,x\n", [("bad-number", 4, 3)]),
        ("nam,amount\na,1\n", [("unknown-column", 1, 1)]),
        ("amount\n1\n", [("missing-column", 1, 1)]),
    ],
)
def test_mistakes_stand_where_they_are(tmp_path: Path, text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(tmp_path, text) == expected


def test_a_mistake_is_named_by_its_column(tmp_path: Path) -> None:
    table = Table.open(written(tmp_path, 'name,amount\n"x,y",2\n'), COLUMNS)
    assert len(list(table.rows())) == 1
    table.complain("odd", "an odd amount", 2, "amount", "another")
    with pytest.raises(InputError) as caught:
        table.demand_none()
    assert caught.value.problems[0].places[0].column == 7
    assert caught.value.problems[0].places[0].text == '"x,y",2'


def test_the_digest_is_of_the_bytes(tmp_path: Path) -> None:
    import hashlib

    path = written(tmp_path, "\ufeffname\na\n")
    assert Table.open(path, COLUMNS).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
