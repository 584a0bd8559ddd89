"""Bands of serving figures: wider for what was not seen, tagged by rows of the very pair, and what sizes a fleet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from planner.architecture.load import load_model
from planner.catalog.fitted_constants import read_serving
from planner.catalog.load import load_catalog
from planner.catalog.model import Band, Catalog, ServingCalibration
from planner.catalog.reading import Problems
from planner.estimate.serving_constants import (
    MOST,
    calibrated,
    format_kind,
    layout_kind,
    serving_constants,
    sustained,
)
from planner.estimate.serving_step import TEXTBOOK
from planner.estimate.serving_tiers import ServingTier, tier_on
from planner.scenario.load import parse_scenario


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def found(catalog: Catalog) -> ServingCalibration:
    assert catalog.serving is not None
    return catalog.serving


def test_a_share_nears_its_peak_and_does_not_pass_it() -> None:
    value = np.array([0.1, 0.5, 0.8, 1.0, 3.0])
    kept = sustained({"bandwidth": value, "step_s": value})
    assert np.array_equal(kept["step_s"], value)
    assert kept["bandwidth"][:2] == pytest.approx(value[:2], rel=1e-3)
    assert (np.diff(kept["bandwidth"]) > 0).all()
    assert (kept["bandwidth"] < MOST["bandwidth"]).all()


def test_clients_never_wait_for_more_than_all_prompts(catalog: Catalog) -> None:
    """With `burst` below one a cycle has the decode work left after the first token."""
    for engine in ("sglang", "vllm", "trt-llm"):
        own = serving_constants(catalog, catalog.devices["h100-sxm-80gb"], engine, experts=False).constants
        assert float(own.burst) < 1.0  # type: ignore[arg-type]


def test_an_engine_has_factors_of_its_own_for_models_with_experts(catalog: Catalog, found: ServingCalibration) -> None:
    """One factor stood for both: time per token of dense models was off by a fifth the same way in every campaign."""
    device = catalog.devices["h100-sxm-80gb"]
    dense, mixed = (calibrated(found, device, "vllm", "bf16", experts=experts) for experts in (False, True))
    factor = found.traits["mixture"]["vllm on hopper"].factors["work"]
    assert factor != 1
    assert float(mixed.constants.step_s) == pytest.approx(float(dense.constants.step_s) * factor)
    assert mixed.deviation("tpot", experts=True) > dense.deviation("tpot", experts=True)


def test_no_plan_counts_on_what_is_tuned_for_a_contest(catalog: Catalog, found: ServingCalibration) -> None:
    device = catalog.devices["h100-sxm-80gb"]
    plan, contest = (
        calibrated(found, device, "trt-llm", "fp8", experts=False, protocol=protocol) for protocol in ("", "mlperf")
    )
    assert float(contest.constants.step_s) < float(plan.constants.step_s)


def test_a_card_in_an_engine_of_one_card_is_known_by_its_own_rows(catalog: Catalog, found: ServingCalibration) -> None:
    """Llama.cpp reads an A100's memory at half of the rate that it comes near on a 4090."""
    shares = [
        float(calibrated(found, catalog.devices[card], "llama.cpp", "bf16", experts=False).constants.bandwidth)
        for card in ("a100-sxm-80gb", "rtx-4090")
    ]
    assert shares[0] < 0.8 * shares[1]
    assert not calibrated(found, catalog.devices["rtx-4090"], "vllm", "bf16", experts=False).names["card"]


def test_a_file_of_before_says_nothing_of_levels_that_came_later(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "hardware" / "calibration" / "serving.yaml").read_text(encoding="utf-8")
    kept, inside = [], False
    for line in text.splitlines():
        inside = line.startswith(("mixtures:", "protocols:", "cards:")) or (inside and line.startswith("  "))
        if not inside and not line.startswith(("  mixture:", "  protocol:", "  card:")):
            kept.append(line)
    path, problems = tmp_path / "serving.yaml", Problems()
    path.write_text("\n".join(kept))
    read = read_serving(path, problems)
    assert read is not None
    assert not problems
    assert "mixture" not in read.traits
    device = load_catalog().devices["h100-sxm-80gb"]
    dense, mixed = (calibrated(read, device, "vllm", "bf16", experts=experts) for experts in (False, True))
    assert mixed.constants == dense.constants
    assert mixed.deviation("tpot", experts=True) == dense.deviation("tpot", experts=True)


