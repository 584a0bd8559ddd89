"""Extended and frozen catalogs and prices of one's own through the command line: solved, listed, told, verified."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from planner.cli import clock
from tests.cli.conftest import Run, without_price_age

SCENARIO = "scenarios/gpt2-xl.yaml"
OFFER = "oci:af-casablanca-1:BM.GPU4.8:on_demand"
OURS = "schema: catalog/v1\nextends: default\noffers: [{provider: oci, price_per_device: $0.50/h, as_of: 2026-11-20}]\n"


@pytest.fixture
def ours(here: Path) -> Path:
    (here / "ours").mkdir()
    (here / "ours/catalog.yaml").write_text(OURS, encoding="utf-8")
    return here / "ours"


def test_a_plan_at_negotiated_prices_is_verified(run: Run, here: Path, ours: Path) -> None:
    solved = run("solve", SCENARIO, "--hardware", "ours", "--out", "p.json")
    assert solved.code == 0, solved.err
    plan = json.loads((here / "p.json").read_text(encoding="utf-8"))
    rows = [row for one in plan["workloads"] for row in one["allocations"]]
    assert {row["price_source"] for row in rows} == {"ours/catalog.yaml"}
    assert {(row["price_status"], row["price_as_of"]) for row in rows} == {("user", "2026-11-20")}
    assert run("verify", "p.json", "--hardware", "ours").code == 0
    assert run("verify", "p.json").code == 0  # it says which catalog was named
    frozen = run("catalog", "freeze", "--hardware", "ours", "--out", "ours.json", "-o", "json")
    assert json.loads(frozen.out)["sha256"] == plan["provenance"]["catalog"]["sha256"]
    assert run("verify", "p.json", "--hardware", "ours.json").code == 0
    (ours / "catalog.yaml").write_text(OURS.replace("0.50", "0.51"), encoding="utf-8")
    assert "error[other-catalog]" in run("verify", "p.json").out
    assert run("verify", "p.json", "--hardware", "ours.json").code == 0


def test_prices_of_the_command_line_are_recorded_and_repeated(run: Run, here: Path) -> None:
    (here / "mine.csv").write_text(
        f"offer,price_usd_per_hour_per_shape,as_of\n{OFFER},4,2026-11-20\n", encoding="utf-8"
    )
    flags = ("--prices", "mine.csv", "--price", "a100-sxm-40gb@spot=$0.40/h")
    assert run("solve", SCENARIO, *flags, "--out", "p.json").code == 0
    plan = json.loads((here / "p.json").read_text(encoding="utf-8"))
    assert plan["provenance"]["catalog"]["own_prices"] == ["--prices mine.csv", "--price a100-sxm-40gb@spot=$0.40/h"]
    assert plan["workloads"][0]["allocations"][0]["offer"] == OFFER
    assert run("verify", "p.json").code == 0
    assert run("verify", "p.json", "--prices", "mine.csv").code == 3
    listed = json.loads(run("catalog", "list", *flags, "--region", "af-*", "-o", "json").out)
    assert {row["usd_per_hour"] for row in listed if row["offer"] == OFFER} == {4.0}
    ways = [json.loads(run("candidates", SCENARIO, *asked, "-o", "json").out) for asked in ((), flags)]
    cheapest = [min(row["cost_usd"] for row in rows if row["offer"] == OFFER) for rows in ways]
    assert cheapest[1] < cheapest[0]
    asked = run("explain", "p.json", "--set", "horizon='1 year'")
    assert (asked.code, "error[not-a-scenario]" in asked.err) == (2, True)


def test_explaining_a_plan_asks_for_prices_from_elsewhere_again(
    run: Run, here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without them nothing was looked at: the plan cannot be checked, which is not to say that it does not hold."""
    mine = tmp_path_factory.mktemp("elsewhere") / "mine.csv"
    mine.write_text(f"offer,price_usd_per_hour_per_shape,as_of\n{OFFER},4,2026-11-20\n", encoding="utf-8")
    assert run("solve", SCENARIO, "--prices", str(mine), "--out", "p.json", "--allow-outside").code == 0
    blind = run("explain", "p.json")
    assert "warning[not-proven] feasible, not proven: the plan cannot be checked here: " in blind.err
    given = run("explain", "p.json", "--prices", str(mine))
    assert (given.code, "not-proven" in given.err) == (0, False)


@pytest.mark.parametrize(
    ("flags", "code", "reference"),
    [
        (("--price", "h100"), 2, "bad-price"),
        (("--price", "h101-sxm=$2/h"), 2, "unknown-device"),
        (("--prices", "nowhere.csv"), 3, "file-not-found"),
        (("--prices", "2000-01-01"), 3, "no-prices"),
        (("--prices", "2026-01-01", "--prices", "2026-01-02"), 2, "two-dates"),
        (("--hardware", "scenarios/gpt2-xl.yaml"), 3, "bad-json"),
    ],
)
def test_mistakes(run: Run, here: Path, flags: tuple[str, ...], code: int, reference: str) -> None:
    for command in (("catalog", "list"), ("candidates", SCENARIO)):
        answer = run(*command, *flags)
        assert (answer.code, answer.out) == (code, "")
        assert f"error[{reference}]" in answer.err
        assert "hint: " in answer.err


