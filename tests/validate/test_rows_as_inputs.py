"""Measured rows as inputs of the estimators: devices, shapes, layouts and software by name and by default."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.estimate.device_constants import product_ratio, step_constants
from planner.report.json import render
from planner.validate.result import validate_training
from planner.validate.rows import MEASURED, NO_INPUTS, UNREAD, MeasuredRow, shipped_training_rows
from planner.validate.rows_facts import (
    architecture_of,
    device_of,
    machine_of_row,
    network_bytes_per_s,
    parameters_of,
    slices_of,
    with_shape,
)
from planner.validate.rows_setup import (
    framework_of,
    imbalance_of,
    layout_of,
    offloaded_of,
    recompute_of,
    sharding_of,
    stack_of,
    unread_cell,
)
from planner.validate.training import predict_training

ROW = MeasuredRow(
    id="r", model="Model", accelerator="H100-80GB-SXM", n_accel=16, accel_per_node=8, hidden=4096, layers=32, heads=32,
    kv_heads=8, ffn_hidden=14336, gated_mlp=1, vocab=128256, seq_len=8192, tp=1, pp=1, cp=1, dp=16, micro_batch=1,
    global_batch=64, framework="torchtitan", precision="bf16", precision_class="16bit", year=2025,
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("A100 (memory size not stated)", "a100-sxm-80gb"),
        ("A100-40GB-SXM", "a100-sxm-40gb"),
        ("H100-94GB-HBM2e-lowTDP", "h100-sxm-80gb"),
        ("H800", "h800-sxm-80gb"),
        ("GB300", "gb300-nvl72"),
        ("V100-32GB-SXM3 (DGX-2H)", "v100-sxm3-32gb"),
        ("TPU-v5e", "tpu-v5e"),
        ("AMD MI300X 192GB", "mi300x"),
        ("4090 24GB", "rtx-4090"),
        ("v5p-128", "tpu-v5p"),
        ("no such chip", None),
    ],
)
def test_devices_as_publishers_write_them(catalog: Catalog, name: str, device: str | None) -> None:
    found = device_of(replace(ROW, accelerator=name), catalog)
    assert (found.id if found else None) == device


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1600 Gbps/node RoCE", 25e9),
        ("800 Gb/s per node (from configs)", 12.5e9),
        ("400 Gb/s RDMA per GPU, NVLink in host", 50e9),
        ("4x Omni-Path per node", 6.25e9),
        (None, 50e9),
    ],
)
def test_networks_as_publishers_write_them(catalog: Catalog, text: str | None, rate: float) -> None:
    row = replace(ROW, interconnect=text)
    device = device_of(row, catalog)
    assert device is not None
    assert network_bytes_per_s(row, device) == rate


def test_slices_of_a_tpu_are_domains(catalog: Catalog) -> None:
    row = replace(ROW, accelerator="TPU-v5e", n_accel=512, interconnect="2 slice(s), ICI inside, DCN between")
    device = device_of(row, catalog)
    assert device is not None
    assert slices_of(row) == 2
    assert machine_of_row(row, device)["scale_up_devices"] == 256
    assert stack_of(row, device)["shard_ranks"] == 256


def test_a_part_of_less_power_runs_slower(catalog: Catalog) -> None:
    device = device_of(ROW, catalog)
    assert device is not None
    usual = machine_of_row(ROW, device)
    weaker = machine_of_row(replace(ROW, accelerator="H100-96GB-HBM2e-500W"), device)
    assert weaker["peak_flop_per_s"] < usual["peak_flop_per_s"]
    assert weaker["memory_bandwidth_bytes_per_s"] == 2.4e12


def test_a_heir_sustains_what_its_own_products_do(catalog: Catalog) -> None:
    own, parent = (
        step_constants(catalog, catalog.devices["mi355x"]),
        step_constants(catalog, catalog.devices["b300-sxm"]),
    )
    # mi355x: 1565 of 2516 TFLOP/s measured; b300: the best of its family, 1769 of 2250
    assert own.gemm / parent.gemm == pytest.approx((1565 / 2516.6) / (1769 / 2250), rel=1e-3)
    assert own.memory == parent.memory
    untouched = catalog.training_families["blackwell"].constants["gemm"]
    assert parent.gemm == untouched


def test_a_device_without_measured_products_sustains_what_its_power_lets_it(catalog: Catalog) -> None:
    pcie, best = catalog.devices["h100-pcie-80gb"], catalog.devices["gh200-96gb"]
    power = (pcie.tdp_w or 0) / pcie.peak_flop_per_s["bf16"] / ((best.tdp_w or 1) / best.peak_flop_per_s["bf16"])
    assert power < 1
    assert product_ratio(pcie, "hopper", catalog) == pytest.approx(power ** (2 / 3))
    assert product_ratio(best, "hopper", catalog) == 1.0
    assert product_ratio(catalog.devices["tpu-v5e"], "tpu-v5e", catalog) == 1.0  # nothing was measured there


def test_a_dense_row_without_shape_gets_that_of_its_size() -> None:
    shaped = with_shape(replace(ROW, layers=None, heads=None, hidden=8192, n_params_b=65.0, vocab=32000))
    assert shaped.layers == round((65e9 - 32000 * 8192) / (12 * 8192**2))
    assert shaped.heads == 64
    size_only = with_shape(replace(ROW, layers=None, heads=None, hidden=None, n_params_b=7.0))
    found = architecture_of(size_only)
    assert found.layers
    routed = replace(ROW, layers=None, heads=None, hidden=None, n_params_b=30.0, n_active_params_b=3.0)
    assert architecture_of(routed).parameters == pytest.approx(3e9, rel=0.1)  # the shape of what a token uses
    assert parameters_of(routed) == 3e9
    named = replace(routed, n_params_b=None, n_active_params_b=None, model="Qwen3-30B-A3B", n_experts=None)
    assert (named.active_params_b, named.is_moe, named.kind) == (3.0, True, "hybrid")
    assert parameters_of(named) == 3e9
    assert not replace(named, model="Llama-3.1-8B on A100").is_moe
    assert parameters_of(MeasuredRow(model="Qwen3.8-27B (VLM)")) == 27e9
    assert parameters_of(MeasuredRow(model="Lightning 2.0")) is None


def test_routed_models_take_the_layers_of_their_preset() -> None:
    row = replace(ROW, hidden=7168, layers=14, heads=128, kv_heads=128, ffn_hidden=2048, n_experts=64, top_k=8)
    found = architecture_of(row)
    assert found.layer_count == 14
    assert found.layers[-1].attention == "mla"
    assert found.layers[-1].experts == 64


@pytest.mark.parametrize(
    ("framework", "year", "release", "name"),
    [
        ("Megatron-Bridge 26.08", 2026, "Megatron-Bridge 26.08", "megatron-bridge-graphs"),
        ("Megatron-Bridge 25.11", 2025, "Megatron-Bridge 25.11", "megatron-bridge"),
        ("Megatron-Bridge", 2026, "Megatron-Bridge", "megatron-bridge-graphs"),
        ("Megatron-LM", 2022, "Megatron-LM", "megatron-2022"),
        ("Megatron-LM CI", 2025, None, "megatron"),
        ("torchtitan+torchao", 2025, None, "fsdp"),
        ("MaxText", 2023, None, "jax"),  # on a GPU
        ("PAX/JAX (TE)", 2024, None, "jax"),
        ("HF SFTTrainer + FSDP", 2024, None, "hf"),
        ("DeepSpeed 0.19.2 + HF", 2026, None, "deepspeed"),
        ("torchtune", 2025, None, "torchtune"),
        ("Primus/Megatron", 2025, None, "megatron"),
        ("ours", 2025, None, "common"),
        (None, None, None, "common"),
    ],
)
def test_software_by_name_and_release(framework: str | None, year: int | None, release: str | None, name: str) -> None:
    assert framework_of(replace(ROW, framework=framework, year=year, software_release=release)).name == name


def test_unstated_layout_is_the_frameworks_default() -> None:
    bare = replace(ROW, dp=None, tp=None, pp=None, cp=None, sharding=None, micro_batch=None, global_batch=None)
    layout = layout_of(bare)
    assert (layout["dp"], layout["tp"], layout["sharding"]) == (16.0, 1.0, 3.0)
    assert layout["micro_batch"] == 1.0  # one sequence a rank: the batch is not stated either
    chips = replace(bare, framework="MaxText", global_batch=64, accelerator="TPU-v5e")
    assert layout_of(chips)["micro_batch"] == 4.0
    assert layout_of(replace(chips, micro_batch=0.5, global_batch=None))["micro_batch"] == 0.5


@pytest.mark.parametrize(
    ("text", "level"), [(None, 0), ("none", 0), ("selective (core_attn)", 1), ("full", 2), ("full (layers 4)", 2)]
)
def test_recomputation_in_words(text: str | None, level: int) -> None:
    assert recompute_of(replace(ROW, recompute=text))[0] == level


def test_maxtext_repeats_what_it_does_not_save() -> None:
    row = replace(ROW, framework="MaxText", recompute="offload (decoder input + out,q,k,v to host)")
    assert recompute_of(row) == (1, 0.75)
    minimal, flash = (
        recompute_of(replace(row, recompute=text))[1] for text in ("minimal", "selective (minimal_flash)")
    )
    assert (minimal, flash) == pytest.approx((0.15, 0.05))  # projections are kept; attention is, or is not
    assert recompute_of(replace(row, recompute="custom (decoder input, context on device)"))[1] == pytest.approx(0.9)


def test_a_row_that_cannot_be_predicted_says_why(catalog: Catalog) -> None:
    rows = [
        ROW,
        replace(ROW, accelerator="no such chip"),
        replace(ROW, n_accel=None),
        MeasuredRow(id="s", accelerator="H100", n_accel=8, seq_len=2048),
        replace(ROW, heads=33),
    ]
    said = predict_training(rows, catalog)
    assert said[0].skipped is None
    assert said[0].step_time_s == pytest.approx(sum(said[0].terms.values()))
    assert all(one.skipped is not None for one in said[1:])
    assert "no such chip" in (said[1].skipped or "")


FIGURES = ("step_time_s", "tokens_per_s_per_device", "tflops_per_device", "peak_memory_bytes", "skipped")
OTHERS: dict[str, list[Any]] = {"cuda_graphs": [0, 1], "precision": ["int8", "fp8"]}  # what no row of ours says


def columns() -> list[str]:
    """Every column that could be an input of a prediction."""
    return [name for name in MeasuredRow.__slots__ if name not in (*MEASURED, *UNREAD, "file", "line")]


def moved(name: str, catalog: Catalog) -> bool:
    """Whether some value of a column changes a prediction of some row."""
    rows = [row for row in shipped_training_rows() if row.trust != "C"]
    chance = random.Random(1)
    stated = [row for row in rows if getattr(row, name) is not None] or rows
    values = sorted({getattr(row, name) for row in rows} - {None}, key=str) + OTHERS.get(name, [])
    for row in chance.sample(stated, min(60, len(stated))):
        other = replace(
            row, **{name: chance.choice([value for value in [*values, None] if value != getattr(row, name)])}
        )
        if name == "precision":
            other = replace(other, precision_class=None)
            row = replace(row, precision_class=None)
        before, after = predict_training([row, other], catalog)
        if any(getattr(before, figure) != getattr(after, figure) for figure in FIGURES):
            return True
    return False


@pytest.mark.parametrize("name", columns())
def test_every_column_changes_a_prediction_or_is_declared_not_to(name: str, catalog: Catalog) -> None:
    assert moved(name, catalog) is (name not in NO_INPUTS)


def test_adapters_are_read_in_time_and_memory(catalog: Catalog) -> None:
    """Rows of LoRA were predicted as pre-training: no weight gradients of the base, and no gather of what is frozen."""
    rows = {row.id: row for row in shipped_training_rows()}
    lora = rows["mb-0071"]
    plain = replace(lora, task="pretrain", states_recipe=None)
    said, as_pretraining = predict_training([lora, plain], catalog)
    assert (lora.adapters, lora.kind, plain.kind) == ("lora", "tuning", "dense")
    assert 0.55 < said.step_time_s / as_pretraining.step_time_s < 0.77  # type: ignore[operator]
    assert said.terms["data_parallel"] < 0.02 * as_pretraining.terms["data_parallel"]
    four = rows["fmsa-0050"]
    small, wide = predict_training([four, replace(four, task="lora", states_recipe="lora")], catalog)
    assert small.peak_memory_bytes < 0.75 * wide.peak_memory_bytes  # type: ignore[operator]
    assert small.step_time_s > wide.step_time_s  # type: ignore[operator]


@pytest.mark.parametrize(
    ("cells", "faster"),
    [
        ({"attention_kernel": "flash3"}, True),
        ({"attention_kernel": "eager"}, False),
        ({"attention_kernel": "no_flash"}, False),
        ({"offload": "optimizer"}, False),
        ({"offload": "activations"}, False),
        ({"deterministic": 1}, False),
        ({"cuda_graphs": 1}, True),
        ({"comm_overlap": "off"}, False),
    ],
)
def test_each_setting_moves_the_time_its_way(cells: dict[str, Any], faster: bool, catalog: Catalog) -> None:
    row = replace(ROW, accelerator="H100-80GB-SXM", framework="torchtitan", attention_kernel=None, offload=None)
    before, after = predict_training([row, replace(row, **cells)], catalog)
    assert (after.step_time_s < before.step_time_s) is faster  # type: ignore[operator]
    assert after.step_time_s != before.step_time_s


@pytest.mark.parametrize(
    ("device", "cells", "native"),
    [
        ("TPU-v7x (Ironwood chip)", {"precision": "fp8", "precision_class": "fp8"}, True),
        ("TPU-v6e", {"precision": "fp8", "precision_class": "fp8"}, False),  # no faster than 16 bits: emulated
        ("TPU-v6e", {"precision": "int8", "precision_class": None}, True),
        ("TPU-v5e", {"precision": "int8", "precision_class": None}, True),
        ("A100-80GB-SXM", {"precision": "fp8", "precision_class": "fp8"}, False),
    ],
)
def test_eight_bits_count_where_the_hardware_has_them(
    device: str, cells: dict[str, Any], native: bool, catalog: Catalog
) -> None:
    row = replace(ROW, accelerator=device, framework="MaxText", precision="bf16", precision_class="16bit")
    before, after = predict_training([row, replace(row, **cells)], catalog)
    assert (after.step_time_s < 0.9 * before.step_time_s) is native  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("fsdp (inside slice), dp across slices", 3), ("zero3 + cpu offload of optimizer", 3), ("ZeRO-3", 3),
        ("FSDP (full shard)", 3), ("hybrid_shard", 3), ("SHARD_GRAD_OP", 2), ("zero 2", 2), ("ZeRO-1", 1),
        ("distributed optimizer", 1), ("DistOpt", 1), ("none (DDP)", 0), ("zero0", 0), ("3D", None), (None, None),
    ],
)  # fmt: skip
def test_sharding_in_the_words_of_others(text: str | None, stage: int | None) -> None:
    assert sharding_of(replace(ROW, sharding=text)) == stage


@pytest.mark.parametrize(
    ("cells", "goes"),
    [
        ({"offload": "optimizer+parameters"}, {"optimizer", "parameters"}),
        ({"offload": "cpu"}, {"optimizer"}),
        ({"sharding": "zero3 + cpu offload of optimizer"}, {"optimizer"}),
        ({"sharding": "distributed optimizer"}, set()),  # an optimizer that is cut is not one in the host's memory
        ({"recompute": "selective (qkv_proj_offloaded)"}, set()),
        ({"offload": "none"}, set()),
    ],
)
def test_what_goes_to_the_host(cells: dict[str, Any], goes: set[str], catalog: Catalog) -> None:
    row = replace(ROW, **cells)
    assert offloaded_of(row) == goes
    assert stack_of(row, catalog.devices["h100-sxm-80gb"])["optimizer_offload"] == float("optimizer" in goes)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"sharding": "3D"}, "sharding '3D'"),
        ({"offload": "nvme"}, "offload 'nvme'"),
        ({"task": "GRPO"}, "task 'GRPO'"),
        ({"precision": "fp32", "precision_class": None}, "precision 'fp32'"),
        ({"precision": "tf32", "precision_class": "tf32"}, "precision 'tf32'"),
        ({"precision": "bf16 + fp32 optimizer", "precision_class": None}, ""),
        ({"precision": None, "precision_class": None, "offload": "none", "task": "continued pretrain"}, ""),
    ],
)
def test_a_cell_that_nobody_can_read_is_refused_and_not_taken_for_another(
    cells: dict[str, Any], words: str, catalog: Catalog
) -> None:
    row = replace(ROW, **cells)
    (said,) = predict_training([row], catalog)
    assert (said.step_time_s is None) == bool(words)
    assert words in (said.skipped or unread_cell(row))


def test_words_of_settings_mean_what_the_same_setting_in_other_words_does(catalog: Catalog) -> None:
    def seconds(**cells: Any) -> float:
        return predict_training([replace(ROW, **cells)], catalog)[0].step_time_s or 0.0

    for cell, known, others in (
        ("recompute", "full", ("true", "gradient checkpointing", "full (uniform, 1)")),
        ("recompute", "none", ("false", "no", "off")),
        ("attention_kernel", "eager", ("math", "naive")),
        ("attention_kernel", "flash3", ("FA3", "flash_attention_3")),
        ("task", "lora", ("peft", "dora")),
        ("loss_kind", "fused", ("liger", "cut cross entropy")),
    ):
        assert {seconds(**{cell: word}) for word in others} == {seconds(**{cell: known})}
        assert seconds(**{cell: known}) != seconds(**{cell: "selective" if cell == "recompute" else None})
    assert imbalance_of(replace(ROW, moe_routing="balanced")) < imbalance_of(ROW)
    assert imbalance_of(replace(ROW, moe_routing="dropless, real data")) > imbalance_of(ROW)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("8x400G IB", 50e9), ("EFA 3200 Gbps", 50e9), ("100GbE", 100e9 / 64), ("InfiniBand HDR 200", 25e9),
        ("Slingshot", 50e9),
    ],
)  # fmt: skip
def test_networks_without_the_word_per(catalog: Catalog, text: str, rate: float) -> None:
    assert network_bytes_per_s(replace(ROW, interconnect=text), catalog.devices["h100-sxm-80gb"]) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"accelerator": "M3 Ultra"}, "no link between several m3-ultra"),
        ({"hidden": 4, "heads": None, "layers": None}, None),  # more heads than the width has values: once without end
        ({"n_experts": 10**6, "top_k": 1, "tflops_per_device": 400.0, "flops_convention": "model",
          "attention_flops": "full"}, "the shape of the model is not possible"),
    ],
)  # fmt: skip
def test_an_odd_row_costs_its_table_nothing(cells: dict[str, Any], why: str | None, catalog: Catalog) -> None:
    rows = [replace(ROW, **cells), replace(ROW, step_time_s=1.0)]
    said = predict_training(rows, catalog)
    if why:
        assert (said[0].skipped or "").startswith(why)
    assert said[1].step_time_s
    assert render(validate_training(rows, said, own_rows=True).document())  # no nan in it
