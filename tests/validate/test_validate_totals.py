"""Whole runs: what a row of budgets says, what is filled in, and how far the coarse tier is off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.api import load_catalog
from planner.catalog.model import Catalog
from planner.estimate.frameworks import FRAMEWORKS
from planner.estimate.resolve_run import DEFAULT_SCALE_LOSS
from planner.validate import totals_inputs as inputs
from planner.validate.rows import TotalsRow, shipped_totals
from planner.validate.totals import TIERS, Run, fitted_scale_loss, left_out_errors, predict_totals, runs_of

LLAMA = TotalsRow(
    model="Llama 2 7B", params_b=6.74, active_params_b=6.74, tokens_b=2000, accelerator="A100-80GB-SXM", n_accel="256"
)


@pytest.fixture(scope="module")
def world() -> Catalog:
    return load_catalog()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("16", 16),
        ("2048 (recalled)", 2048),
        ("1,024", 1024),
        ("64-512 (varied)", 128),
        ("1024 (992 in use, 8x TP seen in checkpoints)", 1024),
        ("440 + 216 + 256 (recalled)", 440),
        ("", None),
        (None, None),
        ("about a hundred", None),
        ("0", None),
    ],
)
def test_counts_are_read_from_their_text(text: str | None, count: int | None) -> None:
    assert inputs.stated_count(text) == count


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("A100-80GB-SXM", "a100-sxm-80gb"),
        ("A100-40GB", "a100-sxm-40gb"),
        ("A100-40GB-PCIe", "a100-pcie-40gb"),
        ("H100-80GB-SXM", "h100-sxm-80gb"),
        ("H100", "h100-sxm-80gb"),
        ("H800", "h100-sxm-80gb"),
        ("H200", "h200-sxm"),
        ("V100-32GB-SXM2", "v100-sxm3-32gb"),
        ("TPU-v4", "tpu-v4"),
        ("TPU v5p", "tpu-v5p"),
        ("B200", "b200-sxm"),
        ("GB200", "gb200-nvl72"),
        ("MI300X", "mi300x"),
        ("A100-40GB then H100", None),
        ("abacus", None),
    ],
)
def test_devices_are_found_by_product_name(text: str, device: str | None, world: Catalog) -> None:
    found = inputs.device_named(text, world)
    assert (found.id if found else None) == device


@pytest.mark.parametrize(
    ("name", "total", "active", "preset"),
    [
        ("Llama 2 7B", 6.74, None, "llama-2-7b"),
        ("Llama 3.1 70B", 70.55, None, "llama-3.1-70b"),
        ("LLaMA 1 65B", 65.2, None, "llama-65b"),
        ("Llama 4 Scout", 109, 17, "llama-4-scout-text"),
        ("DeepSeek-V3 pre-training", 671, 37, "deepseek-v3"),
        ("GPT-2 124M (llm.c)", 0.124, None, "gpt2"),
        ("our own", 6.738, None, "llama-2-7b"),
        ("our own", 6.74, None, "codellama-7b"),  # 16 words more: the same shape, and nearer
        ("Llama 2 7B", 30.0, None, "mpt-30b"),  # the size decides when the name cannot be
    ],
)
def test_the_shape_of_a_model_comes_from_its_name_or_size(
    name: str, total: float, active: float | None, preset: str
) -> None:
    row = replace(LLAMA, model=name, params_b=total, active_params_b=active)
    assert inputs.architecture_of(row).name == preset


@pytest.mark.parametrize("billions", [0.355, 0.774, 1.1, 5.0, 20.7, 300.0])
def test_a_model_that_nobody_shipped_gets_a_typical_shape(billions: float) -> None:
    arch = inputs.architecture_of(replace(LLAMA, model="x", params_b=billions, active_params_b=billions))
    assert arch.parameters == pytest.approx(billions * 1e9, rel=0.06)
    assert arch.layers


def test_a_typical_count_takes_about_a_month(world: Catalog) -> None:
    device = world.devices["a100-sxm-80gb"]
    count = inputs.typical_count(LLAMA, device, world.efficiencies["ampere"].mfu)
    hours = (predict_totals([LLAMA], world, "rule")[0].device_hours or 0) / count
    assert count == 256
    assert 730 / 1.5 < hours < 730 * 1.5


def test_the_coarse_tier_is_the_rule(world: Catalog) -> None:
    assert predict_totals([LLAMA], world, "rule")[0].device_hours == pytest.approx(13.3 * 2000 * 6.74)


def test_rows_without_what_is_needed_are_skipped_by_name(world: Catalog) -> None:
    rows = [replace(LLAMA, tokens_b=None), replace(LLAMA, params_b=None), replace(LLAMA, accelerator="A100 then H100")]
    for tier in TIERS:
        said = [prediction.skipped for prediction in predict_totals(rows, world, tier)]
        assert said[:2] == ["no tokens", "no parameters"]
        assert "no single device" in (said[2] or "")


@pytest.mark.parametrize("tier", TIERS)
def test_predictions_read_neither_measurements_nor_remarks(tier: str, world: Catalog) -> None:
    rows = shipped_totals()
    blank = [replace(row, id=None, gpu_hours=None, days=None, source=None, notes=None, evidence=None, line=0)
             for row in rows]  # fmt: skip
    assert predict_totals(rows, world, tier) == predict_totals(blank, world, tier)


@pytest.mark.parametrize("tier", TIERS)
def test_terms_sum_to_the_device_hours(tier: str, world: Catalog) -> None:
    for prediction in predict_totals(shipped_totals(), world, tier):
        assert (prediction.device_hours is None) == (prediction.skipped is not None)
        if prediction.device_hours:
            assert sum(prediction.terms.values()) == pytest.approx(prediction.device_hours)


def test_the_analytic_tier_runs_on_the_count_of_the_row_with_failures_on_top(world: Catalog) -> None:
    found = predict_totals([LLAMA], world)[0]
    assert (found.devices, found.count_source, found.model) == (256, "stated", "llama-2-7b")
    split = found.layout
    assert split["dp"] * split["tp"] * split["pp"] * split["cp"] == 256
    assert found.terms["restarts"] > 0
    odd = predict_totals([replace(LLAMA, n_accel="250")], world)[0]  # 250 = 2 x 5^3 divides no batch
    assert odd.devices in (250, 248, 128)


def mean_error(tier: str, world: Catalog) -> tuple[float, int]:
    rows = shipped_totals()
    errors = [
        abs(said.device_hours / row.device_hours - 1)
        for row, said in zip(rows, predict_totals(rows, world, tier), strict=True)
        if row.device_hours and said.device_hours
    ]
    return float(np.mean(errors)), len(errors)


def test_the_coarse_tier_reaches_its_figure(world: Catalog) -> None:
    mean, runs = mean_error("rule", world)
    assert runs >= 16
    assert mean <= 0.25


# ---- what size costs


def test_a_loss_that_is_there_is_found() -> None:
    runs = [Run(f"r{hosts}", "a", hosts, 1 / (1 + 0.07 * (1 - 1 / hosts))) for hosts in (1, 2, 32, 256)]
    assert fitted_scale_loss(runs) == 0.07


def test_a_publisher_weighs_one_however_much_it_published() -> None:
    def of(publisher: str, loss: float, count: int) -> list[Run]:
        return [Run(f"{publisher}{i}", publisher, 10**9, 1 / (1 + loss)) for i in range(count)]

    # the mean of three logarithms; of eleven it would be 0.35
    assert fitted_scale_loss([*of("a", 0.1, 1), *of("b", 0.1, 1), *of("many", 0.4, 9)]) == 0.19


def test_settings_of_a_paper_go_before_what_is_typical() -> None:
    large = replace(LLAMA, model="Llama 3.1 405B", params_b=405.85, active_params_b=405.85)
    arch = inputs.architecture_of(large)
    assert inputs.sequence_length_of(large, arch) == 8192
    assert inputs.batch_of(large, 8192) == 2048
    unknown = replace(large, model="our own 405B")
    assert inputs.sequence_length_of(unknown, arch) == 4096
    assert inputs.batch_of(unknown, 4096) == 8192
    bloom = replace(LLAMA, model="BLOOM-176B")
    assert inputs.settings_of(bloom) is not None
    assert all(one.framework in (None, *FRAMEWORKS) for one in inputs.run_settings())


def test_llama_3_405b_takes_as_long_as_it_took(world: Catalog) -> None:
    """30.84 million device hours; table 4 of its paper gives 400 TFLOP/s of a step on 16,384 H100."""
    row = next(row for row in shipped_totals() if row.id == "tot-009")
    said = predict_totals([row], world)[0]
    assert said.devices == 16384
    assert (said.device_hours or 0) == pytest.approx(30.84e6, rel=0.15)
    beyond = ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts")
    steps_s = sum(hours for name, hours in said.terms.items() if name not in beyond) * 3600
    assert 6 * 405.85e9 * 15.6e12 / steps_s == pytest.approx(400e12, rel=0.1)


def test_a_publisher_does_not_vote_on_its_own_runs() -> None:
    runs = [Run("honest", "a", 16, 1.0), Run("also", "b", 16, 1.0), Run("slow", "c", 16, 0.7)]
    assert left_out_errors(runs)["slow"] == pytest.approx(0.3)


def test_hours_without_the_loss_are_those_of_the_rest(world: Catalog) -> None:
    row = replace(LLAMA, gpu_hours="184320", source="meta-llama/llama:card")
    said = predict_totals([row], world)
    run = runs_of([row], said)[0]
    assert (run.publisher, run.hosts) == ("meta-llama", 32)
    assert run.ratio(DEFAULT_SCALE_LOSS) == pytest.approx((said[0].device_hours or 0) / 184320, rel=1e-9)


def test_the_shipped_loss_is_what_the_budgets_say(world: Catalog) -> None:
    rows = shipped_totals()
    runs = runs_of(rows, predict_totals(rows, world))
    assert fitted_scale_loss(runs) == pytest.approx(DEFAULT_SCALE_LOSS, abs=0.011)


def test_the_analytic_tier_reaches_its_figure_on_publishers_left_out(world: Catalog) -> None:
    rows = shipped_totals()
    errors = left_out_errors(runs_of(rows, predict_totals(rows, world)))
    assert len(errors) >= 16
    assert float(np.mean(np.abs(np.log1p(np.array(list(errors.values())))))) <= 0.25
