"""Each format is told by its content, and a file of none of them is refused with what was looked for."""

from __future__ import annotations

import gzip
import importlib
import sys
from pathlib import Path

import pytest

from planner.errors import InputError, UsageError
from planner.reading.kinds import SURE, Asked, kind_of, kinds, read
from planner.reading.source import Source
from tests.reading.writers import SMALL


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", SMALL)
def test_content_tells_the_kind_whatever_the_name_is(name: str, tmp_path: Path) -> None:
    kind, make = SMALL[name]
    path = written(tmp_path, "nothing-said", make())
    assert kind_of(Source(path))[0].name == kind


@pytest.mark.parametrize("name", SMALL)
def test_everything_is_taken_or_listed(name: str, tmp_path: Path) -> None:
    _, make = SMALL[name]
    reading = read(Source(written(tmp_path, name, make())))
    assert reading.taken > 0
    assert all(count > 0 and line > 0 for count, line in reading.skipped.reasons.values())


@pytest.mark.parametrize("name", SMALL)
def test_packed_by_gzip_it_is_the_same(name: str, tmp_path: Path) -> None:
    _, make = SMALL[name]
    content = make()
    data = content if isinstance(content, bytes) else content.encode()
    plain = read(Source(written(tmp_path, name, data)))
    packed = read(Source(written(tmp_path, name + ".gz", gzip.compress(data[:200]) + gzip.compress(data[200:]))))
    assert (packed.taken, packed.look, packed.understood) == (plain.taken, plain.look, plain.understood)


def zstd(data: bytes) -> bytes:
    """A frame of zstd; the test is skipped where nothing here makes one."""
    if sys.version_info >= (3, 14):
        return bytes(importlib.import_module("compression.zstd").compress(data))
    return bytes(pytest.importorskip("zstandard").compress(data))


@pytest.mark.parametrize("name", SMALL)
def test_packed_by_zstd_it_is_the_same(name: str, tmp_path: Path) -> None:
    content = SMALL[name][1]()
    data = content if isinstance(content, bytes) else content.encode()
    plain = read(Source(written(tmp_path, name, data)))
    packed = read(Source(written(tmp_path, name + ".zst", zstd(data[:200]) + zstd(data[200:]))))  # two frames
    assert (packed.taken, packed.look, packed.understood) == (plain.taken, plain.look, plain.understood)


def test_broken_zstd_and_bombs_of_it_are_refused(tmp_path: Path) -> None:
    data = b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + b"2024-01-01 00:00:01,5,7\n" * 400
    with pytest.raises(InputError, match="ends early"):
        Source(written(tmp_path, "cut.zst", zstd(data)[:-9])).data()
    with pytest.raises(InputError, match="is damaged"):
        Source(written(tmp_path, "bad.zst", zstd(data)[:4] + b"\xff" * 60)).data()
    with pytest.raises(InputError, match="250 times its size"):
        sum(map(len, Source(written(tmp_path, "bomb.zst", zstd(b"\n" * 200_000_000))).blocks()))


def test_without_a_library_zstd_is_refused_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.reading.source._zstd_reader", lambda: None)
    with pytest.raises(InputError, match="nothing installed here unpacks") as caught:
        read(Source(written(tmp_path, "a.zst", b"\x28\xb5\x2f\xfd" + b"\0" * 20)))
    assert "llm-capacity-planner[zstd]" in caught.value.problems[0].hint


def test_a_file_of_no_kind_hears_what_was_looked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "letter.txt", "Dear all,\nthe weather is fine.\n" * 5)
    with pytest.raises(InputError) as caught:
        read(Source(path))
    problem = caught.value.problems[0]
    assert problem.reference == "unknown-format"
    assert problem.hint.count(" | ") >= 3
    assert "missing:" in problem.hint


def test_names_of_kinds_are_their_own_and_well_said() -> None:
    known = kinds()
    assert len({kind.name for kind in known}) == len(known)
    assert all(kind.title and kind.looks_for for kind in known)
    assert 0 < SURE < 1


