"""Measured rows as inputs of the estimators: devices, shapes, layouts and software by name and by default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.estimate.device_constants import step_constants
from planner.validate.rows import MeasuredRow
from planner.validate.rows_machine import device_of, machine_of_row, network_bytes_per_s, slices_of
from planner.validate.rows_model import architecture_of, parameters_of, with_shape
from planner.validate.rows_setup import framework_of, layout_of, recompute_of, stack_of
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
        ("H800", "h100-sxm-80gb"),
        ("GB300", "gb300-nvl72"),
        ("V100-32GB-SXM3 (DGX-2H)", "v100-sxm3-32gb"),
        ("TPU-v5e", "tpu-v5e"),
        ("AMD MI300X 192GB", "mi300x"),
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
        step_constants(catalog, catalog.devices["mi300x"]),
        step_constants(catalog, catalog.devices["h100-sxm-80gb"]),
    )
    # mi300x: 668.4 of 1307.4 TFLOP/s measured; h100: best of its family 828.6 of 989 (GH200)
    assert own.gemm / parent.gemm == pytest.approx((668.4 / 1307.4) / (828.6 / 989), rel=1e-3)
    assert own.memory == parent.memory
    untouched = catalog.training_families["hopper"].constants["gemm"]
    assert parent.gemm == untouched


def test_a_dense_row_without_shape_gets_that_of_its_size() -> None:
    shaped = with_shape(replace(ROW, layers=None, heads=None, hidden=8192, n_params_b=65.0, vocab=32000))
    assert shaped.layers == round((65e9 - 32000 * 8192) / (12 * 8192**2))
    assert shaped.heads == 64
    size_only = with_shape(replace(ROW, layers=None, heads=None, hidden=None, n_params_b=7.0))
    found = architecture_of(size_only)
    assert found.layers
    routed = replace(ROW, layers=None, heads=None, hidden=None, n_params_b=30.0, n_active_params_b=3.0)
    assert not architecture_of(routed).layers
    assert parameters_of(routed) == 3e9
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
        ("MaxText", 2023, None, "maxtext"),
        (None, None, None, "megatron"),
    ],
)
def test_software_by_name_and_release(framework: str | None, year: int | None, release: str | None, name: str) -> None:
    assert framework_of(replace(ROW, framework=framework, year=year, software_release=release)).name == name


def test_unstated_layout_is_the_frameworks_default() -> None:
    bare = replace(ROW, dp=None, tp=None, pp=None, cp=None, sharding=None, micro_batch=None, global_batch=None)
    layout = layout_of(bare)
    assert (layout["dp"], layout["tp"], layout["sharding"]) == (16.0, 1.0, 3.0)
    assert layout["micro_batch"] == 1.0  # one sequence a rank: the batch is not stated either
    assert layout_of(replace(bare, framework="MaxText", global_batch=64))["micro_batch"] == 4.0


@pytest.mark.parametrize(
    ("text", "level"), [(None, 0), ("none", 0), ("selective (core_attn)", 1), ("full", 2), ("full (layers 4)", 2)]
)
def test_recomputation_in_words(text: str | None, level: int) -> None:
    assert recompute_of(replace(ROW, recompute=text))[0] == level


def test_maxtext_repeats_what_it_does_not_save() -> None:
    row = replace(ROW, framework="MaxText", recompute="offload (decoder input + out,q,k,v to host)")
    assert recompute_of(row) == (1, 0.75)


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
