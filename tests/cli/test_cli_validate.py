"""`plan validate`: a small table against predictions made up for the test, in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from planner.catalog.model import Band
from planner.validate import training
from planner.validate.rows import MeasuredRow
from tests.cli.conftest import HERE, Run, check_golden

RUNS = str(HERE / "samples" / "runs.csv")


@dataclass(frozen=True)
class Said:
    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None
    peak_memory_bytes: float | None = None
    skipped: str | None = None
    family: str = "ampere"
    time_band: Band | None = None
    memory_band: Band | None = None


def band(p10: float, p90: float, rows: int) -> Band:
    tag = "calibrated" if rows else "inherited"
    return Band(p10=p10, p50=1.0, p90=p90, rows=rows, sources=min(rows, 2), median_error=0.1, mean_error=0.1,
                p90_error=0.2, tag=tag)  # fmt: skip


def say(row: MeasuredRow) -> Said:
    """Every device does 1,500 tokens/s, at 180 TFLOP/s, in 44e9 bytes."""
    if row.tokens_per_step is None:
        return Said(skipped="the sequence length is not known")
    time_s = row.tokens_per_step / 1500 / (row.n_accel or 1)
    memory = 44e9 if row.peak_mem_kind else None
    return Said(
        step_time_s=time_s, tokens_per_s_per_device=1500.0, tflops_per_device=180.0, peak_memory_bytes=memory,
        family="ampere" if row.family == "A100" else "hopper",
        time_band=band(0.85, 1.1, 7) if row.family == "A100" else band(0.9, 1.2, 0), memory_band=band(0.9, 1.1, 5),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(rows: Sequence[MeasuredRow], catalog: object) -> list[Said]:
        return [say(row) for row in rows]

    monkeypatch.setattr(training, "predict_training", predict, raising=False)


@pytest.mark.parametrize("width", [80, 120])
def test_table(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    answer = run("validate", "training", "--data", RUNS)
    assert (answer.code, answer.err) == (0, "")
    check_golden(f"validate-{width}.txt", answer.out)


@pytest.mark.parametrize("form", ["csv", "md", "json"])
def test_other_forms(run: Run, form: str) -> None:
    answer = run("validate", "training", "--data", RUNS, "-o", form)
    assert (answer.code, answer.err) == (0, "")
    check_golden(f"validate.{form}", answer.out)


def test_json_is_as_the_architecture_says(run: Run) -> None:
    document = json.loads(run("validate", "training", "--data", RUNS, "-o", "json").out)
    assert list(document) == ["rows", "summary"]
    rows = {row["id"]: row for row in document["rows"]}
    assert all(list(row) == ["id", "predicted", "measured", "error", "skipped", "bands"] for row in rows.values())
    assert rows["r-1"]["measured"] == {"step_time_s": 10.0, "peak_memory_bytes": 40 * 2**30}
    assert rows["r-1"]["error"]["step_time_s"] == pytest.approx(64 * 2048 / 1500 / 8 / 10 - 1)
    assert rows["r-3"]["error"] == {"tokens_per_s_per_device": pytest.approx(1500 / 512 - 1)}
    assert rows["r-4"]["error"]["tflops_per_device"] == pytest.approx(180 / 200 - 1)
    assert rows["r-6"] == {
        "id": "r-6", "predicted": {}, "measured": {"step_time_s": 3.0}, "error": {},
        "skipped": "the sequence length is not known", "bands": {},
    }  # fmt: skip
    time, rate = (rows["r-1"]["bands"][name] for name in ("step_time_s", "tokens_per_s_per_device"))
    predicted = rows["r-1"]["predicted"]
    assert (time["p10"], time["p90"]) == pytest.approx([s * predicted["step_time_s"] for s in (0.85, 1.1)])
    assert (rate["p10"], rate["p90"]) == pytest.approx([1500 / 1.1, 1500 / 0.85])
    assert (time["tag"], time["rows"], time["sources"]) == ("calibrated", 7, 2)
    assert rows["r-3"]["bands"]["tokens_per_s_per_device"]["tag"] == "inherited"
    assert rows["r-7"]["predicted"]["step_time_s"] > 0
    assert rows["r-7"]["measured"] == {}
    (covered, everything) = [row for row in document["summary"] if row["quantity"] == "coverage"]
    assert (covered["rows"], covered["predicted"], covered["skipped"]) == (6, 6, 0)
    assert (everything["rows"], everything["predicted"], everything["left_out_rows"]) == (7, 6, 1)
    assert everything["refusals"] == {"the sequence length is not known": ["r-6"]}


def test_a_wrong_row_is_told_and_the_others_are_predicted(run: Run, tmp_path: Path) -> None:
    text = Path(RUNS).read_text()
    head, first, *rest = text.splitlines()
    cells = first.split(",")
    cells[head.split(",").index("n_accel")] = "many"
    (tmp_path / "t.csv").write_text(
        "\n".join([f"{head},colour", ",".join(cells) + ",red", *(f"{r},red" for r in rest)])
    )
    answer = run("validate", "training", "--data", str(tmp_path / "t.csv"), "-o", "json")
    assert answer.code == 0, answer.err
    assert "passed over: colour" in answer.err
    assert "r-1 refused: n_accel is 'many'" in answer.err
    rows = {row["id"]: row for row in json.loads(answer.out)["rows"]}
    assert rows["r-1"]["skipped"] == "n_accel is 'many'"
    assert rows["r-2"]["predicted"]["step_time_s"] > 0


def test_csv_runs_no_formula(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("validate", "training", "--data", RUNS, "-o", "csv").out)))
    assert rows[4]["model"].startswith("'=")
    assert rows[4]["left_out"] == ""  # fine-tuning counts


def test_filters(run: Run) -> None:
    def names(*flags: str) -> list[str]:
        document = json.loads(run("validate", "training", "--data", RUNS, "-o", "json", *flags).out)
        return [row["id"] for row in document["rows"]]

    assert names("--family", "a100") == ["r-1", "r-2"]
    assert names("--family", "hopper", "--source", "our*") == ["r-7"]
    assert names("--family", "A100", "--family", "V*") == ["r-1", "r-2", "r-6"]


def test_nothing_left_is_no_crash(run: Run) -> None:
    for form in ("table", "json", "csv", "md", "html"):
        answer = run("validate", "training", "--data", RUNS, "--source", "nobody", "-o", form)
        assert (answer.code, answer.err) == (0, ""), form


class Page(HTMLParser):
    """Elements of a page, and the texts outside of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.inside = ""
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.inside = tag
        self.addresses += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "action", "srcset", "data")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self.inside == "script" else self.text).append(data)


