"""Rows of the loads that the shipped table does not hold: open loops, several replicas, loads that nobody named."""

from __future__ import annotations

import dataclasses

import pytest

from planner.catalog.load import load_catalog
from planner.report.json import render
from planner.validate.serving import TOO_LATE, batch_of, predict_serving
from planner.validate.serving_entries import entries_of, serving_architecture
from planner.validate.serving_points import points_of
from planner.validate.serving_result import validate_serving
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_setup import splits_of, weight_format

CATALOG = load_catalog()
ROW = ServingRow(
    model="Llama-3.1-8B", n_params_b=8.03, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
    ffn_hidden=14336, vocab=128256, accelerator="H100-SXM", n_accel=1, tp=1, engine="vllm", engine_version="0.15",
    weight_precision="bf16", input_tokens=1000.0, output_tokens=200.0, scenario="closed loop", concurrency=16.0,
)  # fmt: skip


def predicted(**changes: object):  # type: ignore[no-untyped-def]
    return predict_serving([dataclasses.replace(ROW, **changes)], CATALOG)[0]  # type: ignore[arg-type]


def test_an_open_loop_that_can_be_followed_serves_what_is_offered() -> None:
    said = predicted(scenario="open loop, Poisson", request_rate=2.0, concurrency=None)
    assert said.output_tokens_per_s == pytest.approx(400.0, rel=0.03)  # less the last answers of the run
    assert said.tpot_s is not None
    assert said.ttft_s is not None
    busy = predicted(scenario="open loop, Poisson", request_rate=8.0, concurrency=None)
    assert busy.tpot_s > said.tpot_s
    assert busy.ttft_s > said.ttft_s


def test_an_open_loop_that_cannot_be_followed_serves_what_the_replica_can() -> None:
    said = predicted(scenario="open loop", request_rate=1e4, concurrency=None)
    assert said.output_tokens_per_s is not None
    assert 400.0 < said.output_tokens_per_s < 1e4 * 200


def test_replicas_share_the_clients_of_a_closed_loop() -> None:
    one, four = predicted(concurrency=16.0), predicted(concurrency=64.0, n_accel=4)
    assert four.tpot_s == pytest.approx(one.tpot_s)
    assert four.output_tokens_per_s == pytest.approx(4 * one.output_tokens_per_s)


@pytest.mark.parametrize(
    ("changes", "load"),
    [
        ({"scenario": "random prompts"}, "closed"),
        ({"scenario": "random prompts", "concurrency": None, "request_rate": 3.0}, "open"),
        ({"scenario": "random prompts", "concurrency": None}, "offline"),
    ],
)
def test_a_load_that_nobody_named_is_read_off_the_cells(changes: dict[str, object], load: str) -> None:
    row = dataclasses.replace(ROW, **changes)  # type: ignore[arg-type]
    assert row.load == load
    assert predict_serving([row], CATALOG)[0].output_tokens_per_s is not None


def test_degrees_that_multiply_to_more_than_the_devices_are_cut_groups() -> None:
    """SGLang's --tp 8 --dp 8 on eight devices: attention in eight groups of one, not sixty-four devices."""
    shape = {"n_accel": 8, "tp": 8, "model": "DeepSeek-V3.2", "layers": None, "hidden": None, "heads": None}
    row = dataclasses.replace(ROW, **shape, engine="sglang", weight_precision="fp8", dp=8)  # type: ignore[arg-type]
    device = CATALOG.devices["h100-sxm-80gb"]
    assert [
        (one.tp, one.dp, one.devices, one.replicas) for one in splits_of(row, serving_architecture(row), device)
    ] == [(1, 8, 8, 1)]
    even = dataclasses.replace(row, n_accel=16, tp=8, dp=2)
    assert [(one.tp, one.dp, one.devices) for one in splits_of(even, serving_architecture(even), device)] == [
        (8, 2, 16)
    ]


def test_a_short_run_of_many_clients_is_mostly_its_first_wave() -> None:
    """512 of 1,000 requests are sent at once: their first tokens wait for each other."""
    steady = predicted(scenario="closed loop", concurrency=512.0, input_tokens=300.0)
    short = predicted(scenario="vllm bench serve; fixed concurrency", concurrency=512.0, input_tokens=300.0)
    assert short.ttft_s > 1.5 * steady.ttft_s
    assert short.output_tokens_per_s == pytest.approx(steady.output_tokens_per_s)


