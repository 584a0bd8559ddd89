"""Errors of predictions, against values worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from planner.validate.evidence import KORTHIKANTI, MEMORY_BARS, TIME_BARS, judge
from planner.validate.measured import configuration, measured_step_time_s, medians, noise_floor, repeated_rows
from planner.validate.rows import MeasuredRow, shipped_training_rows
from planner.validate.score import (
    GROUPS,
    coverage,
    memory_summaries,
    parallelism,
    score_memory,
    score_step_times,
    summaries,
    summarise,
    worst_rows,
)


@dataclass(frozen=True)
class Said:
    """A prediction made up for a test."""

    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None
    peak_memory_bytes: float | None = None
    skipped: str | None = None
    family: str = "ampere"


BASE = MeasuredRow(
    id="r", task="pretrain", trust="A", source_key="one", family="A100", accelerator="A100", precision_class="16bit",
    n_accel=8, seq_len=2048, global_batch=64, tp=1, pp=1, dp=8,
)  # fmt: skip


def row(measured: float | None, **cells: object) -> MeasuredRow:
    return replace(BASE, step_time_s=measured, **cells)  # type: ignore[arg-type]


def different(measured: list[float], **cells: object) -> list[MeasuredRow]:
    """Rows of different configurations."""
    return [row(value, global_batch=64 + number, **cells) for number, value in enumerate(measured)]


def test_target_is_the_printed_step_time_before_anything_derived() -> None:
    both = replace(BASE, step_time_s=2.0, tokens_per_s_per_device=1.0)
    assert measured_step_time_s(both) == 2.0


def test_target_from_tokens_per_second() -> None:
    # 64 * 2048 tokens a step over 8 devices at 4096 tokens/s each: 4 s
    assert measured_step_time_s(replace(BASE, tokens_per_s_per_device=4096)) == 4.0


@pytest.mark.parametrize("cells", [{"tflops_per_device": 150.0}, {"mfu_pct": 50.0, "mfu_peak_tflops": 300.0}])
def test_target_from_published_flops(cells: dict[str, float]) -> None:
    shape = {"hidden": 1024, "layers": 4, "heads": 8, "ffn_hidden": 4096, "gated_mlp": 0, "vocab": 50000}
    published = replace(
        BASE,
        flops_convention="model",
        attention_flops="full",
        **shape,
        **cells,  # type: ignore[arg-type]
    )
    # per token: 6 x (4 layers of 12 h^2 and the head), and 12 L h s of attention
    flop = 6 * (4 * 12 * 1024**2 + 50000 * 1024) + 12 * 4 * 1024 * 2048
    assert measured_step_time_s(published) == pytest.approx(flop * 64 * 2048 / 8 / 150e12, rel=1e-3)
    assert measured_step_time_s(replace(published, attention_flops=None)) is None
    assert measured_step_time_s(replace(published, flops_convention=None)) is None


def test_no_target() -> None:
    assert measured_step_time_s(BASE) is None
    assert measured_step_time_s(replace(BASE, tokens_per_s_per_device=1.0, n_accel=None)) is None


def test_errors_by_hand() -> None:
    rows = different([1.0, 2.0, 4.0, 5.0])
    rows[3] = replace(rows[3], source_key="two")
    scored = score_step_times(rows, [Said(step_time_s=t) for t in (1.1, 1.8, 4.0, 6.0)])
    assert [item.error for item in scored] == pytest.approx([0.1, -0.1, 0.0, 0.2])
    found = summarise(scored)
    assert (found.rows, found.configurations, found.sources) == (4, 4, 2)
    assert found.mean == pytest.approx(0.1)
    assert found.median == pytest.approx(0.1)
    assert found.p90 == pytest.approx(0.17)  # 0.1 + 0.7 * (0.2 - 0.1), linear between order statistics
    assert found.worst == pytest.approx(0.2)
    assert found.bias == pytest.approx(0.05)
    assert found.mean_of_sources == pytest.approx((0.2 / 3 + 0.2) / 2)
    assert found.noise_floor is None
    assert 0 <= found.low < found.mean < found.high <= 0.2
    assert not found.has_bar


def test_the_interval_is_always_the_same_and_narrows_with_rows() -> None:
    few = score_step_times(different([1.0] * 20), [Said(step_time_s=1 + i / 100) for i in range(20)])
    many = score_step_times(different([1.0] * 200), [Said(step_time_s=1 + i % 20 / 100) for i in range(200)])
    one, two = summarise(few), summarise(many)
    assert summarise(few) == one
    assert one.mean == pytest.approx(two.mean)
    assert two.high - two.low < (one.high - one.low) / 2


def test_what_does_not_count() -> None:
    rows = [row(1.0), row(1.0, trust="C"), row(1.0, task="sft"), row(1.0, task="lora"), row(None), row(1.0)]
    said = [Said(step_time_s=2.0)] * 5 + [Said(skipped="no")]
    assert len(score_step_times(rows, said)) == 3  # what is tuned counts as well
    assert len(score_step_times([row(1.0, trust=None, task=None)], said[:1])) == 1


def test_rows_of_one_configuration_are_held_against_their_median() -> None:
    repeats = [
        row(9.0, framework="Megatron-Bridge 25.11", software_release="Megatron-Bridge 25.11", year=2025, id="a"),
        row(10.0, framework="Megatron-Bridge 26.02.01", year=2026, id="b", trust="B", source_key="elsewhere"),
        row(14.0, framework="Megatron-Bridge (067f987) + TE 2.11", id="c", notes="slow", source="s"),
    ]
    rows = [*repeats, row(5.0, framework="Megatron-Bridge", tp=2), row(5.0, framework="Megatron-LM", tp=2)]
    times = [9.0, 10.0, 14.0, 5.0, 5.0]
    assert medians(rows, times) == [10.0, 10.0, 10.0, 5.0, 5.0]
    assert repeated_rows(rows) == 3
    assert noise_floor(rows, times) == pytest.approx((0.1 + 0.0 + 0.4) / 3)
    scored = score_step_times(rows, [Said(step_time_s=t) for t in (11.0, 11.0, 11.0, 5.0, 5.0)])
    assert [item.error for item in scored] == pytest.approx([0.1, 0.1, 0.1, 0.0, 0.0])
    assert [item.measured for item in scored] == times
    assert summarise(scored).configurations == 3
    assert summarise(scored).noise_floor == pytest.approx(0.5 / 3)


def test_every_input_tells_configurations_apart() -> None:
    for name in ("tp", "micro_batch", "precision", "fp8_recipe", "recompute", "moe_routing", "accelerator", "seq_len"):
        other = replace(BASE, **{name: "x" if isinstance(getattr(BASE, name), str | None) else 3})
        assert configuration(other) != configuration(BASE), name


def test_the_shipped_repeats_are_found() -> None:
    rows = [r for r in shipped_training_rows() if r.trust != "C" and r.task == "pretrain"]
    assert repeated_rows(rows) > 90


def test_groups() -> None:
    rows = [
        *different([1.0, 1.0], family="A100"),
        *different([1.0], family="H100", precision_class="fp8", n_experts=8, tp=2, ep=4, source_key="two"),
    ]
    scored = score_step_times(rows, [Said(step_time_s=1.5)] * 3)
    found = {(s.group, s.name): s.rows for s in summaries(scored)}
    assert found == {
        ("all", "all"): 3, ("family", "A100"): 2, ("family", "H100"): 1, ("precision", "16bit"): 2,
        ("precision", "fp8"): 1, ("kind", "dense"): 2, ("kind", "experts"): 1, ("source", "one"): 2,
        ("source", "two"): 1, ("parallelism", "dp"): 2, ("parallelism", "tp+ep"): 1,
    }  # fmt: skip
    assert {group for group, _ in found} == {"all", *GROUPS}
    assert summaries([]) == []


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ({"tp": 1, "pp": 1, "dp": 1}, "one device"),
        ({"tp": 1, "pp": 1, "dp": 4}, "dp"),
        ({"tp": 4, "pp": 2, "dp": 4, "cp": 2, "ep": 8}, "tp+pp+cp+ep"),
        ({"tp": 2, "dp": 4, "sharding": "fsdp"}, "fsdp+tp"),
        ({"tp": 1, "dp": 4, "sharding": "zero3"}, "fsdp"),
        ({"tp": 1, "dp": 4, "sharding": "zero1"}, "dp"),
        ({}, "unstated"),
    ],
)
def test_parallelism(cells: dict[str, object], found: str) -> None:
    assert parallelism(MeasuredRow(**cells)) == found  # type: ignore[arg-type]


def test_worst_rows_first() -> None:
    scored = score_step_times(different([1.0, 1.0, 1.0]), [Said(step_time_s=t) for t in (1.1, 0.5, 1.2)])
    assert [item.error for item in worst_rows(scored, 2)] == pytest.approx([-0.5, 0.2])


def test_memory_by_kind() -> None:
    read = {"peak_mem_unit": "GiB", "mem_rank": "max"}
    rows = [
        row(None, peak_mem_gb=10.0, peak_mem_kind="max_memory_allocated", **read),
        row(None, peak_mem_gb=20.0, peak_mem_kind="nvidia-smi style", **read),
        row(None, peak_mem_gb=40.0, peak_mem_kind="digitised from the figure", trust="C", **read),
    ]
    said = [Said(peak_memory_bytes=11 * 2.0**30), Said(peak_memory_bytes=18 * 2.0**30), Said(peak_memory_bytes=1.0)]
    scored = score_memory(rows, said)
    assert [item.error for item in scored] == pytest.approx([0.1, -0.1])
    found = {(s.group, s.name): s.mean for s in memory_summaries(scored)}
    assert found[("memory kind", "allocated")] == pytest.approx(0.1)
    assert found[("memory kind", "process")] == pytest.approx(0.1)


def test_coverage_names_each_refusal() -> None:
    rows = [row(1.0, id="a"), row(1.0, id="b"), row(1.0, id="c", trust="C"), row(1.0, id="d", task="sft")]
    said = [Said(step_time_s=1), Said(skipped="no batch"), Said(skipped="no batch"), Said(skipped="no batch")]
    found = coverage(rows, said)
    assert (found.rows, found.predicted, found.share) == (3, 1, 1 / 3)
    assert found.refusals == {"no batch": ("b", "d")}
    assert coverage(rows, said, of_trust=("A", "B", "C")).refusals == {"no batch": ("b", "c", "d")}


def test_only_four_rows_of_korthikanti_are_held_against_a_figure() -> None:
    rows = different([1.0] * 9)
    scored = score_step_times(rows, [Said(step_time_s=9.0)] * 9)
    assert judge(scored[:4], [KORTHIKANTI])[0].reached is False
    assert judge(scored, MEMORY_BARS[:1])[0].reached is None


def test_bars_of_times_speak_of_their_devices_kinds_and_precisions() -> None:
    held = {bar.name: {group for group in GROUPS_OF_TIMES if bar.holds(group)} for bar in TIME_BARS}
    assert held["Hopper dense fp8"] == {"H200 dense fp8"}
    assert held["mixtures of experts"] == {"GB300 experts fp8", "TPU-v7x experts 16bit"}
    assert held["TPU dense 16-bit"] == {"TPU-v5e dense 16bit"}
    assert held["LoRA, QLoRA and full fine-tuning"] == {"RTX-4090 tuning 16bit"}


GROUPS_OF_TIMES = (
    "A100 dense 16bit", "H200 dense fp8", "GB300 experts fp8", "TPU-v7x experts 16bit", "TPU-v5e dense 16bit",
    "RTX-4090 tuning 16bit",
)  # fmt: skip


def test_memory_bars() -> None:
    read = {"peak_mem_unit": "GB", "peak_mem_kind": "max_memory_allocated"}
    rows = [row(None, global_batch=n + 1, peak_mem_gb=10.0 + n, **read) for n in range(10)]
    said = [Said(peak_memory_bytes=(10.0 + n) * 1e9 * (1.15 if n == 0 else 1.01)) for n in range(10)]
    found = {v.bar.name: v.reached for v in judge(score_memory(rows, said), MEMORY_BARS)}
    assert found == {
        "peak memory allocated, pre-training, mean": True,
        "peak memory reserved or of the device, pre-training, mean": None,
        "peak memory of LoRA, QLoRA and full fine-tuning, mean": None,
    }
