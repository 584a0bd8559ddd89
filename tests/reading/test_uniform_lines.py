"""JSON lines read as columns: the numbers that the JSON reader gives, or none; never others."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from planner.reading.jsonlines import columns_of
from planner.reading.kinds import read
from planner.reading.source import Source
from tests.tiers import cases

LINE = '{"timestamp": %s, "model": "m-1", "input_length": %d, "hash_ids": [%s], "output_length": %d}'
SIMPLE = '{"timestamp": %s, "input_length": %d, "output_length": %d}'
CHANGES = (b"0", b"7", b".", b",", b", ", b"-", b" ", b"e5", b"[", b"]", b"{", b"}", b'"', b"\n", b"null", b"\\", b":",
           b"05", b"1 2", b'"timestamp"', b', "input_length": ', b"\r", b"[1, 2]", b"NaN", b"9" * 40)  # fmt: skip


def block_of(lots: random.Random, lines: int, *, listed: bool) -> bytes:
    rows = []
    for number in range(lines):
        time = number * 31 if lots.random() < 0.5 else round(lots.uniform(0, 1e6), lots.choice([1, 3, 6]))
        lengths = lots.randrange(1, 10**6), lots.randrange(1, 900)
        ids = ", ".join(str(lots.randrange(10 ** lots.randrange(1, 9))) for _ in range(lots.randrange(1, 5)))
        rows.append(LINE % (time, lengths[0], ids, lengths[1]) if listed else SIMPLE % (time, *lengths))
    return ("\n".join(rows) + "\n").encode()


def records_of(block: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in block.split(b"\n")[:-1]]


def assert_same(block: bytes) -> bool:
    """Whether the block was read as columns; if so, it must hold what the JSON reader finds."""
    found = columns_of(block)
    if found is None:
        return False
    records = records_of(block)
    for key, values in found.numbers.items():
        assert values.tolist() == [float(record[key]) for record in records]
    for key, (flat, counts) in found.lists.items():
        assert flat.tolist() == [each for record in records for each in record[key]]
        assert all(type(each) is int for record in records for each in record[key])
        assert counts.tolist() == [len(record[key]) for record in records]
    return True


@pytest.mark.parametrize("listed", [True, False])
def test_columns_are_what_the_json_reader_gives(listed: bool) -> None:
    lots = random.Random(3)
    model = block_of(lots, 300, listed=listed)
    assert columns_of(model) is None or not listed  # digits in a word
    model = model.replace(b"m-1", b"m[,]")
    assert assert_same(model)
    found = columns_of(model)
    assert found is not None
    assert list(found.numbers) == ["timestamp", "input_length", "output_length"]
    assert list(found.lists) == (["hash_ids"] if listed else [])


def test_changed_blocks_are_read_the_same_or_left_alone() -> None:
    lots, taken = random.Random(5), 0
    for _ in range(cases(3_000, 100_000)):
        block = bytearray(block_of(lots, 3, listed=lots.random() < 0.6).replace(b"m-1", b"m"))
        for _ in range(lots.randrange(1, 3)):
            at = lots.randrange(len(block))
            block[at : at + lots.randrange(3)] = lots.choice(CHANGES)
        if bytes(block).endswith(b"\n"):  # blocks of whole lines
            taken += assert_same(bytes(block))
    assert taken > 20


@pytest.mark.parametrize(
    "lines",
    [
        ['{"t": 1, "n": 5}', '{"n": 5, "t": 1}'],  # other order
        ['{"t": 1, "n": 5}', '{"t": 1 2, "n": 5}'],  # no JSON
        ['{"t": 1, "n": 5}', '{"t": 1, "n": 05}'],
        ['{"t": 1, "n": 5}', '{"t": 1, "n": 5, "n": 6}'],
        ['{"t": 1, "u": {"n": 5}}', '{"t": 1, "u": {"n": 5}}'],  # nested
        ['{"t": 1, "a": [1], "b": [2]}', '{"t": 1, "a": [1], "b": [2]}'],  # two lists
        ['{"t": 1, "a": [1.0, 2]}', '{"t": 1, "a": [1.0, 2]}'],  # no ids
        ['{"t": 1, "a": [1, 2]}', '{"t": 1, "a": []}'],
        ['{"t": 1, "a": [1, 2]}', '{"t": 1, 2, "a": [1]}'],
        ['{"p95": 1, "n": 5}', '{"p95": 1, "n": 5}'],  # digits in a name
        ['{"t": "a\\u0062", "n": 5}', '{"t": "a\\u0062", "n": 5}'],  # escapes
        ['{"t": 1e3, "n": 5}', '{"t": 1e3, "n": 5}'],  # powers
        ['{"t": 1, "n": 5}', '7{"t": 1, "n": 5}'],
        ["7", "8"],
        ["", ""],
        ['{"t": 1, "a": [99999999999999999999]}', '{"t": 1, "a": [1]}'],  # beyond what a double holds
    ],
)
def test_other_lines_are_left_to_the_reader_of_records(lines: list[str]) -> None:
    assert columns_of("".join(f"{line}\n" for line in lines).encode()) is None


@pytest.mark.parametrize(
    "odd", ["", '{"timestamp": 5, "input_length": 0, "output_length": 7, "hash_ids": [1]}', "{half"]
)
def test_a_log_reads_the_same_in_columns_and_in_records(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lots = random.Random(8)
    lines = [
        json.dumps({"timestamp": 31 * n, "input_length": lots.randrange(1, 4000), "output_length": lots.randrange(1, 9),
                    "hash_ids": [0, *(lots.randrange(5000) for _ in range(lots.randrange(1, 6)))]})
        for n in range(40_000)
    ]  # fmt: skip
    lines[20_000:20_000] = [odd] if odd else []
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines) + "\n")
    fast = read(Source(path))
    monkeypatch.setattr("planner.reading.requests.columns_of", lambda block: None)
    slow = read(Source(path))
    assert fast.look == slow.look
    assert (fast.taken, fast.skipped.reasons, fast.notes) == (slow.taken, slow.skipped.reasons, slow.notes)
    assert [piece.text for piece in fast.pieces] == [piece.text for piece in slow.pieces]
