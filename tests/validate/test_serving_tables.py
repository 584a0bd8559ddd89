"""A user's table of serving rows: one bad cell refuses one row; models by name; what does not fit, by how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.architecture.load import load_model, preset_of
from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.validate.serving import NO_ROOM, predict_serving
from planner.validate.serving_entries import serving_architecture
from planner.validate.serving_rows import ServingRow, read_serving_table
from planner.validate.serving_setup import serving_engine, weight_format

HEAD = (
    "id,model,accelerator,n_accel,scenario,concurrency,input_tokens,output_tokens,tpot_ms,out_of_memory,heads,kv_heads"
)
SOUND = "a,llama-3.1-8b,H100,1,closed loop,16,1000,200,9.1,,,"
CATALOG = load_catalog()


def table(tmp_path: Path, *lines: str, head: str = HEAD) -> Path:
    path = tmp_path / "own.csv"
    path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("b,llama-3.1-8b,H100,one,closed loop,16,1000,200,9.1,,,", "n_accel is 'one'"),
        ("b,llama-3.1-8b,H100,1,closed loop,-3,1000,200,9.1,,,", "concurrency"),
        ("b,llama-3.1-8b,H100,1,closed loop,16,1000,200,9.1,1,,", "out_of_memory is 1, and tpot_ms is 9.1"),
        ("b,llama-3.1-8b,H100,1,closed loop,16,1000,200,9.1,,8,32", "kv_heads is 32, and heads is 8"),
    ],
)
def test_a_wrong_row_is_refused_and_the_others_go_on(tmp_path: Path, wrong: str, words: str) -> None:
    found = read_serving_table(table(tmp_path, SOUND, wrong, SOUND.replace("a,", "c,", 1)))
    assert [row.id for row in found.rows] == ["a", "c"]
    assert list(found.refused) == ["b"]
    assert words in found.refused["b"]


def test_columns_of_other_names_are_passed_over_and_needed_ones_asked_for(tmp_path: Path) -> None:
    assert read_serving_table(table(tmp_path, SOUND + ",x", head=HEAD + ",oddity")).ignored == ("oddity",)
    with pytest.raises(InputError):
        read_serving_table(table(tmp_path, "a,llama-3.1-8b", head="id,model"))


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("zai-org/GLM-4.5-Air-FP8", "glm-4.5-air"), ("zai-org/GLM-4.6", "glm-4.6"), ("GLM-4.7", "glm-4.6"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"), ("deepseek-r1", "deepseek-v3"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"), ("Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Llama-3.3-70B", "llama-3.1-70b"), ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b-2507"),
        ("Qwen3-VL-32B-Instruct-FP8", "qwen3-32b"), ("Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b"), ("DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"),
        ("GLM-5.2-FP8", "glm-5"), ("GLM-4.7-Flash", None), ("Llama-4-Maverick-17B-128E", "llama-4-maverick-text"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"), ("Mistral-Large-Instruct-2407", "mistral-large-123b"),
        ("llama2-70b-99.9", "llama-2-70b"), ("llama3.1-8b-edge", "llama-3.1-8b"),
        ("llama2-7b", "llama-2-7b"), ("my-own-model", None), ("Llama-3.1-8Bit", None), ("", None),
    ],
)  # fmt: skip
def test_a_published_name_is_a_preset(name: str, preset: str | None) -> None:
    assert preset_of(name) == preset


def test_a_row_without_a_shape_is_the_preset_of_its_name() -> None:
    row = ServingRow(model="zai-org/GLM-4.5-Air-FP8", accelerator="H200", n_accel=4, scenario="closed loop")
    assert serving_architecture(row).parameters == load_model("glm-4.5-air").parameters
    assert weight_format(row) == "fp8"
    other = ServingRow(
        model="llama-3.1-8b", layers=4, hidden=1024, heads=8, accelerator="H200", n_accel=1, scenario="x"
    )
    assert serving_architecture(other).layer_count == 4  # a shape that contradicts the name wins


def test_what_does_not_fit_says_by_how_much_and_in_which_format() -> None:
    row = ServingRow(model="GLM-4.6", accelerator="H100", n_accel=1, tp=1, scenario="closed loop", concurrency=1.0,
                     input_tokens=1000.0, output_tokens=200.0, engine="vllm")  # fmt: skip
    said = predict_serving([row], CATALOG)[0]
    assert (said.skipped or "").startswith(f"{NO_ROOM}: 708")  # 352.8e9 parameters of two bytes, and a workspace
    assert "(weights in bf16, cache in bf16)" in (said.skipped or "")


@pytest.mark.parametrize(
    ("accelerator", "model", "weights", "engine", "fits"),
    [
        ("4080 16GB", "Llama-3-8B", "F16", "llama.cpp", True),  # the input embedding stays with the host
        ("4070 Ti 12GB", "Llama-3-8B", "F16", "vllm", False),
        ("L40S 48GB", "Llama-3-70B", "Q4_K_M", "llama.cpp", True),
        ("4070 Ti 12GB", "Llama-3-8B", "F16", "llama.cpp", False),
    ],
)
def test_local_engines_have_a_memory_rule_of_their_own(
    accelerator: str, model: str, weights: str, engine: str, fits: bool
) -> None:
    row = ServingRow(model=model, accelerator=accelerator, n_accel=1, engine=engine, weight_precision=weights,
                     scenario="llama-bench tg1024 / pp1024", output_tokens=1024.0)  # fmt: skip
    assert predict_serving([row], CATALOG)[0].fits == fits


@pytest.mark.parametrize(
    ("engine", "version", "name"),
    [
        ("vllm", "0.6.3/0.6.4 (Nov 2024)", "vllm-0"), ("vllm", "vLLM 0.4.3+rocm614, ROCm 6.1.0", "vllm-0"),
        ("vllm", "ROCm build (Nov 2024)", "vllm-0"), ("vllm", "0.10.0 (ROCm 6.4.1)", "vllm"), ("vllm", "0.8.5", "vllm"),
        ("vllm", "vLLM 0.9.0.2.dev108+g71faa1880.d20250730.rocm641", "vllm"), ("vllm", None, "vllm"),
        ("trtllm", "0.9.0", "trt-llm-0"), ("trtllm", "1.0.0", "trt-llm"), ("lmdeploy-turbomind", "0.2.0", "lmdeploy"),
        ("fastertransformer", None, "fastertransformer"), ("an own one", "2024", "an own one"),
    ],
)  # fmt: skip
def test_an_engine_that_was_written_anew_is_two(engine: str, version: str | None, name: str) -> None:
    assert serving_engine(ServingRow(model="m", engine=engine, engine_version=version)) == name