def test_answers_that_vary_make_a_pile_longer() -> None:
    pile = {"scenario": "vllm bench serve; all requests at once", "concurrency": 256.0}
    alike, named, stated = (
        predicted(**pile), predicted(**{**pile, "scenario": pile["scenario"] + ", ShareGPT"}),
        predicted(**pile, output_variation=0.95),
    )  # fmt: skip
    assert named.output_tokens_per_s == stated.output_tokens_per_s
    assert named.output_tokens_per_s < 0.8 * alike.output_tokens_per_s
    assert predicted(**pile, output_variation=0.0).output_tokens_per_s == alike.output_tokens_per_s


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"concurrency": None}, "needs its number of clients"),
        ({"scenario": "open loop", "concurrency": None}, "needs its rate of requests"),
        ({"weight_precision": "mixed"}, "weight_precision 'mixed' is no format"),
        ({"kv_precision": "turbo"}, "kv_precision 'turbo' is no format"),
    ],
)
def test_a_cell_that_nobody_can_read_is_refused(changes: dict[str, object], words: str) -> None:
    said = predicted(**changes)
    assert said.tpot_s is None
    assert words in said.skipped


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Q6_K", "q6_k"), ("Q5_K - Medium", "q5_k_m"), ("UD-Q4_K_XL", "q4_k_m"), ("IQ4_XS", "iq4_xs"), ("Q8_0", "q8_0"),
        ("4.25 bpw", "int4"), ("6.5bpw", "q6_k"), ("8.0 bpw", "int8"), ("nf4", "int4"), ("4bit", "int4"),
        ("8-bit", "int8"), ("w4a8", "int4"), ("GPTQ-Int8", "int8"), ("bfloat16", "bf16"), ("float8_e4m3", "fp8"),
        ("MXFP8", "fp8"), ("NVFP4", "nvfp4"), ("auto", "bf16"), (None, "bf16"),
    ],
)  # fmt: skip
def test_formats_in_the_words_of_others(text: str | None, form: str) -> None:
    assert weight_format(dataclasses.replace(ROW, weight_precision=text)) == form


def test_a_tail_is_held_against_no_central_value() -> None:
    rows = [dataclasses.replace(ROW, ttft_ms=90.0, ttft_stat=stat) for stat in ("p99", "median (mean 99, p99 140)")]
    tail, middle = points_of(rows, batch_of(entries_of(rows, CATALOG)))
    assert "tail" in tail.left_out
    assert not middle.left_out


def test_prompts_and_answers_apart_have_the_band_of_that() -> None:
    whole, apart = predicted(), predicted(scenario="closed loop, fixed concurrency, disagg")
    assert apart.tpot_s == whole.tpot_s
    assert apart.bands["tpot_s"].p90 / apart.bands["tpot_s"].p10 > whole.bands["tpot_s"].p90 / whole.bands["tpot_s"].p10


def test_a_run_that_no_rate_keeps_in_time_has_no_figure_and_costs_its_table_nothing() -> None:
    late = dataclasses.replace(
        ROW, model="llama3.1-405b", scenario="MLPerf v5.1 Interactive closed", accelerator="A100-80GB-SXM", n_accel=16,
        tp=8, pp=2, layers=126, hidden=16384, heads=128, ffn_hidden=53248, n_params_b=405.0, concurrency=None,
        input_tokens=None, output_tokens=None, weight_precision="bf16", output_tokens_per_s_total=100.0,
    )  # fmt: skip
    rows = [late, dataclasses.replace(ROW, tpot_ms=9.0)]
    said = predict_serving(rows, CATALOG)
    assert said[0].skipped == TOO_LATE
    assert said[1].tpot_s
    assert render(validate_serving(rows, entries_of(rows, CATALOG), said, own_rows=True).document())


def test_a_prompt_by_itself_is_as_long_as_it_is_and_a_depth_is_read() -> None:
    bench = {"engine": "llama.cpp", "weight_precision": "Q4_K_M", "concurrency": 1.0, "scenario": "llama-bench"}
    alone = predicted(**bench, input_tokens=8192.0, output_tokens=None)
    both = predicted(**bench, input_tokens=8192.0, output_tokens=8192.0)
    assert alone.prefill_tokens_per_s == both.prefill_tokens_per_s
    assert alone.prefill_tokens_per_s != predicted(**bench, input_tokens=512.0, output_tokens=None).prefill_tokens_per_s
    deep = predicted(**(bench | {"scenario": "llama-bench at a depth"}), input_tokens=32768.0, output_tokens=128.0)
    empty = predicted(**bench, input_tokens=32768.0, output_tokens=128.0)
    assert deep.output_tokens_per_s < 0.8 * empty.output_tokens_per_s
