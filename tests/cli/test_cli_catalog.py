"""`plan catalog`, `plan models` and `plan schema` on what is shipped."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Run


def rows(run: Run, *arguments: str) -> list[dict[str, Any]]:
    answer = run("catalog", "list", *arguments, "-o", "json")
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = json.loads(answer.out)
    return found


def test_offers_are_sorted_by_what_compute_costs(run: Run) -> None:
    known = [row["usd_per_pflop_hour"] for row in rows(run) if row["usd_per_pflop_hour"] is not None]
    assert known == sorted(known)
    assert "sorted by $ per hour of a dense 16-bit PFLOP/s" in run("catalog", "list", "--device", "t4").out


def test_filters(run: Run) -> None:
    found = rows(run, "--device", "a100-*", "--region", "us-*", "--pricing", "on_demand")
    assert found
    assert {row["price_model"] for row in found} == {"on_demand"}
    assert all(row["device"].startswith("a100-") for row in found)
    assert {row["country"] for row in found if not row["region"].startswith("us-")} == {"US"}
    assert "eastus" in {row["region"] for row in found}  # as in a scenario, the country stands before the region
    assert {row["provider"] for row in rows(run, "--region", "gcp/us-*")} == {"gcp"}
    names = [{row["device"] for row in rows(run, "--device", name)} for name in ("h100-sxm", "H100", "h100-sxm-80gb")]
    assert names[0] == names[2] == {"h100-sxm-80gb"} <= names[1]


@pytest.mark.parametrize(
    ("flag", "word", "hint"),
    [
        ("--pricing", "reserved", "one of on_demand, spot"),
        ("--pricing", "spott", "did you mean spot?"),
        ("--device", "h100-smx", "did you mean"),
        ("--region", "us-est-1", "did you mean 'us-east-1'?"),
        ("--region", "mars", "--group-by region"),
    ],
)
def test_words_of_nothing_are_no_empty_market(run: Run, flag: str, word: str, hint: str) -> None:
    """ "0 offers", and exit code 0."""
    answer = run("catalog", "list", flag, word)
    assert (answer.code, answer.out) == (2, "")
    assert word in answer.err
    assert hint in answer.err


def test_suspect_prices_are_left_out_unless_asked(run: Run) -> None:
    assert not any(row["quality"] for row in rows(run))
    assert any(row["quality"] for row in rows(run, "--allow-suspect"))


@pytest.mark.parametrize("key", ["device", "provider", "region"])
def test_group_by_shows_the_best_of_each(run: Run, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    from planner.catalog.load import load_catalog
    from planner.report import catalog_view as report

    every = report.offer_rows(load_catalog(), report.Filter())
    shown = list(csv.DictReader(run("catalog", "list", "--group-by", key, "-o", "csv").out.splitlines()))
    assert len(shown) == len({row[key] for row in every})
    for row in shown:
        best = next(other for other in every if other[key] == row[key])
        assert row["offer"] == best["offer"]


def test_show_gives_source_date_and_status(run: Run) -> None:
    sheet = json.loads(run("catalog", "show", "H100", "-o", "json").out)
    assert sheet["id"] == "h100-sxm-80gb"
    facts = {row["fact"]: row for row in sheet["facts"]}
    for name in ("memory_bytes", "memory_bandwidth_bytes_per_s", "peak_flop_per_s.bf16", "tdp_w"):
        assert facts[name]["source"]
        assert facts[name]["as_of"]
        assert facts[name]["status"]
    assert facts["peak_flop_per_s.bf16"]["value"] == 989e12


def test_large_figures_have_no_exponent(run: Run) -> None:
    assert "15,000 TFLOP/s" in run("catalog", "show", "gb300").out
    assert "e+0" not in run("models", "show", "llama-3.1-405b").out


def test_a_vendors_claim_stands_beside_what_the_model_says(run: Run) -> None:
    text = run("catalog", "show", "sn40l").out
    assert "10x faster than GPUs" in text
    assert "not for training" in text
    sheet = json.loads(run("catalog", "show", "sn40l", "-o", "json").out)
    against = {row["device"]: row for row in sheet["against"]}
    assert 0.6 < against["h100-sxm-80gb"]["peak_16_bit"] < 0.7  # 638 of 989 TFLOP/s
    assert against["a100-sxm-80gb"]["peak_16_bit"] == pytest.approx(638 / 312)


def test_show_takes_shapes_and_offers_and_refuses_the_rest(run: Run) -> None:
    offer = rows(run, "--device", "a100-sxm-40gb")[0]
    assert json.loads(run("catalog", "show", offer["shape"], "-o", "json").out)["kind"] == "shape"
    shown = json.loads(run("catalog", "show", offer["offer"], "-o", "json").out)
    assert shown["kind"] == "offer"
    assert all(row["source"] for row in shown["facts"])
    owned = [json.loads(run("catalog", "show", name, "-o", "json").out) for name in ("dgx-h100", "onprem/dgx-h100")]
    assert owned[0] == owned[1]  # as scenarios name what one owns
    answer = run("catalog", "show", "h10")
    assert answer.code == 3
    assert answer.err.startswith("error[unknown-id] ")


def test_the_shipped_catalog_has_no_error(run: Run) -> None:
    answer = run("catalog", "check", "-o", "json")
    assert answer.code == 0
    assert json.loads(answer.out)["errors"] == 0


def test_a_folder_that_is_no_catalog(run: Run, tmp_path: Any) -> None:
    answer = run("catalog", "list", "--hardware", str(tmp_path))
    assert answer.code == 3
    assert answer.err.startswith("error[")


def test_models_list_has_every_preset(run: Run) -> None:
    from planner.architecture.load import list_presets

    shown = list(csv.DictReader(run("models", "list", "-o", "csv").out.splitlines()))
    assert tuple(row["name"] for row in shown) == list_presets()
    assert next(row["parameters"] for row in shown if row["name"] == "llama-3.1-8b") == "8030261248"


def test_models_show(run: Run) -> None:
    """Cache bytes a token: Llama 3.1 8B 32 layers x 2 x 8 heads x 128 x 2 = 131,072; DeepSeek-V3 61 x 576 x 2."""
    facts = json.loads(run("models", "show", "llama-3.1-8b", "-o", "json").out)
    assert facts["kv_bytes_per_token"]["bf16"] == 131_072
    assert facts["kv_bytes_per_token"]["fp8"] == 65_536
    assert sum(facts["parts"].values()) == facts["parameters"] == 8_030_261_248
    assert facts["training_flop_per_token"] == 3 * facts["forward_flop_per_token"]
    mla = json.loads(run("models", "show", "deepseek-v3", "-o", "json").out)
    assert mla["kv_bytes_per_token"]["bf16"] == 61 * 576 * 2
    assert mla["active_parameters"] < mla["parameters"]


def test_equations_that_are_named_exist(run: Run) -> None:
    import planner.equations.activations
    import planner.equations.flops
    import planner.equations.memory
    import planner.equations.parameters
    import planner.equations.rules
    import planner.equations.serving_memory  # noqa: F401
    from planner.equations.registry import REGISTRY

    documents = [
        json.loads(run("memory", "gpt2-xl", "-o", "json").out),
        json.loads(run("memory", "gpt2-xl", "--serve", "-o", "json").out),
        json.loads(run("models", "show", "gpt2-xl", "-o", "json").out),
    ]
    named = {name for document in documents for name in document["equations"]}
    named |= {rule["equation"] for document in documents[:2] for rule in document["rules"]}
    assert named <= set(REGISTRY)


@pytest.mark.parametrize("which", ["scenario", "plan", "frontier", "report"])
def test_schemas_are_schemas(run: Run, which: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema", which).out))


def test_a_catalog_is_named_by_itself_too(run: Run, here: Path) -> None:
    assert run("catalog", "freeze", "--out", "own.json").code == 0
    assert run("catalog", "check", "own.json").out == run("catalog", "check", "--hardware", "own.json").out
    assert run("catalog", "freeze", "own.json").out == run("catalog", "freeze").out
    assert "error[file-not-found]" in run("catalog", "check", "nothere").err
    twice = run("catalog", "check", "own.json", "--hardware", "own.json")
    assert (twice.code, "named twice" in twice.err) == (2, True)


def test_offers_of_a_provider(run: Run) -> None:
    rows = json.loads(run("catalog", "list", "--provider", "Lambda", "--provider", "ver*", "-o", "json").out)
    assert {row["provider"] for row in rows} == {"lambda", "verda"}
    missing = run("catalog", "list", "--provider", "lamda")
    assert (missing.code, "did you mean 'lambda'?" in missing.err) == (2, True)


def test_a_country_by_its_name_is_told_its_letters(run: Run) -> None:
    answer = run("catalog", "list", "--region", "germany")
    assert (answer.code, "by their two letters: de" in answer.err) == (2, True)