OURS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "h1", "h3", "p", "section", "div", "table",
    "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary", "figure", "figcaption",
    "svg", "defs", "pattern", "rect", "path", "line", "circle", "text",
}  # fmt: skip


def test_html_holds_nothing_foreign(run: Run, tmp_path: Path) -> None:
    hostile = Path(RUNS).read_text().replace("=Model|<b>x</b>", "</script><img src=x onerror=alert(1)>\"'&amp;")
    hostile = hostile.replace("Model 70B", "</script><img src=//evil.example/p.png>").replace("theirs", "<i>t</i>")
    (tmp_path / "hostile.csv").write_text(hostile.replace("\"'", ""))
    answer = run("validate", "training", "--data", str(tmp_path / "hostile.csv"), "-o", "html")
    assert answer.code == 0, answer.err
    page = Page()
    page.feed(answer.out)
    page.close()
    assert page.tags <= OURS
    assert page.addresses == []
    assert any("<img src=//evil.example/p.png>" in text for text in page.text)
    assert page.scripts == []
    assert answer.out.count('<svg class="chart" id=') == 2


def test_html_draws_each_row_that_counts(run: Run) -> None:
    page = run("validate", "training", "--data", RUNS, "-o", "html").out
    drawing = page.split('id="step-time-s"')[1].split("</figure>")[0]
    told = re.findall(r"measured (\S+) s, predicted", drawing)
    assert told[:2] == ["10", "11"]
    assert len(told) == 2 + 3
    assert re.findall(r"</svg>(\w+)</li>", drawing) == ["exact", "A100", "H100"]


@pytest.mark.parametrize("form", ["table", "html"])
def test_out_writes_the_whole_file(run: Run, here: Path, form: str) -> None:
    answer = run("validate", "training", "--data", RUNS, "-o", form, "--out", "v.out", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert (here / "v.out").read_text().endswith("\n" if form == "table" else "</html>\n")


def test_a_broken_table_exits_3(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("accelerator,n_accel,seq_length\nA100,8,2048\n")
    answer = run("validate", "training", "--data", str(tmp_path / "t.csv"))
    assert (answer.code, answer.out) == (3, "")
    assert "error[unknown-column]" in answer.err
    assert "did you mean 'seq_len'?" in answer.err
    assert "t.csv:1:21" in answer.err


BUDGETS = """id,model,params_b,tokens_b,accelerator,n_accel,gpu_hours,days,source,evidence
t-1,Llama 2 7B,6.74,2000,A100-80GB-SXM,,184320,,card:x,seen
t-2,TinyLlama,1.1,3000,A100-40GB-SXM,16,,90,repo:y,seen
t-3,Falcon-40B,40,1000,A100-40GB-SXM,384,,60 (recalled),page,partly recalled
t-4,Nobody,7,,A100-80GB-SXM,8,100,,page,seen
"""


@pytest.mark.parametrize("tier", ["rule", "analytic"])
def test_totals(run: Run, tmp_path: Path, tier: str) -> None:
    (tmp_path / "t.csv").write_text(BUDGETS)
    answer = run("validate", "totals", "--data", str(tmp_path / "t.csv"), "--tier", tier, "-o", "json")
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    rows = {row["id"]: row for row in document["rows"]}
    assert rows["t-1"]["measured"] == {"device_hours": 184320.0}
    assert rows["t-2"]["measured"] == {"device_hours": 16 * 90 * 24.0}
    said = rows["t-1"]["predicted"]["device_hours"]
    assert rows["t-1"]["error"]["device_hours"] == pytest.approx(said / 184320 - 1)
    assert rows["t-3"]["measured"] == rows["t-3"]["error"] == {}
    assert rows["t-3"]["predicted"]["device_hours"] > 0
    assert rows["t-4"] == {
        "id": "t-4", "predicted": {}, "measured": {"device_hours": 100.0}, "error": {}, "skipped": "no tokens",
    }  # fmt: skip
    coverage, whole = document["summary"][:2]
    assert (coverage["rows"], coverage["predicted"], coverage["left_out_rows"]) == (4, 3, 1)
    assert (whole["quantity"], whole["rows"]) == ("device_hours", 2)
    errors = [abs(rows[name]["error"]["device_hours"]) for name in ("t-1", "t-2")]
    assert whole["mean"] == pytest.approx(sum(errors) / 2)


@pytest.mark.parametrize("form", ["table", "csv", "md", "html"])
def test_totals_in_every_form(run: Run, tmp_path: Path, form: str) -> None:
    (tmp_path / "t.csv").write_text(BUDGETS)
    answer = run("validate", "totals", "--data", str(tmp_path / "t.csv"), "-o", form)
    assert (answer.code, answer.err) == (0, "")
    assert "Falcon-40B" in answer.out if form == "csv" else "TinyLlama" in answer.out
