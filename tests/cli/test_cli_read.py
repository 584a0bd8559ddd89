"""What `plan read` writes of clusters and prices is taken by `plan solve`, and changes what a plan costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.reading.cluster_writers import node, nodes, smi_csv
from tests.reading.market_writers import azure, device_prices, sky_prices
from tests.reading.trace_writers import day_of_load, dcgm

SCENARIO = """\
schema: plan/v1
name: mine
serving:
  - {name: chat, model: llama-3.1-8b, qpm: 60, input_tokens: 500, output_tokens: 100}
hardware:
  allow: [h100-sxm-80gb]
  providers: [azure]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def cost(run: Run, *arguments: str) -> tuple[float, set[str]]:
    """US dollars an hour of a plan, and the dates of its prices; it is verified."""
    solved = run("solve", "mine.yaml", "--out", "p.json", *arguments)
    assert solved.code == 0, solved.err
    assert run("verify", "p.json", *arguments).code == 0
    plan = json.loads(Path("p.json").read_text(encoding="utf-8"))
    rows = [row for one in plan["workloads"] for row in one["allocations"]]
    return sum(row["count"] * row["price_microusd_per_hour"] for row in rows) / 1e6, {r["price_as_of"] for r in rows}


def test_a_price_list_is_an_overlay_that_changes_the_price(run: Run, mine: Path) -> None:
    before, _ = cost(run)
    (mine / "list.json").write_text(azure(), encoding="utf-8")
    assert run("read", "list.json", "--out", "prices.csv").code == 0
    after, dates = cost(run, "--prices", "prices.csv")
    assert (after, dates) == (9.5, {"2026-11-21"})  # of the machine of 8; the list has no date, and says so
    assert after < before

    (mine / "sky.txt").write_text(sky_prices(), encoding="utf-8")
    assert run("read", "sky.txt", "--out", "sky.csv").code == 0
    (mine / "mine.yaml").write_text(SCENARIO.replace("azure", "lambda"), encoding="utf-8")
    assert "16" in run("catalog", "list", "--device", "h100-sxm-80gb", "--prices", "sky.csv", "-o", "csv").out


def test_prices_by_device_become_a_catalog_that_extends_ours(run: Run, mine: Path) -> None:
    before, _ = cost(run)
    (mine / "list.json").write_text(device_prices().replace("_aws", "_azure"), encoding="utf-8")
    assert run("read", "list.json", "--out", "own/catalog.yaml").code == 0
    after, dates = cost(run, "--hardware", "own")
    assert dates == {"2026-11-21"}
    assert after % 0.25 == 0  # each device costs that
    assert after < before


def test_machines_that_were_found_are_used_before_others_are_rented(run: Run, mine: Path) -> None:
    rented, _ = cost(run)
    (mine / "nodes.json").write_text(nodes(node("n1"), node("n2")), encoding="utf-8")
    (mine / "smi.csv").write_text(smi_csv(), encoding="utf-8")
    (mine / "dcgm.prom").write_text(dcgm(), encoding="utf-8")
    for name in ("nodes.json", "smi.csv", "dcgm.prom"):
        assert run("read", name, "--into", "mine.yaml").code == 0
    text = (mine / "mine.yaml").read_text(encoding="utf-8")
    assert text.count("shape: onprem/l4-x4") == 1  # the same machine, counted twice, stands once
    used, _ = cost(run)
    assert used == 0.0 < rented
    assert "Use 1 node of 4 L4" in run("solve", "mine.yaml").out


def test_a_range_of_metrics_becomes_a_fleet_that_is_sized(run: Run, mine: Path) -> None:
    (mine / "range.json").write_text(day_of_load(), encoding="utf-8")
    assert run("read", "range.json", "--into", "new.yaml", "--model", "llama-3.1-8b").code == 0
    solved = run("solve", "new.yaml", "--out", "n.json")
    assert solved.code == 0, solved.err
    assert run("verify", "n.json").code == 0


def test_a_name_that_no_workload_may_have_is_refused_at_once(run: Run, mine: Path) -> None:
    answer = run("read", "scenarios/requests.csv", "--name", "A b", "--into", str(mine / "new.yaml"))
    assert (answer.code, "write 'a-b'" in answer.err) == (2, True)
    assert not (mine / "new.yaml").exists()