@pytest.mark.parametrize("kind", ["tpot", "ttft", "throughput"])
def test_what_was_not_seen_is_wider(catalog: Catalog, found: ServingCalibration, kind: str) -> None:
    device = catalog.devices["h100-sxm-80gb"]
    seen = calibrated(found, device, "vllm", "bf16", experts=False)
    new_engine = calibrated(found, device, "an engine of 2030", "bf16", experts=False)
    width = seen.deviation(kind, experts=False)
    assert new_engine.deviation(kind, experts=False) > width
    new_pair = dataclasses.replace(seen, names={**seen.names, "pair": "vllm on a family of 2030"})
    assert new_pair.deviation(kind, experts=False) > width
    for layout in ("pipeline", "host links", "nodes", "disaggregated", "one of 2030"):
        assert seen.deviation(kind, experts=False, layout=layout) > width
    foreign = dataclasses.replace(seen, names={**seen.names, "format": "vllm 2 bits unpacked"})
    assert foreign.deviation(kind, experts=False) > width


def test_tags_follow_rows_of_the_pair_and_the_kind_of_figure(catalog: Catalog, found: ServingCalibration) -> None:
    hopper = calibrated(found, catalog.devices["h100-sxm-80gb"], "vllm", "fp8", experts=False)
    band = hopper.band("tpot", experts=False)
    assert (band.tag, band.rows > 50, band.sources > 3) == ("calibrated", True, True)
    assert band.p10 < band.p50 < band.p90
    apart = hopper.band("tpot", experts=False, layout="disaggregated")
    assert (apart.tag, apart.rows, apart.sources) == ("inherited", 0, 0)
    assert apart.p90 > band.p90
    pair = next(
        (engine, family)
        for engine in ("sglang", "trt-llm")
        for family in ("ada", "ampere", "cdna3")
        if f"{engine} on {family}" not in found.traits["pair"]
    )
    device = next(one for one in catalog.devices.values() if one.family == pair[1])
    assert calibrated(found, device, pair[0], "bf16", experts=False).band("tpot", experts=False).tag == "inherited"
    assert (
        calibrated(found, device, "an engine of 2030", "bf16", experts=False).band("tpot", experts=False).tag
        == "unfitted"
    )


def test_rows_of_dense_models_do_not_stand_behind_experts(catalog: Catalog, found: ServingCalibration) -> None:
    """Of a pair with rows of one of the two alone: the other is inherited, and wider than if it had been seen."""
    devices = {one.family: one for one in catalog.devices.values()}
    one_kind = wider = 0
    for name, trait in found.traits["pair"].items():
        engine, _, family = name.partition(" on ")
        kinds = {kind.endswith(" experts") for kind in trait.rows}
        if len(kinds) != 1 or family not in devices:
            continue
        one_kind += 1
        (seen,) = kinds
        own = calibrated(found, devices[family], engine, "bf16", experts=False)
        met = dataclasses.replace(
            trait, rows={**trait.rows, **{f"{k.split()[0]}{'' if seen else ' experts'}": (1, 1) for k in trait.rows}}
        )
        traits = {**found.traits, "pair": {**found.traits["pair"], name: met}}
        other = dataclasses.replace(own, found=dataclasses.replace(found, traits=traits))
        for kind in ("tpot", "ttft", "throughput"):
            assert own.band(kind, experts=not seen).tag == "inherited"
            assert own.band(kind, experts=not seen).rows == 0
            wider += own.deviation(kind, experts=not seen) > other.deviation(kind, experts=not seen)
            assert own.deviation(kind, experts=not seen) >= other.deviation(kind, experts=not seen)
            assert own.deviation(kind, experts=seen) == other.deviation(kind, experts=seen)
    assert one_kind > 5
    assert wider > 5


