"""Damaged files: whatever is cut, doubled, swapped or overwritten in them, they are read or refused in words."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path

import pytest

from planner.errors import PlanError
from planner.reading.kinds import document_of, read
from planner.reading.piece_writing import scenario_text
from planner.reading.source import Source
from planner.report.reading_view import render_reading
from tests.reading.writers import SMALL
from tests.tiers import cases, while_time_lasts

LONGEST_S = 5.0
MOST_BYTES = 2**30
SAMPLES = os.environ.get("PLAN_SAMPLES")
FILES = sorted(path for path in Path(SAMPLES).glob("*/*") if path.is_file()) if SAMPLES else []
ROUNDS = 50_000
_INSERTS = (
    b"\x00", b"\xff", b'"', b"{", b"[" * 400, b"}", b"\n", b"\r", b",", b"-", b"1e999", b"9" * 5000, b"NaN", b"null",
    b"-1", b"Infinity", b"\xef\xbb\xbf", b"=" * 3000, b" " * 3000, b"\x1b[31m", b"true", b"[]", b"{}", b'""',
)  # fmt: skip


def mutated(data: bytes, lots: random.Random) -> bytes:
    """One to four changes: cut, repeat, swap, flip bytes, insert what readers trip over."""
    for _ in range(lots.randint(1, 4)):
        begin = lots.randrange(len(data) + 1)
        end = min(begin + lots.randint(1, 200), len(data))
        how = lots.randrange(6)
        if how == 0:
            data = data[:begin] + data[end:]
        elif how == 1:
            data = data[:end] + data[begin:end] * lots.randint(1, 5) + data[end:]
        elif how == 2:
            data = data[:begin]
        elif how == 3:
            data = data[:begin] + lots.choice(_INSERTS) + data[begin:]
        elif how == 4:
            data = data[:begin] + lots.choice(_INSERTS) + data[end:]
        elif begin < len(data):
            data = data[:begin] + bytes([data[begin] ^ 1 << lots.randrange(8)]) + data[begin + 1 :]
    return data


def was_read(data: bytes, path: Path) -> bool:
    """Whether damaged bytes are read and shown; else they are refused in words. Either way soon."""
    path.write_bytes(data)
    begun = time.process_time()
    try:
        reading = read(Source(path))
        render_reading(document_of(reading), "table")
        fragments = [piece for piece in reading.pieces if piece.fragment]
        if fragments:
            scenario_text(fragments, "read")
    except PlanError:
        return False
    finally:
        assert time.process_time() - begun < LONGEST_S
    return True


@pytest.mark.parametrize("name", SMALL)
def test_no_damage_gives_a_traceback_or_takes_long(name: str, tmp_path: Path) -> None:
    content = SMALL[name][1]()
    data = content if isinstance(content, bytes) else content.encode()
    lots = random.Random(name)
    tries = [was_read(mutated(data, lots), tmp_path / "damaged") for _ in while_time_lasts(range(cases(25, 2000)))]
    assert any(tries) or name.endswith(".json")  # one document: hardly any damage leaves it whole


@pytest.mark.campaign
@pytest.mark.skipif(not FILES, reason="PLAN_SAMPLES names no folder of samples")
@pytest.mark.parametrize("sample", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_damage_of_a_sample_gives_a_traceback_takes_long_or_fills_the_memory(sample: Path, tmp_path: Path) -> None:
    data, lots = sample.read_bytes(), random.Random(sample.name)
    tries = [
        was_read(mutated(data, lots), tmp_path / "damaged") for _ in while_time_lasts(range(-(-ROUNDS // len(FILES))))
    ]
    assert tries
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES
