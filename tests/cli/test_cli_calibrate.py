"""`plan calibrate`: a report in every format, and a file that the catalog reads."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from planner.catalog.fitted_constants import read_serving, read_training
from planner.catalog.reading import Problems
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("brief")
FAST = ("calibrate", "training", "--family", "tpu-v5p")


def test_report_and_file(run: Run, here: Path) -> None:
    answer = run(*FAST, "--out", "found.yaml", "-o", "json")
    assert answer.code == 0, answer.err
    assert "wrote found.yaml" in answer.err
    rows = json.loads(answer.out)
    whole = next(row for row in rows if row["kind"] == "family")
    assert (whole["family"], whole["rows"]) == ("tpu-v5p", 20)
    problems = Problems()
    families, _, _ = read_training(here / "found.yaml", problems)
    assert not problems
    written = families["tpu-v5p"]
    dense, experts = (written.time_band_of("tpu-v5p", kind) for kind in ("dense", "experts"))
    assert (dense.rows, experts.rows) == (17, 3)
    assert (17 * dense.mean_error + 3 * experts.mean_error) / 20 == pytest.approx(whole["mean"], rel=1e-3)
    assert (written.time_band.rows, written.time_band.tag) == (0, "inherited")  # of a device without rows of its own
    for row in rows:
        if row["kind"] == "constant":
            assert written.constants[row["name"]] == pytest.approx(row["value"], rel=1e-3)
            assert row["known_from"] in ("the rows", "the rows, weakly", "its prior")
    assert "as_of: 2026-11-21" in (here / "found.yaml").read_text()


def test_the_same_rows_give_the_same_file(run: Run, here: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        assert run(*FAST, "--out", name, "-q").code == 0
    assert (here / "a.yaml").read_bytes() == (here / "b.yaml").read_bytes()


@pytest.mark.usefixtures("answered_once")
@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_other_forms(run: Run, here: Path, form: str) -> None:
    answer = run(*FAST, "-o", form)
    assert (answer.code, answer.err) == (0, "")
    assert "gemm" in answer.out
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(answer.out)))
        assert {row["kind"] for row in rows} == {"family", "source", "constant"}


def test_rows_of_ones_own(run: Run, here: Path) -> None:
    head = "accelerator,family,n_accel,model,layers,hidden,heads,ffn_hidden,seq_len,micro_batch,global_batch,tp,dp"
    lines = [
        f"A100-80GB-SXM,A100,8,M{layers},{layers},4096,32,16384,2048,1,{64 * n},1,8,{0.5 * n * layers}"
        for layers in (24, 32)
        for n in (1, 2, 4)
    ]
    (here / "rows.csv").write_text("\n".join([f"{head},step_time_s", *lines]) + "\n")
    answer = run("calibrate", "training", "--data", "rows.csv", "--out", "own.yaml", "--as-of", "2026-12-01", "-q")
    assert answer.code == 0, answer.err
    assert "ampere" in answer.out
    text = (here / "own.yaml").read_text()
    assert "rows.csv" in text
    assert "2026-12-01" in text


def test_nothing_to_fit(run: Run, here: Path) -> None:
    (here / "rows.csv").write_text("accelerator,n_accel,seq_len\nA100-80GB-SXM,8,2048\n")
    answer = run("calibrate", "training", "--data", "rows.csv", "--out", "own.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert "error[nothing-to-fit]" in answer.err
    assert not (here / "own.yaml").exists()


def test_a_date_that_is_none(run: Run, here: Path) -> None:
    answer = run(*FAST, "--as-of", "yesterday")
    assert answer.code == 2
    assert "error[bad-date]" in answer.err


SERVING = ("calibrate", "serving", "--engine", "vllm-tpu")


def test_serving_report_and_file(run: Run, here: Path) -> None:
    answer = run(*SERVING, "--out", "serving.yaml", "-o", "json")
    assert answer.code == 0, answer.err
    assert "wrote serving.yaml" in answer.err
    rows = json.loads(answer.out)
    figures = [row for row in rows if row["kind"] == "figure"]
    assert {(row["name"], row["left_out"], row["rows"], row["campaigns"]) for row in figures} == {
        ("TPOT, closed loop", "campaign", 2, 1),
        ("TTFT, closed loop", "campaign", 2, 1),
        ("throughput, closed loop", "campaign", 8, 3),
    }
    problems = Problems()
    read = read_serving(here / "serving.yaml", problems)
    assert not problems
    assert read is not None
    for row in rows:
        if row["kind"] == "constant" and row["of"] == "all":
            assert read.common[row["constant"]] == pytest.approx(row["value"], rel=1e-3)
    assert {kind: campaigns for pair in read.traits["pair"].values() for kind, (_, campaigns) in pair.rows.items()} == {
        "tpot": 1, "ttft": 1, "throughput": 1, "throughput experts": 2,
    }  # fmt: skip


@pytest.mark.usefixtures("answered_once")
@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_serving_in_other_forms(run: Run, here: Path, form: str) -> None:
    answer = run(*SERVING, "-o", form)
    assert (answer.code, answer.err) == (0, "")
    assert "bandwidth" in answer.out


def test_serving_rows_of_ones_own(run: Run, here: Path) -> None:
    head = "model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,accelerator,n_accel,tp,engine,scenario"
    lines = [
        f"M,32,4096,32,8,14336,128256,H100-SXM,1,1,vllm,closed loop,1000,500,{c},{5 + c / 8},{90 + c}"
        for c in (1, 8, 32)
    ]
    (here / "rows.csv").write_text(
        "\n".join([f"{head},input_tokens,output_tokens,concurrency,tpot_ms,ttft_ms", *lines]) + "\n"
    )
    answer = run("calibrate", "serving", "--data", "rows.csv", "--out", "own.yaml", "--as-of", "2026-12-01", "-q")
    assert answer.code == 0, answer.err
    text = (here / "own.yaml").read_text()
    assert "rows.csv" in text
    assert "2026-12-01" in text


def test_serving_with_nothing_to_fit(run: Run, here: Path) -> None:
    (here / "rows.csv").write_text("model,accelerator,n_accel,scenario\nM,H100-SXM,1,closed loop\n")
    answer = run("calibrate", "serving", "--data", "rows.csv", "--out", "own.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert "error[nothing-to-fit]" in answer.err
    assert not (here / "own.yaml").exists()