def test_formats_and_layouts_have_kinds(catalog: Catalog) -> None:
    hopper, blackwell, ampere = (catalog.devices[name] for name in ("h100-sxm-80gb", "b200-sxm", "a100-sxm-80gb"))
    assert [format_kind("bf16", hopper), format_kind("fp8", hopper), format_kind("fp8", ampere)] == [
        "", "8 bits", "8 bits unpacked",
    ]  # fmt: skip
    assert [format_kind("nvfp4", blackwell), format_kind("nvfp4", hopper), format_kind("int4", blackwell)] == [
        "4 bits", "4 bits unpacked", "4 bits unpacked",
    ]  # fmt: skip
    # DeepSeek's own checkpoints: 8 bits, a scale for each block, and the units of fp8
    assert [format_kind("fp8-block", hopper), format_kind("fp8-block", ampere)] == ["8 bits", "8 bits unpacked"]
    assert layout_kind(1, 1, 1, 1.0) == layout_kind(8, 1, 8, 0.0) == ""
    assert layout_kind(2, 1, 1, 0.0) == layout_kind(2, 1, 8, 1.0) == "host links"
    assert layout_kind(16, 1, 8, 0.0) == "nodes"
    assert layout_kind(16, 2, 8, 0.0) == "pipeline"
    assert layout_kind(1, 1, 1, 0.0, apart=True) == "disaggregated"


def band(low: float, high: float) -> Band:
    return Band(p10=low, p50=1.0, p90=high, rows=9, sources=3, median_error=0.1, mean_error=0.1, p90_error=0.2)


def test_a_replica_is_sized_by_throughput_too() -> None:
    """A rate that may be half of that predicted doubles every time, however well the time per token is known."""
    tier = ServingTier(
        tier="analytic", engine="vllm", family="hopper", constants=TEXTBOOK, tag="calibrated", tpot=band(0.9, 1.1),
        ttft=band(0.5, 3.0), throughput=band(0.5, 1.1),
    )  # fmt: skip
    assert tier.margins(0.9).engine == pytest.approx(2.0)
    assert tier.margins(0.9).first_token == pytest.approx(1.5)
    assert dataclasses.replace(tier, throughput=band(0.95, 1.1)).margins(0.9).engine == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("catalog/serving/v2", "catalog/serving/v1", "wrong-schema"),
        ("  tpot:\n    dense: {spread:", "  tpot:\n    other: {spread:", "missing-field"),
        ("  engine: {work:", "  another: {work:", "missing-field"),
        ("    dense: {spread: 0", "    dense: {spread: -0", "out-of-range"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, before: str, after: str, code: str) -> None:
    text = (Path(__file__).parents[2] / "hardware" / "calibration" / "serving.yaml").read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "serving.yaml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    problems = Problems()
    assert read_serving(path, problems) is None
    assert code in {problem.reference for problem in problems}


def test_a_plan_of_a_model_with_experts_takes_their_factors(catalog: Catalog) -> None:
    """Nothing that ships serves one: that plans told the tier of a dense model was seen by no golden."""
    fleet = "{name: chat, model: qwen3-30b-a3b, qpm: 60, input_tokens: 500, output_tokens: 100}"
    text = f"{{schema: plan/v1, name: one, serving: [{fleet}]}}"
    (asked,) = parse_scenario(text, file="one.yaml").serving
    device = catalog.devices["h100-sxm-80gb"]
    tier = tier_on(asked, load_model("qwen3-30b-a3b"), device, catalog)
    own, dense = (serving_constants(catalog, device, tier.engine, asked.weights, experts=has) for has in (True, False))
    assert tier.constants == own.constants != dense.constants