def test_a_kind_by_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'usage'"):
        read(Source(written(tmp_path, "a", "x")), named="usagee")


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_nothing_is_refused_as_nothing(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        read(Source(written(tmp_path, "a.csv", content)))


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = written(
        tmp_path, "bomb.gz", gzip.compress(b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + b"\n" * 200_000_000, 9)
    )
    with pytest.raises(InputError, match="250 times its size"):
        read(Source(path))


def test_a_packed_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(SMALL["azure.csv"][1]().encode())  # type: ignore[union-attr]
    with pytest.raises(InputError, match="ends early"):
        read(Source(written(tmp_path, "a.gz", packed[:-20])))


def test_files_of_a_folder_are_read_as_one(tmp_path: Path) -> None:
    text = SMALL["azure.csv"][1]()
    assert isinstance(text, str)
    lines = text.splitlines(keepends=True)
    written(tmp_path, "part-1.csv", "".join(lines[:150]))
    written(tmp_path, "part-2.csv", lines[0] + "".join(lines[150:]))
    whole = read(Source(written(tmp_path.parent, "whole.csv", text)))
    assert read(Source(tmp_path)).look == whole.look


def test_files_that_are_the_same_are_told(tmp_path: Path) -> None:
    """A bill that was fetched twice doubled what is spent, without a word."""
    kind, make = SMALL["focus.csv"]
    content = make()
    first, copy, other = (written(tmp_path, name, content) for name in ("bill.csv", "bill (1).csv", "other.csv"))
    other.write_bytes(first.read_bytes().replace(b"EC2", b"EC3"))
    notes = read(Source(first, copy, other), named=kind).notes
    assert [note for note in notes if "byte for byte" in note] == [
        "bill (1).csv is the same as bill.csv, byte for byte: both count"
    ]
    assert any("byte for byte" in note for note in read(Source(first, first), named=kind).notes)
    assert not any("byte for byte" in note for note in read(Source(first, other), named=kind).notes)


@pytest.mark.parametrize(
    ("content", "columns", "kind"),
    [
        ("time;prompt;answer\n2026-01-01 10:00:00;100;20\n2026-01-01 10:00:04;120;30\n",
         {"input": "prompt", "output": "answer"}, "requests-table"),
        ('{"when": "2026-01-01T10:00:00Z", "a": 100, "b": 20}\n{"when": "2026-01-01T10:00:09Z", "a": 9, "b": 2}\n',
         {"time": "when", "input": "a", "output": "b"}, "requests-json"),
        ('{"ts": 1767261600, "n_prompt": 100, "n_gen": 20}\n{"ts": 1767261604, "n_prompt": 9, "n_gen": 2}\n',
         {"input": "n_prompt", "output": "n_gen"}, "requests-json"),
    ],
)  # fmt: skip
def test_columns_that_are_named_tell_the_kind(content: str, columns: dict[str, str], kind: str, tmp_path: Path) -> None:
    """The hint was to name columns, and with them named the same hint came again; lengths alone were of llama-bench."""
    source = Source(written(tmp_path, "log", content))
    with pytest.raises(InputError, match="unknown-format"):
        kind_of(source)
    reading = read(source, Asked(columns=columns))
    assert (reading.kind, reading.taken) == (kind, 2)


def test_the_line_in_which_excel_says_its_separator_is_none_of_the_table(tmp_path: Path) -> None:
    table = "sep=;\r\ntimestamp;input_tokens;output_tokens\r\n2026-01-01 10:00;100;20\r\n2026-01-01 10:01;100;20\r\n"
    for name, content in (
        ("plain", table.encode()),
        ("marked", table.encode("utf-8-sig")),
        ("wide", table.encode("utf-16")),
    ):
        assert read(Source(written(tmp_path, name, content))).taken == 2


def test_a_workbook_is_told_to_be_saved_as_a_table(tmp_path: Path) -> None:
    """It was told that names with a time, input tokens and output tokens were looked for in its bytes."""
    for first, told in ((b"PK\x03\x04", "save the sheet as CSV"), (b"PAR1", "it is Parquet"), (b"%PDF", "it is a PDF")):
        with pytest.raises(InputError) as caught:
            read(Source(written(tmp_path, "book.csv", first + bytes(range(256)) * 9)))
        assert told in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("content", "reference", "said", "place"),
    [
        (b'{"train_batch_size": 32,\n "bf16": {"enabled": true},\n', "bad-json", "is not valid JSON", (3, 1)),
        ("timestamp,prompt_tokens,completion_tokens\n1,2,3\n".encode("utf-16-le"), "unknown-format",
         "line 1, column 2: save it as UTF-8", None),
        (b"timestamp,prompt_tokens,completion_tokens\n1,2\x00,3\n", "unknown-format", "line 2, column 4", None),
        (b"timestamp,prompt_tokens,prompt_tokens,completion_tokens\n1,2,3,4\n", "given-twice", "'prompt_tokens'",
         (1, 1)),
        (b"timestamp,prompt_tokens,completion_tokens\n46355.41667,2,3\n46355.41670,2,3\n", "dates-as-numbers",
         "days as a spreadsheet counts them (2026-11-29)", None),
        (b"trainer:\n  devices: 8\nmodel:\n  x: 1\n", "unknown-format", "missing: (micro|global)_batch_size:", None),
    ],
    ids=["JSON that breaks off", "UTF-16 without its mark", "a zero byte", "two columns of one name",
         "days of a spreadsheet", "marks as files have them"],
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_its_place(
    content: bytes, reference: str, said: str, place: tuple[int, int] | None, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(Source(written(tmp_path, "a", content)))
    (problem,) = caught.value.problems
    assert (problem.reference, said in f"{problem.message} | {problem.hint}") == (reference, True)
    assert place is None or (problem.places[0].line, problem.places[0].column) == place


def test_seconds_of_a_log_may_begin_late(tmp_path: Path) -> None:
    text = b"timestamp,prompt_tokens,completion_tokens\n46355.5,2,3\n46356.5,2,3\n"
    assert read(Source(written(tmp_path, "a", text)), Asked(time_unit="s")).taken == 2


def test_what_plan_wrote_itself_is_told_its_command(tmp_path: Path) -> None:
    """Targets and predictions of a plan were taken for measured points."""
    for text, told in (
        ('{"schema": "plan/result/v1", "ttft_p95": 3, "model": "llama-3.1-8b"}', "it is a plan, which predicts"),
        ("# mine\nschema: plan/v1\nname: a\n", "it is a scenario: plan solve"),
        ('{\n "schema": "plan/compare/v1"}', "it is plan/compare/v1, which plan wrote itself"),
    ):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError) as caught:
            read(Source(tmp_path / "x.json"))
        assert told in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("sign", "told"), [(b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "by xz"), (b"\x89PNG\r\n", "a picture")]
)
def test_other_packings_are_told_by_name(sign: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(sign + bytes(range(256)))
    with pytest.raises(InputError) as caught:
        read(Source(tmp_path / "x"))
    assert told in caught.value.problems[0].hint
