"""`plan validate serving`: a small table against predictions made up for the test, in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Band
from planner.validate import serving
from planner.validate.serving import NO_ROOM, ServingPrediction
from planner.validate.serving_entries import serving_refusal
from planner.validate.serving_rows import ServingRow
from tests.cli.conftest import HERE, Run, check_golden

ROWS = str(HERE / "samples" / "serving.csv")


def band(low: float, high: float) -> Band:
    return Band(
        p10=low,
        p50=1.0,
        p90=high,
        rows=40,
        sources=5,
        median_error=0.1,
        mean_error=0.1,
        p90_error=0.2,
        tag="calibrated",
    )


def say(row: ServingRow, refused: str | None) -> ServingPrediction:
    """Ten milliseconds a token, and 100 to the first; 10,000 tokens/s; half a second a batch."""
    family = "ampere" if "A100" in (row.accelerator or "") else "hopper"
    if refused:
        return ServingPrediction(skipped=refused)
    if (row.concurrency or 0) * (row.output_tokens or 0) > 100_000 and row.load == "static":
        return ServingPrediction(skipped=NO_ROOM, fits=False, engine=row.engine or "", family=family)
    return ServingPrediction(
        tpot_s=0.01 if row.load == "closed" else None, ttft_s=0.1 if row.load == "closed" else None,
        output_tokens_per_s={"offline": 10_000.0, "single": 120.0}.get(row.load),
        batch_latency_s=0.5 if row.load == "static" else None, peak_memory_bytes=16e9,
        prefill_tokens_per_s=6000.0 if row.load == "single" else None,
        fits=True, engine=row.engine or "", family=family, bands={"tpot_s": band(0.8, 1.3), "ttft_s": band(0.9, 1.1)},
    )  # fmt: skip


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = load_catalog()

    def predict(rows: Sequence[ServingRow], _: object) -> list[ServingPrediction]:
        return [say(row, serving_refusal(row, catalog)) for row in rows]

    monkeypatch.setattr(serving, "predict_serving", predict)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("width", [80, 120])
def test_table(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    answer = run("validate", "serving", "--data", ROWS)
    assert (answer.code, answer.err) == (0, "")
    check_golden(f"validate-serving-{width}.txt", answer.out)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("form", ["csv", "md", "json"])
def test_other_forms(run: Run, form: str) -> None:
    answer = run("validate", "serving", "--data", ROWS, "-o", form)
    assert (answer.code, answer.err) == (0, "")
    check_golden(f"validate-serving.{form}", answer.out)


@pytest.mark.usefixtures("made_up")
def test_json_is_as_the_architecture_says(run: Run) -> None:
    document = json.loads(run("validate", "serving", "--data", ROWS, "-o", "json").out)
    assert list(document) == ["rows", "summary"]
    rows = {row["id"]: row for row in document["rows"]}
    assert all(list(row) == ["id", "predicted", "measured", "error", "skipped", "bands"] for row in rows.values())
    band = rows["s-1"]["bands"]["tpot_s"]
    assert (band["p10"], band["p50"], band["p90"]) == pytest.approx((0.008, 0.01, 0.013))
    assert (band["tag"], band["rows"], band["sources"]) == ("calibrated", 40, 5)
    assert rows["s-1"]["measured"] == {"ttft_s": 0.12, "tpot_s": 0.009}
    assert rows["s-1"]["error"]["tpot_s"] == pytest.approx(0.01 / 0.009 - 1)
    assert rows["s-3"]["error"] == {"output_tokens_per_s": pytest.approx(1 / 9)}
    assert rows["s-4"]["error"]["batch_latency_s"] == pytest.approx(0.5 / 0.42 - 1)
    assert rows["s-4"]["error"]["peak_memory_bytes"] == pytest.approx(16 / 16.31 - 1)
    assert rows["s-5"] == {"id": "s-5", "predicted": {}, "measured": {}, "error": {}, "skipped": NO_ROOM, "bands": {}}
    assert rows["s-6"]["error"]["prefill_tokens_per_s"] == pytest.approx(6000 / 6500 - 1)
    assert rows["s-7"]["skipped"].startswith("the shape of the model is not known")
    assert rows["s-8"]["skipped"] == "device 'Abacus 3000' is not in the catalog"
    assert rows["s-9"]["predicted"]["tpot_s"] == 0.01
    assert rows["s-9"]["measured"] == rows["s-9"]["error"] == {}


@pytest.mark.usefixtures("made_up")
def test_the_summary_counts_what_was_refused_left_out_and_odd(run: Run) -> None:
    document = json.loads(run("validate", "serving", "--data", ROWS, "-o", "json").out)
    parts: dict[str, list[dict[str, object]]] = {}
    for row in document["summary"]:
        parts.setdefault(row["quantity"], []).append(row)
    (coverage,) = parts["coverage"]
    assert (coverage["rows"], coverage["predicted"], coverage["skipped"]) == (8, 6, 2)
    assert sorted(name for names in coverage["refusals"].values() for name in names) == ["s-7", "s-8"]
    assert coverage["left_out_rows"] == 1  # s-2: 900 clients, of which not all fit; and faster than its memory
    fit = {row["name"]: (row["rows"], row["right"]) for row in parts["memory_fit"]}
    assert fit == {"cells out of memory, refused": (1, 1), "cells that ran, accepted": (5, 5)}
    odd = {row["name"].split(" ")[0]: list(row["details"]) for row in parts["lint"]}
    assert odd == {"is": ["s-2"], "states": ["s-2"], "answers": ["s-2"]}
    (tpot,) = [row for row in parts["tpot_s"] if row["group"] == "all"]
    assert (tpot["rows"], tpot["mean"]) == (1, pytest.approx(1 / 9))
    bands = {row["name"]: (row["rows"], row["inside"]) for row in parts["band"]}
    assert bands == {"all": (2, 1), "TPOT, closed loop": (1, 1), "TTFT, closed loop": (1, 0)}


@pytest.mark.usefixtures("made_up")
def test_csv_runs_no_formula(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("validate", "serving", "--data", ROWS, "-o", "csv").out)))
    assert rows[5]["model"].startswith("'=")
    assert rows[1]["left_out"].startswith("t")
    assert rows[7]["skipped"]


@pytest.mark.usefixtures("made_up")
def test_filters(run: Run) -> None:
    def names(*flags: str) -> list[str]:
        document = json.loads(run("validate", "serving", "--data", ROWS, "-o", "json", *flags).out)
        return [row["id"] for row in document["rows"]]

    assert names("--engine", "FasterTransformer") == ["s-4", "s-5"]
    assert names("--device", "h100*", "--source", "theirs") == ["s-3"]
    assert names("--source", "nobody") == []


@pytest.mark.usefixtures("made_up")
def test_nothing_left_is_no_crash(run: Run) -> None:
    for form in ("table", "json", "csv", "md", "html"):
        answer = run("validate", "serving", "--data", ROWS, "--source", "nobody", "-o", form)
        assert (answer.code, answer.err) == (0, ""), form


@pytest.mark.usefixtures("made_up")
def test_html_escapes_names(run: Run) -> None:
    page = run("validate", "serving", "--data", ROWS, "-o", "html").out
    assert page.endswith("</html>\n")
    assert "<b>x" not in page
    assert "&lt;b&gt;x" in page
    assert page.count('<svg class="chart" id=') >= 4


def test_real_predictions_of_the_same_table(run: Run) -> None:
    document = json.loads(run("validate", "serving", "--data", ROWS, "-o", "json").out)
    rows = {row["id"]: row for row in document["rows"]}
    assert 0.004 < rows["s-1"]["predicted"]["tpot_s"] < 0.02
    assert rows["s-5"]["skipped"].startswith(f"{NO_ROOM}: 181.9 GB of a device are needed")
    assert rows["s-9"]["predicted"]["tpot_s"] <= rows["s-1"]["predicted"]["tpot_s"]
    assert 60 < rows["s-6"]["predicted"]["output_tokens_per_s"] < 200


def test_a_broken_table_exits_3(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("modell,accelerator,n_accel,scenario,tpot\nM,H100,1,closed loop,9\n")
    answer = run("validate", "serving", "--data", str(tmp_path / "t.csv"))
    assert (answer.code, answer.out) == (3, "")
    assert "error[unknown-column]" in answer.err
    assert "did you mean 'model'?" in answer.err
    assert "t.csv:1:1" in answer.err


def test_a_column_that_is_no_input_is_passed_over_by_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,accelerator,n_accel,scenario,tpot\nM,H100,1,closed loop,9\n")
    answer = run("validate", "serving", "--data", str(tmp_path / "t.csv"))
    assert (answer.code, "passed over: tpot" in answer.err) == (0, True)
