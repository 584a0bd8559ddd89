"""Tables of measurements: the shipped ones, a user's, and every way in which a table can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.catalog.load import load_catalog
from planner.csvtable import MOST_PROBLEMS
from planner.errors import InputError, Problem
from planner.validate.rows import (
    MEASURED,
    TABLES,
    TOTALS_TABLES,
    UNREAD,
    MeasuredRow,
    blank_measured,
    contradiction,
    read_totals,
    read_totals_table,
    read_training_rows,
    read_training_table,
    shipped_left_out,
    shipped_totals,
    shipped_training_rows,
)
from planner.validate.score import why_left_out
from planner.validate.totals import predict_totals, validate_totals

Write = Callable[[str], Path]
GOOD = 'accelerator,n_accel,seq_len,step_time_s,notes\nH100-80GB-SXM,8,4096,1.5,"a, b"\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str) -> Path:
        path = tmp_path / "rows.csv"
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return make


def test_shipped_rows_are_whole() -> None:
    rows = shipped_training_rows()
    assert len(rows) == 833 + 658
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.source and row.source_key and row.accelerator and row.trust for row in rows)
    first = [row for row in rows if row.file.endswith("training.csv")]
    assert sum(row.step_time_s is not None for row in first) == 475
    assert sum(row.measured_memory_bytes is not None for row in first) == 164
    assert sum(row.measured_memory_bytes is not None for row in rows) == 164 + 222
    assert sum(row.kind == "hybrid" for row in rows) > 50  # of which only the sizes are stated
    assert sum(row.kind == "tuning" for row in rows) == 155
    assert len(shipped_totals()) == 23 + 10


def test_two_linked_cells_agree_in_every_shipped_row() -> None:
    for row in shipped_training_rows():
        if row.trust != "C":
            assert not contradiction(row) or row.id == "bsa-0051", row.id
        if row.step_time_s and row.tokens_per_s_per_device and row.tokens_per_step and row.n_accel and row.trust != "C":
            linked = row.step_time_s * row.tokens_per_s_per_device * row.n_accel
            assert linked == pytest.approx(row.tokens_per_step, rel=0.02), row.id


def test_left_out_names_exactly_the_rows_that_count_in_nothing() -> None:
    listed = shipped_left_out()
    training = {(Path(row.file).name, row.id) for row in shipped_training_rows() if why_left_out(row)}
    assert {key for key in listed if key[0] in TABLES} == training
    totals = {
        row.id
        for row in shipped_totals()
        if "recalled" in (row.evidence or "") or row.device_hours is None or row.tokens_b is None
    }
    assert {name for file, name in listed if file in TOTALS_TABLES} == totals
    assert all(listed.values())


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("max_memory_allocated, max over ranks", "allocated"),
        ("rank-0 max allocated after iteration 2", "allocated"),
        ("max_reserved (torchtitan metric), max over ranks", "reserved"),
        ("memory column (reserved)", "reserved"),
        ("peak memory (torchtitan log)", "reserved"),
        ("nvidia-smi style reading, max node", "process"),
        ("rounded up per GPU", "process"),
        ("params+optimizer+activations of first stage, digitised from the figure", "formula"),
        (None, ""),
    ],
)
def test_memory_kind(kind: str | None, found: str) -> None:
    assert MeasuredRow(peak_mem_kind=kind).memory_kind == found


def test_units_of_memory_are_not_mixed() -> None:
    assert MeasuredRow(peak_mem_gb=10, peak_mem_unit="GB").measured_memory_bytes == 10e9
    assert MeasuredRow(peak_mem_gb=10, peak_mem_unit="GiB").measured_memory_bytes == 10 * 2**30


@pytest.mark.parametrize(
    ("devices", "hours", "days", "found"),
    [
        ("8", "12.6", "3", 12.6),
        ("16", None, "90", 16 * 90 * 24),
        ("1024 (992 in use, 8x TP)", "811008", "33", 811008),
        ("2,048", None, "1", 2048 * 24),
        ("2048 (recalled)", None, "10", None),
        ("64-512 (varied)", None, "35", None),
        ("440 + 216", None, "2", None),
        ("440", "100320 (derived from recalled)", None, None),
    ],
)
def test_totals_take_no_recollection_and_no_range(
    write: Write, devices: str, hours: str | None, days: str | None, found: float | None
) -> None:
    cells = ",".join(f'"{cell or ""}"' for cell in (devices, hours, days))
    path = write(f"params_b,tokens_b,accelerator,n_accel,gpu_hours,days\n7,1000,A100,{cells}\n")
    assert read_totals(path)[0].device_hours == found


def test_a_wrong_row_of_whole_runs_is_refused_and_the_others_go_on(write: Write) -> None:
    head = "id,params_b,tokens_b,accelerator,gpu_hours,extra"
    path = write(f"{head}\na,7,1000,A100,100000,x\nb,seven,1000,A100,1,x\nc,1e8,1e18,A100,0,x\n")
    rows, refused, ignored = read_totals_table(path)
    assert ([row.name for row in rows], refused, ignored) == (["a", "c"], {"b": "params_b is 'seven'"}, ("extra",))
    said = predict_totals(rows, load_catalog())
    assert said[0].device_hours
    assert "not possible" in (said[1].skipped or "")
    document = validate_totals(rows, said, refused=refused).document()
    assert [row["skipped"] is None for row in document["rows"]] == [True, False, False]
    assert (document["summary"][0]["rows"], document["summary"][0]["predicted"]) == (3, 1)


def test_flags_are_read_as_spreadsheets_write_them(write: Write) -> None:
    head = "accelerator,n_accel,seq_len,compiled,deterministic"
    (row,) = read_training_rows(write(f"{head}\nH100,8,4096,TRUE,no\n"))
    assert (row.compiled, row.deterministic) == (1, 0)


def test_a_table_may_be_a_subset_in_any_order(write: Write) -> None:
    (row,) = read_training_rows(write("\ufeffseq_len, step_time_s ,n_accel,accelerator\n4096, 1.5 ,8,H100\n".replace(
        " step_time_s ", "step_time_s")))  # fmt: skip
    assert (row.seq_len, row.step_time_s, row.n_accel, row.accelerator) == (4096, 1.5, 8, "H100")
    assert row.tp is None
    assert row.id is None
    assert (row.name, row.line) == ("line 2", 2)


def test_line_numbers_count_lines_and_not_rows(write: Write) -> None:
    text = 'accelerator,n_accel,seq_len,notes\r\nA100,8,1024,"two\r\nlines"\r\n\r\nH100,8,1024,\r\n'
    assert [row.line for row in read_training_rows(write(text))] == [2, 5]


FAULTS = [
    ("unknown column", GOOD.replace("seq_len", "seq_length"), "unknown-column", 1, 21, "did you mean 'seq_len'?"),
    ("another unknown column", GOOD.replace("notes", "colour"), "unknown-column", 1, 41, "columns: id"),
    ("semicolons", GOOD.replace(",", ";"), "unknown-column", 1, 1, "separated by commas"),
    ("twice", GOOD.replace("notes", "n_accel"), "duplicate-column", 1, 41, "keep one"),
    ("missing column", "accelerator,seq_len\nA100,1024\n", "missing-column", 1, 1, "add n_accel"),
    ("empty file", "", "missing-column", 1, 1, "add accelerator"),
    ("a unit", GOOD.replace("1.5", "1.5 s"), "bad-number", 2, 22, "without unit"),
    ("not a number", GOOD.replace("1.5", "nan"), "bad-number", 2, 22, "plain number"),
    ("underscores", GOOD.replace("4096", "4_096"), "bad-number", 2, 17, "plain number"),
    ("infinite", GOOD.replace("1.5", "inf"), "bad-number", 2, 22, "plain number"),
    ("zero", GOOD.replace("1.5", "0"), "bad-number", 2, 22, "above zero"),
    ("negative", GOOD.replace("4096", "-1"), "bad-number", 2, 17, "above zero"),
    ("half a device", GOOD.replace(",8,", ",8.5,"), "bad-number", 2, 15, "whole number"),
    ("too many cells", GOOD.replace("1.5,", "1.5,,"), "bad-row", 2, 26, "quote cells"),
    ("too few cells", GOOD.replace("4096,", ""), "bad-row", 2, 21, "keep empty cells"),
    ("open quote", GOOD.replace('b"', "b"), "bad-csv", 2, 1, "quote"),
    ("flag", GOOD.replace("notes", "compiled").replace('"a, b"', "maybe"), "bad-flag", 2, 26, "write 1 for yes"),
    ("flag of two", GOOD.replace("notes", "compiled").replace('"a, b"', "2"), "bad-flag", 2, 26, "write 1 for yes"),
    ("trust", GOOD.replace("notes", "trust").replace('"a, b"', "D"), "unknown-value", 2, 26, "one of: A, B, C"),
    ("memory unit", GOOD.replace("notes", "peak_mem_gb").replace('"a, b"', "70"), "missing-unit", 2, 1, "GiB"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reference", "line", "column", "hint"), [f[1:] for f in FAULTS],
                         ids=[f[0] for f in FAULTS])  # fmt: skip
def test_faults_of_a_table(write: Write, text: str, reference: str, line: int, column: int, hint: str) -> None:
    path = write(text)
    problem = problems_of(path)[0]
    (place,) = problem.places
    assert (problem.reference, place.file, place.line, place.column) == (reference, str(path), line, column)
    assert hint in problem.hint


def problems_of(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as raised:
        read_training_rows(path)
    return raised.value.problems


def test_all_mistakes_at_once_but_not_thousands(write: Write) -> None:
    head, row = GOOD.splitlines()
    problems = problems_of(write("\n".join([head, *[row.replace("1.5", "x").replace("4096", "y")] * 100])))
    assert len(problems) == MOST_PROBLEMS + 1
    assert "150 mistakes more" in problems[-1].message


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "absent.csv")[0].reference == "file-not-found"
    assert problems_of(tmp_path)[0].reference == "not-a-file"
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    assert problems_of(tmp_path / "binary.csv")[0].reference == "bad-encoding"
    (tmp_path / "wide.csv").write_text("accelerator,n_accel,seq_len\n" + "x" * 200_000 + ",8,1\n")
    assert problems_of(tmp_path / "wide.csv")[0].reference == "bad-csv"


def test_blanking_leaves_the_inputs_and_nothing_else() -> None:
    for row in shipped_training_rows():
        blank = blank_measured(row)
        for name in MeasuredRow.__slots__:
            expected = None if name in (*MEASURED, *UNREAD) else getattr(row, name)
            assert getattr(blank, name) == expected


CELLS = "id,accelerator,n_accel,seq_len,global_batch,step_time_s,tokens_per_s_per_device,dp,tp,pp,cp,mfu_pct,colour\n"
SOUND = "a,H100-80GB-SXM,8,4096,64,1.5,,4,2,1,1,40,red\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((",8,4096", ",0,4096"), "n_accel is '0'"),
        ((",1.5,", ",fast,"), "step_time_s is 'fast'"),
        ((",4,2,", ",4,4,"), "dp x tp x pp x cp is 16, and n_accel is 8"),
        ((",40,", ",101,"), "mfu_pct is 101, above 100 %"),
        ((",1.5,,", ",1.5,9999,"), "step_time_s is 1.5, and tokens_per_s_per_device makes it 3.277"),
        ((",red", ""), "the line has 12 cells"),
    ],
)
def test_a_wrong_row_is_refused_and_the_others_go_on(write: Write, change: tuple[str, str], words: str) -> None:
    wrong = SOUND.replace("a,", "b,", 1).replace(*change)
    table = read_training_table(write(CELLS + SOUND + wrong + SOUND.replace("a,", "c,", 1)))
    assert [row.id for row in table.rows] == ["a", "c"]
    assert len(table.refused) == 1
    assert words in next(iter(table.refused.values()))
    assert table.ignored == ("colour",)


def test_a_table_without_a_needed_column_is_still_no_table(write: Write) -> None:
    with pytest.raises(InputError, match="n_accel"):
        read_training_table(write("accelerator,n_acel,seq_len\nH100,8,4096\n"))