def test_old_prices_are_told_on_stderr_and_never_in_the_document(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, plans = [], []
    for day in (date(2026, 11, 21), date(2027, 11, 21)):
        monkeypatch.setattr(clock, "today", lambda day=day: day)
        answer = run("solve", SCENARIO, "-o", "json", "--out", "-")
        told.append(answer.err)
        plans.append(answer.out)
    assert plans[0] == plans[1]
    assert told[0] == ""
    assert "warning[stale-prices] catalog shipped: prices are 1,085 days old (as of 2024-12-01)" in told[1]
    assert "(as of 2024-12-01); run stands, totals may not\nhint: " in told[1]
    assert without_price_age(told[1]) == ""
    assert run("catalog", "list", "-q").err == ""
    assert "stale-prices" not in plans[0]


def test_frozen_text_goes_to_stdout_with_its_digest(run: Run, here: Path) -> None:
    frozen = json.loads(run("catalog", "freeze", "-o", "json").out)
    text = run("catalog", "freeze", "--out", "-").out
    assert json.loads(text)["sha256"] == frozen["sha256"]
    assert text.endswith("}\n")


def test_check_against_another_catalog(run: Run, here: Path) -> None:
    (here / "twice").mkdir()
    text = OURS + "devices: [{id: h100-sxm-80gb, peak_dense: {bf16: 1978 TFLOP/s}, status: seen, as_of: 2026-11-20}]\n"
    (here / "twice/catalog.yaml").write_text(text, encoding="utf-8")
    answer = run("catalog", "check", "--hardware", "twice", "--against", "default", "-o", "json")
    found = {problem["reference"] for problem in json.loads(answer.out)["problems"]}
    assert {"factor-of-two", "device-table", "sparse-peak"} <= found
    assert answer.code == 0
    assert "factor-of-two" not in run("catalog", "check", "--hardware", "twice", "-o", "csv").out


def test_an_import_is_a_catalog_at_once(run: Run, here: Path) -> None:
    (here / "lambda").mkdir()
    head = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region"
    (here / "lambda/vms.csv").write_text(f"{head}\ngpu_1x_a10,A10,1,0.77,,us-east-1\n", encoding="utf-8")
    assert run("catalog", "import", "skypilot", "lambda/vms.csv", "--into", "fresh").code == 0
    listed = json.loads(run("catalog", "list", "--hardware", "fresh", "-o", "json").out)
    mine = [row for row in listed if row["provider"] == "lambda"]
    assert [(row["usd_per_hour"], row["as_of"], row["status"]) for row in mine] == [
        (0.77, "2026-11-21", "date-unknown")
    ]
    assert len({row["provider"] for row in listed}) > 5
    (here / "fresh/catalog.yaml").write_text("# mine now\n" + OURS, encoding="utf-8")
    assert run("catalog", "import", "skypilot", "lambda/vms.csv", "--into", "fresh").code == 0
    assert (here / "fresh/catalog.yaml").read_text(encoding="utf-8").startswith("# mine now")


def test_a_price_of_devices_that_are_left_out_says_that_it_moves_nothing(run: Run, here: Path) -> None:
    flags = ("--set", "hardware.allow=[a100-*]", "--out", "-", "-q")
    quiet, idle = run("solve", SCENARIO, *flags), "moves nothing: hardware.allow"
    told = run("solve", SCENARIO, *flags[:-1], "--price", "v100-*=+10%")
    assert (told.code, idle in told.err) == (0, True)
    assert run("solve", SCENARIO, *flags, "--price", "v100-*=+10%").out == quiet.out
    assert idle not in run("solve", SCENARIO, *flags[:-1], "--price", "a100-*=+10%").err
    assert idle not in run("solve", SCENARIO, *flags[:-1], "--price", "lambda:*=+10%").err


def test_a_price_of_a_machine_is_told_by_the_device_and_one_of_terms_that_are_left_out_moves_nothing(
    run: Run, here: Path
) -> None:
    flags = ("--set", "hardware.allow=[h100-sxm-80gb]", "--out", "-")
    told = run("solve", SCENARIO, *flags, "--price", "aws:p5.48xlarge=$16/h").err
    assert "is of a machine, aws/p5.48xlarge: $2.00/h for each of its 8 devices, in " in told
    assert "moves nothing" not in told
    told = run("solve", SCENARIO, *flags, "--price", "h100-sxm@spot=$1/h").err
    assert "moves nothing: hardware.pricing leaves those terms out" in told
    told = run("solve", SCENARIO, *flags, "--price", "aws:p5.48xlarge@commitment_3y=$9/h").err
    assert "moves nothing" not in told  # advice and plan reserve ask for commitments, whatever pricing says
    told = run("compare", SCENARIO, SCENARIO, "--price", "aws:p5.48xlarge=$16/h").err
    assert told.count("is of a machine") == 1  # each side is loaded with it
    told = run("solve", SCENARIO, *flags, "--set", "hardware.providers=[aws]", "--price", "gcp:*=-10%").err
    assert "moves nothing: hardware.providers or hardware.exclude leaves those offers out" in told
    assert "is of a machine" not in told


@pytest.mark.parametrize("name", ["aws/p5.48xlarge", "aws:p5.48xlarge", "p5.48xlarge"])
def test_a_machine_is_shown_by_each_of_its_names(run: Run, here: Path, name: str) -> None:
    shown = run("catalog", "show", name)
    assert (shown.code, "aws/p5.48xlarge" in shown.out) == (0, True)
    assert "did you mean" in run("catalog", "show", "h1000").err
