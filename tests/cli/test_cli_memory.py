"""`plan memory`: the founding question, and answers that are the largest or least that do."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from planner.architecture.load import load_model
from planner.catalog.load import load_catalog
from planner.memory import cards, question, serving
from tests.cli.conftest import Run, check_golden

GPT2 = ("memory", "gpt2-xl", "--batch", "32", "--sequence", "1000")


def ask(run: Run, *arguments: str) -> dict[str, Any]:
    answer = run("memory", *arguments, "-o", "json")
    assert answer.code == 0, answer.err
    document: dict[str, Any] = json.loads(answer.out)
    return document


def test_the_minimum_memory_to_train_gpt2_xl(run: Run) -> None:
    """Figures worked by hand from Φ = 1,557,611,200, L = 48, h = 1600, a = 25, V = 50257, b = 32, s = 1000.

    States 16 Φ; activations L s b h (34 + 5 a s / h), 34 L s b h with flash attention, 2 L s b h + one live
    layer with full recomputation; logits 6 b s V; 0.3 GiB of libraries; 5 % of the moving part.
    """
    document = ask(run, *GPT2[1:])
    columns = {column["name"]: column for column in document["columns"]}
    states = 16 * 1_557_611_200
    layer = {"eager": 1000 * 32 * 1600 * (34 + 5 * 25 * 1000 / 1600), "flash": 1000 * 32 * 1600 * 34}
    kept = {
        "no recompute": 48 * layer["eager"],
        "flash attention": 48 * layer["flash"],
        "full recompute": 48 * 2 * 1000 * 32 * 1600 + layer["eager"],
        "flash + full": 48 * 2 * 1000 * 32 * 1600 + layer["flash"],
    }
    for name, activations in kept.items():
        expected = states + 1.05 * (activations + 6 * 32 * 1000 * 50257) + 0.3 * 2**30
        assert columns[name]["total_bytes"] == pytest.approx(expected, rel=1e-12)
    shown = [round(columns[name]["total_bytes"] / 1e9, 1) for name in kept]
    assert shown == [324.7, 123.1, 46.6, 42.4]
    assert document["minimum"]["column"] == "flash + full"


def test_other_rules_stand_beside(run: Run) -> None:
    rules = {rule["rule"]: rule["bytes"] for rule in ask(run, *GPT2[1:])["rules"]}
    assert rules["16·Φ (ZeRO)"] == 16 * 1_557_611_200
    assert rules["12·h·b·s·L values (founding)"] == 2 * 12 * 1600 * 32 * 1000 * 48
    assert round(rules["4 × weights (accelerate estimate-memory)"] / 1e9, 1) == 12.5


def test_largest_batch_on_32_gb(run: Run) -> None:
    document = ask(run, *GPT2[1:], "--fit", "32GB", "--solve-for", "batch")
    answer = {entry["column"]: entry["value"] for entry in document["answer"]}
    assert answer["full recompute"] == 11
    assert answer["no recompute"] is None
    assert document["cards"][0]["usable_bytes"] == 32 * 2**30 - 1.5e9


def test_terms_sum_to_the_total(run: Run) -> None:
    for arguments in (GPT2[1:], ("deepseek-v2-lite", "--tp", "2", "--pp", "3", "--ep", "4", "--dp", "2")):
        for column in ask(run, *arguments)["columns"]:
            assert sum(column["terms_bytes"].values()) == pytest.approx(column["total_bytes"], rel=1e-12)


@pytest.mark.parametrize("model", ["gpt2-xl", "llama-3.1-8b", "mixtral-8x7b"])
def test_layers_and_the_rest_add_up(run: Run, model: str) -> None:
    document = ask(run, model, "--batch", "2", "--sequence", "512", "--per-layer")
    rows, terms = document["layers"], document["columns"][1]["terms_bytes"]
    assert sum(row["count"] * row["parameters"] for row in rows) == document["model"]["parameters"]
    states = sum(terms[name] for name in ("weights", "gradients", "optimizer"))
    assert sum(row["count"] * row["states_bytes"] for row in rows) == pytest.approx(states)
    kept = sum(row["count"] * row["flash_bytes"] for row in rows[:-1])
    assert kept == pytest.approx(terms["activations"])


@pytest.mark.parametrize("goal", ["batch", "context"])
@pytest.mark.parametrize("variant", question.DEFAULT_VARIANTS, ids=lambda variant: variant.name)
def test_one_more_would_not_fit(goal: str, variant: question.Variant) -> None:
    asked = question.TrainingQuestion(arch=load_model("llama-3.2-1b"), sequence_length=2048, batch=2)
    card = cards.marketed_card(40)
    document = question.training_document(asked, cards=[card], solve_for=goal)
    value = next(entry["value"] for entry in document["answer"] if entry["column"] == variant.name)
    key = {"batch": "batch", "context": "sequence_length"}[goal]
    assert asked.total_bytes(variant, **{key: value}) <= card.usable_bytes
    assert asked.total_bytes(variant, **{key: value + 1}) > card.usable_bytes


def test_fewest_devices_are_the_fewest() -> None:
    asked = question.TrainingQuestion(arch=load_model("llama-3.1-8b"), sequence_length=2048)
    card, variant = cards.marketed_card(24), question.DEFAULT_VARIANTS[3]
    document = question.training_document(asked, cards=[card], solve_for="devices")
    entry = next(entry for entry in document["answer"] if entry["column"] == variant.name)
    stage = question.SHARDING.index(entry["note"].removeprefix("sharding "))
    assert asked.total_bytes(variant, dp=entry["value"], sharding=stage) <= card.usable_bytes
    for other in range(4):
        assert asked.total_bytes(variant, dp=entry["value"] - 1, sharding=other) > card.usable_bytes


def test_devices_without_any_answer_say_so() -> None:
    asked = question.TrainingQuestion(arch=load_model("gpt2-xl"), sequence_length=1000, batch=32)
    document = question.training_document(asked, cards=[cards.marketed_card(16)], solve_for="devices")
    assert document["answer"][0]["value"] is None
    assert "does not fit" in document["answer"][0]["note"]


def test_serving_counts_cache_by_architecture(run: Run) -> None:
    """Llama 3.1 70B: 2 · 80 layers · 8 heads · 128 · 2 bytes = 327,680 bytes a token; fp8 halves it."""
    document = ask(run, "llama-3.1-70b", "--serve", "--context", "8192", "--concurrency", "32", "--tp", "4")
    assert document["kv_bytes_per_token"] == 327_680
    cache = document["columns"][0]["terms_bytes"]["kv_cache"]
    assert cache == 327_680 / 4 * 8192 * 32
    halved = ask(run, "llama-3.1-70b", "--serve", "--context", "8192", "--kv-cache", "fp8")
    assert halved["kv_bytes_per_token"] == 163_840


@pytest.mark.parametrize("weights", ["bf16", "int4"])
def test_serving_answers_are_the_largest(weights: str) -> None:
    asked = serving.ServingQuestion(arch=load_model("llama-3.1-8b"), context=4096, concurrency=8, formats=(weights,))
    card = cards.marketed_card(24)
    longest = serving.serving_document(asked, cards=[card], solve_for="context")["answer"][0]["value"]
    assert asked.fits(weights, card, context=longest)
    assert not asked.fits(weights, card, context=longest + serving_page(asked))
    most = serving.serving_document(asked, cards=[card], solve_for="batch")["answer"][0]["value"]
    assert asked.fits(weights, card, concurrency=most)
    assert not asked.fits(weights, card, concurrency=most + 1)


def test_what_fits_on_a_card_is_shown_with_the_workspace_that_it_has(run: Run) -> None:
    """27.11 GB a device "fit" on 23.2 GB: the table told the workspace of 80 GB beside what fits on 24."""
    asked = ("llama-3.3-70b", "--serve", "--weights", "int4", "--context", "2300", "--tp", "2")
    for held in (2, 3):
        document = ask(run, *asked, "--concurrency", str(held), "--fit", "rtx-3090")
        (card,), (column,) = document["cards"], document["columns"]
        assert column["total_bytes"] == pytest.approx(sum(column["terms_bytes"].values()))
        assert (column["total_bytes"] <= card["usable_bytes"]) == card["columns"]["int4"]["fits"]
        for way in (document["ways_out"] or {"changes": []})["changes"]:
            assert (way["total_bytes"] <= card["usable_bytes"]) == bool(way["fits_on"])
    text = run("memory", *asked, "--concurrency", "3").out
    assert "80 GB and up" in text


def serving_page(asked: serving.ServingQuestion) -> int:
    from planner.estimate.serving import PAGE_TOKENS

    return PAGE_TOKENS


def test_bits_that_fit(run: Run) -> None:
    """16-bit weights of 8 B parameters need more than a 16 GB card has; 8-bit ones do not fit beside 90 %, 4-bit do."""
    document = ask(run, "llama-3.1-8b", "--serve", "--context", "2048", "--fit", "16GB", "--solve-for", "bits")
    (entry,) = document["answer"]
    assert "bf16" not in entry["note"]
    assert "int4" in entry["note"]


@pytest.mark.parametrize("width", [80, 120])
def test_golden(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    check_golden(f"memory-gpt2-xl-{width}.txt", run(*GPT2, "--fit", "32GB", "--solve-for", "batch", "--per-layer").out)
    serve = ("--serve", "--context", "8192", "--concurrency", "32", "--tp", "4", "--per-layer")
    check_golden(f"memory-serve-{width}.txt", run("memory", "llama-3.1-70b", *serve).out)


def test_formats_agree(run: Run) -> None:
    document = ask(run, *GPT2[1:])
    rows = list(csv.DictReader(io.StringIO(run(*GPT2, "-o", "csv").out)))
    totals = {row["column"]: float(row["bytes"]) for row in rows if row["term"] == "total"}
    assert totals == {column["name"]: column["total_bytes"] for column in document["columns"]}
    assert "| total |" in run(*GPT2, "-o", "md").out


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        (("gpt2-xl", "--train", "--serve"), "two-questions"),
        (("gpt2-xl", "--train", "--context", "1"), "wrong-flag"),
        (("gpt2-xl", "--serve", "--batch", "1"), "wrong-flag"),
        (("gpt2-xl", "--solve-for", "batch"), "no-card"),
        (("gpt2-xl", "--fit", "80GB", "--solve-for", "bits"), "unknown-goal"),
        (("gpt2-xl", "--tp", "3"), "out-of-range"),
        (("gpt2-xl", "--pp", "49"), "out-of-range"),
        (("gpt2-xl", "--ep", "2"), "out-of-range"),
        (("gpt2-xl", "--serve", "--ep", "2"), "out-of-range"),
        (("mixtral-8x7b", "--serve", "--tp", "4", "--ep", "3"), "out-of-range"),
        (("mixtral-8x7b", "--serve", "--ep", "8"), "out-of-range"),  # eight ranks on one device
        (("gpt2-xl", "--devices", "6", "--tp", "5", "--dp", "2"), "wrong-split"),
        (("gpt2-xl", "--optimizer", "adamm"), "unknown-optimizer"),
        (("gpt2-xl", "--serve", "--weights", "fp7"), "unknown-format"),
        (("gpt2-xl", "--fit", "80"), "missing-unit"),
        (("gpt2-xl", "--fit", "1MB"), "out-of-range"),
        (("gpt2-xl", "--lora-base", "nf4"), "no-adapters"),
        (("gpt2-xl", "--serve", "--lora", "8"), "wrong-flag"),
    ],
)
def test_questions_that_make_no_sense(run: Run, arguments: tuple[str, ...], reference: str) -> None:
    answer = run("memory", *arguments)
    assert answer.code == 2
    assert answer.err.startswith(f"error[{reference}] ")
    assert not answer.out


def test_a_card_by_its_name(run: Run) -> None:
    card = ask(run, "gpt2-xl", "--fit", "h100-sxm-80gb")["cards"][0]
    assert card["label"] == "h100-sxm-80gb"
    assert card["capacity_bytes"] == 80 * 2**30


@pytest.mark.parametrize("use", ["training", "serving"])
def test_every_device_of_the_catalog_that_is_used_is_on_one_card(use: str) -> None:
    catalog = load_catalog()
    listed = [name for one in cards.catalog_cards(catalog, use) for name in one.devices]
    assert sorted(listed) == sorted(name for name, device in catalog.devices.items() if use in device.uses)
    for one in cards.catalog_cards(catalog, use):
        assert {catalog.devices[name].memory_bytes for name in one.devices} == {one.capacity_bytes}


def test_a_13b_is_told_the_larger_cards_and_the_fewest_of_the_smaller(run: Run) -> None:
    """16 bytes of each of 13 billion parameters are 208 GB: a card of 288 GB holds them, and three of 80 GB share them.

    ZeRO (arXiv 1910.02054, figure 1): stage 1 keeps 4 Φ + 12 Φ / N, stage 2 2 Φ + 14 Φ / N, stage 3 16 Φ / N.
    """
    document = ask(run, "llama-2-13b")
    fits = {
        name for one in document["cards"] if any(c["fits"] for c in one["columns"].values()) for name in one["devices"]
    }
    assert {"b300-sxm", "mi355x", "mi325x"} <= fits
    assert not fits & {"h100-sxm-80gb", "h200-sxm", "b200-sxm"}
    fewest = {one["card"]: one["devices"] for one in document["ways_out"]["more_devices"]}
    states, usable = 13_015_864_320, 80 * 2**30 - 1.5e9
    for stage, kept in (("zero-1", (4, 12)), ("zero-2", (2, 14))):
        found = fewest["80 GB: h100-sxm-80gb +7"][stage]
        assert states * (kept[0] + kept[1] / found) < usable
        assert states * (kept[0] + kept[1] / max(1, found - 2)) > usable - 6e9
    text = run("memory", "llama-2-13b").out
    assert "Way out: devices, the fewest" in text
    assert "8 devices that none here rents out" in text
    assert "| Way out: one change |" in run("memory", "llama-2-13b", "-o", "md").out


@pytest.mark.parametrize("stage", ["zero-1", "zero-2", "zero-3"])
def test_as_many_devices_as_are_told_fit_and_one_fewer_do_not(run: Run, stage: str) -> None:
    told = ask(run, "llama-2-13b", "--fit", "80GB")["ways_out"]["more_devices"][0]["devices"][stage]
    for devices, fits in ((told, True), (told - 1, False)):
        flags = ("--devices", str(devices), "--sharding", stage, "--fit", "80GB")
        assert ask(run, "llama-2-13b", *flags)["cards"][0]["columns"]["flash + full"]["fits"] is fits


@pytest.mark.parametrize(
    "asked",
    [
        ("llama-2-13b",),
        ("gpt2-xl", "--batch", "64", "--recompute", "none", "--attention", "flash"),
        ("llama-2-13b", "--lora", "8", "--batch", "40"),
        ("llama-3.1-8b", "--serve", "--weights", "bf16", "--concurrency", "40"),
    ],
)
def test_each_change_asked_for_with_its_flags_takes_what_was_told(run: Run, asked: tuple[str, ...]) -> None:
    card = ("--fit", "24GB")
    changes = ask(run, *asked, *card)["ways_out"]["changes"]
    assert len(changes) >= 2
    for change in changes:
        flags = change["flags"].split()
        named = [text for text in flags if text.startswith("--")]
        kept = [text for index, text in enumerate(asked) if text not in named and asked[index - 1] not in named]
        document = ask(run, *kept, *flags, *card)
        totals = [column["total_bytes"] for column in document["columns"]]
        assert any(total == pytest.approx(change["total_bytes"], rel=1e-12) for total in totals), change
        fits = any(column["fits"] for column in document["cards"][0]["columns"].values())
        assert fits is bool(change["fits_on"]), change


def test_nothing_is_offered_where_all_fits(run: Run) -> None:
    document = ask(run, "llama-3.2-1b", "--fit", "80GB")
    assert document["ways_out"] is None
    assert "Way out" not in run("memory", "llama-3.2-1b", "--fit", "80GB").out


def test_experts_are_counted_in_whole_groups(run: Run) -> None:
    """Eight ranks share the experts: devices come in eights."""
    ways = ask(run, "mixtral-8x7b", "--ep", "8", "--dp", "8", "--fit", "80GB")["ways_out"]
    assert all(count is None or count % 8 == 0 for count in ways["more_devices"][0]["devices"].values())


def test_a_size_without_a_unit_names_its_flag(run: Run) -> None:
    answer = run("memory", "gpt2-xl", "--fit", "80")
    assert (answer.code, "--fit needs a unit of memory" in answer.err) == (2, True)


def test_counts_are_written_as_in_scenarios(run: Run) -> None:
    written = run("memory", "llama-3.1-8b", "--serve", "--context", "128k", "--concurrency", "2")
    assert written.out == run("memory", "llama-3.1-8b", "--serve", "--context", "128000", "--concurrency", "2").out
    assert "2 requests of 128,000 tokens" in written.out
    for flag, text, told in (
        ("--context", "128K", 'did you mean "128k"'),
        ("--batch", "0", "not in the range from 1 to"),
        ("--batch", "1.5", "whole number"),
        ("--sequence", "2B", "not in the range"),
    ):
        answer = run("memory", "llama-3.1-8b", flag, text)
        assert (answer.code, told in " ".join(answer.err.split())) == (2, True), answer.err


def test_memory_of_serving_is_that_of_the_engine(run: Run) -> None:
    """plan memory took no engine: all was as vLLM has it."""
    asked = (
        "memory",
        "llama-3.1-70b",
        "--serve",
        "--tp",
        "4",
        "--context",
        "8192",
        "--fit",
        "h100-sxm-80gb",
        "-o",
        "json",
    )
    most = {}
    for engine in ("vllm", "sglang", "llama.cpp"):
        told = json.loads(run(*asked, "--engine", engine).out)
        assert told["asked"]["engine"] == engine
        most[engine] = told["cards"][0]["columns"]["bf16"]["largest_batch"]
    assert most["vllm"] == json.loads(run(*asked).out)["cards"][0]["columns"]["bf16"]["largest_batch"]
    assert most["vllm"] < most["sglang"] < most["llama.cpp"]
    assert "did you mean vllm?" in run("memory", "gpt2", "--serve", "--engine", "vlm").err
    assert "vllm serves no q4_k_m" in run("memory", "gpt2", "--engine", "vllm", "--weights", "q4_k_m").err
