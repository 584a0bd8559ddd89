"""Reading configs: families, layer kinds, and everything that can be wrong with a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture.config import Config, parse_json
from planner.architecture.families import FAMILIES
from planner.architecture.from_config import build
from planner.architecture.load import (
    PRESETS,
    coarse_model,
    list_presets,
    load_model,
    preset_of,
    preset_summary,
)
from planner.errors import InputError
from tests.tiers import settings

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000}
DEEPSEEK = json.loads((PRESETS / "deepseek-v3.json").read_text())["config"]


def read(config: Any, folder: Path) -> Any:
    file = folder / "config.json"
    file.write_text(config if isinstance(config, str) else json.dumps(config, indent=1))
    return load_model(str(file))


def without(config: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != key}


def test_file_folder_and_preset_agree(tmp_path: Path) -> None:
    model = read({**LLAMA, "max_position_embeddings": 8192}, tmp_path)
    assert model.parameters == load_model("llama-3-8b").parameters == load_model(str(tmp_path)).parameters
    assert load_model(tmp_path).name == tmp_path.name
    assert model.source == str(tmp_path / "config.json")


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_reads_as_a_bare_config(name: str, tmp_path: Path) -> None:
    config = json.loads((PRESETS / f"{name}.json").read_text())["config"]
    assert read(config, tmp_path).layers == load_model(name).layers


# held to counts of checkpoints in test_encoders.py
WITHOUT_PRESET = {
    "gemma4_text",
    "logics",
    "mamba2",
    "molmo",
    "qwen",
    "qwen2_5_vl_text",
    "qwen3_vl_moe_text",
    "qwen3_vl_text",
}


def test_every_family_has_a_preset_or_a_count_of_its_own() -> None:
    assert {load_model(name).family for name in list_presets()} & set(FAMILIES) == set(FAMILIES) - WITHOUT_PRESET
    assert set(FAMILIES) >= WITHOUT_PRESET


def test_nested_text_config_and_class_defaults(tmp_path: Path) -> None:
    """Multimodal Gemma 3 as published: sizes inside, and heads and vocabulary left to the class."""
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    model = read({"model_type": "gemma3", "text_config": {**inner, "sliding_window": 1024}}, tmp_path)
    assert model.parameters == load_model("gemma-3-4b").parameters
    assert model.layers == load_model("gemma-3-4b").layers


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("llama-3-8b", [(32, 0, 0)]),
        ("mistral-7b", [(32, 4096, 0)]),
        ("gemma-2-9b", [(21, 4096, 0), (21, 0, 0)]),
        ("gemma-3-27b", [(52, 1024, 0), (10, 0, 0)]),
        ("gpt-oss-120b", [(18, 128, 128), (18, 0, 128)]),
        ("deepseek-v3", [(3, 0, 0), (58, 0, 256)]),
        ("kimi-k2", [(1, 0, 0), (60, 0, 384)]),
        ("llama-4-scout-text", [(36, 8192, 16), (12, 0, 16)]),
        ("mixtral-8x7b", [(32, 0, 8)]),
        ("qwen3-next-80b-a3b", [(36, 0, 512), (12, 0, 512)]),
    ],
)
def test_layer_kinds(name: str, kinds: list[tuple[int, int, int]]) -> None:
    """(count, window, experts) of each kind, in order of first appearance."""
    layers = load_model(name).layers
    assert [(group.count, group.window_tokens, group.experts) for group in layers] == kinds


def test_layer_types_override_the_pattern(tmp_path: Path) -> None:
    kinds = ["full_attention"] * 31 + ["sliding_attention"]
    model = read({**LLAMA, "model_type": "mistral", "sliding_window": 1000, "layer_types": kinds}, tmp_path)
    assert [(group.count, group.window_tokens) for group in model.layers] == [(31, 0), (1, 1000)]


def test_qwen_window_is_off_unless_asked_for(tmp_path: Path) -> None:
    config = {**LLAMA, "model_type": "qwen2", "sliding_window": 4096, "max_window_layers": 28}
    assert [group.window_tokens for group in read(config, tmp_path).layers] == [0]
    used = read({**config, "use_sliding_window": True}, tmp_path).layers
    assert [(group.count, group.window_tokens) for group in used] == [(28, 0), (4, 4096)]


def test_interleaved_experts(tmp_path: Path) -> None:
    config = json.loads((PRESETS / "llama-4-scout-text.json").read_text())["config"]
    layers = read({**config, "interleave_moe_layer_step": 2}, tmp_path).layers
    assert sum(group.count for group in layers if group.experts) == 24
    assert all(group.mlp_width == 16384 for group in layers if not group.experts)


def test_mla_sizes() -> None:
    group = load_model("deepseek-v3").layers[0]
    assert (group.attention, group.kv_rank, group.rope_size, group.head_size, group.value_head_size) == (
        "mla",
        512,
        64,
        192,
        128,
    )


def test_mpt_of_the_benchmarks(tmp_path: Path) -> None:
    """MPT-7B with biases and learned positions at 2,048 tokens, as llm-foundry's benchmark table prints it."""
    config = json.loads((PRESETS / "mpt-7b.json").read_text())["config"]
    config |= {"vocab_size": 50368, "no_bias": False, "attn_config": {"alibi": False}}
    assert read(config, tmp_path).parameters == 6_658_859_008


def test_coarse_model() -> None:
    model = coarse_model(8e9)
    assert (model.parameters, model.active_parameters, model.matmul_parameters, model.layers) == (8e9, 8e9, 8e9, ())
    for size in (0, -1, float("nan"), float("inf"), 1e30):
        with pytest.raises(InputError, match="not possible"):
            coarse_model(size)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("llama-3.1-8", "llama-3.1-8b"),
        ("llama-3", "llama-3-70b"),
        ("mixtral", "mixtral-8x7b"),
        ("qwen2.5-7", "qwen2.5-7b"),
        ("deepseekv3", "deepseek-v3"),
        ("xyzzy", "plan models list"),
        ("", "plan models list"),
    ],
)
def test_unknown_preset_is_answered_with_the_nearest(name: str, suggested: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(name)
    (problem,) = caught.value.problems
    assert problem.reference == "unknown-model"
    assert suggested in problem.hint
    assert "{config: path/to/config.json}" in problem.hint


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("Mixtral-8x7B", "mixtral-8x7b"),
        ("Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("llama-3-8b-instruct", "llama-3-8b"),
        ("llama3.1:70b", "llama-3.1-70b"),
        ("deepseek-r1", "deepseek-v3"),
        ("qwq-32b", "qwen2.5-32b"),
    ],
)
def test_a_published_name_without_its_publisher_is_the_preset_of_its_shape(name: str, preset: str) -> None:
    """With it they were known, without it they were refused."""
    assert load_model(name) is load_model(preset)


OF_THE_SAME_SHAPE = {
    "phi-4": ("microsoft/phi-4", "Phi-4", "phi4"),
    "gpt-j-6b": ("EleutherAI/gpt-j-6b", "gptj", "gptj-99.9", "GPT-J-6B"),
    "llama-3.1-70b": (
        "unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "unsloth/Llama-3.3-70B-Instruct-unsloth-bnb-4bit",
        "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "amd/Llama-3.3-70B-Instruct-MXFP4-Preview",
        "Llama-3.1-Nemotron-70B", "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "deepseek-r1:70b",
    ),
    "llama-3.1-8b": (
        "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "llama3.1:8b-instruct-q4_K_M", "llama-3_1-8b",
        "NousResearch/Hermes-3-Llama-3.1-8B", "meta-llama/Llama-Guard-3-8B", "allenai/Llama-3.1-Tulu-3-8B",
    ),
    "llama-3.3-nemotron-super-49b": (
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-FP8",
    ),
    "llama-2-13b": ("vicuna-13b", "lmsys/vicuna-13b-v1.5"),
    "codellama-7b": ("codellama/CodeLlama-7b-Instruct-hf",),
    "mistral-7b-v0.2": ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ",),
    "mistral-7b-v0.3": ("mistralai/Mistral-7B-v0.3", "neuralmagic/Mistral-7B-Instruct-v0.3-FP8"),
    "mistral-7b": ("mistralai/Mistral-7B-Instruct-v0.1", "HuggingFaceH4/zephyr-7b-beta"),
    "mistral-nemo-12b": ("mistral-nemo", "mistralai/Mistral-Nemo-Base-2407"),
    "mistral-small-3.2-24b": ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Devstral-Small-2507"),
    "mistral-large-123b": ("mistralai/Mistral-Large-Instruct-2411",),
    "qwen2.5-32b": ("Qwen/QwQ-32B", "unsloth/Qwen2.5-32B-bnb-4bit"),
    "qwen2.5-32b-instruct": (
        "Qwen2.5-Coder-32B", "bartowski/Qwen2.5-32B-Instruct-GGUF", "Qwen/QwQ-32B-Preview",
    ),
    "qwen2.5-72b-instruct": ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4",),
    "qwen3-4b": ("qwen3-4b", "Qwen/Qwen3-4B-Base"),
    "qwen3-4b-2507": ("Qwen/Qwen3-4B-Thinking-2507",),
    "qwen3-8b": ("Intel/Qwen3-8B-int4-AutoRound-inc", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"),
    "qwen3-32b": ("mlx-community/Qwen3-32B-4bit",),
    "qwen3-30b-a3b-2507": (
        "unsloth/Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL-GGUF", "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8",
    ),
    "qwen3-235b-a22b-2507": ("Qwen3-235B-A22B-Thinking-2507",),
    "qwen3-coder-480b-a35b": ("Qwen3-Coder-480B", "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8"),
    "gemma-2b": ("google/gemma-2b-it",),
    "gemma-2-2b": ("google/gemma-2-2b-it", "gemma2:2b"),
    "gemma-3-27b": ("gemma3:27b", "google/gemma-3-27b-it-qat-q4_0-gguf"),
    "phi-3.5-mini": ("microsoft/Phi-3-mini-128k-instruct",),
    "deepseek-v3": ("nvidia/DeepSeek-R1-0528-FP4-v2", "deepseek-r1:671b", "deepseek2 671B Q3_K - Small"),
    "llama-3.2-1b": ("llama 1B F16",),
    "qwen3-235b-a22b": ("qwen3moe 235B.A22B Q5_K - Large",),
    "gemma-3-12b": ("gemma3 12B Q4_K - Medium",),
    "deepseek-v2": ("deepseek-ai/DeepSeek-Coder-V2-Instruct",),
    "kimi-k2": ("moonshotai/Kimi-K2-Instruct-0905",),
    "kimi-k2.5": ("moonshotai/Kimi-K2-Thinking",),
    "olmo-2-13b": ("allenai/OLMo-2-1124-13B-Instruct",),
    "pythia-2.8b": ("EleutherAI/pythia-2.8b-deduped",),
}  # fmt: skip
OF_ANOTHER_SHAPE = (
    "nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", "yuhuili/EAGLE3-LLaMA3.1-8B",
    "nvidia/Llama-3.1-Nemotron-Nano-4B-v1.1", "lmsys/vicuna-13b-v1.5-16k", "lmsys/vicuna-13b-v1.3", "01-ai/Yi-34B-200K",
    "Meta-Llama-3-8B-Instruct-262k", "llama-3.1-8b-eagle3", "Llama-3.1-8Bit", "Llama-2-7B-32K", "Yarn-Mistral-7b-128k",
    "mistralai/Mistral-Large-3-675B-Instruct-2512", "mistral-large-2512", "ministral-8b-2512", "Ministral-3-8B-2512",
    "command-r-08-2024", "microsoft/Phi-3-medium-128k-instruct", "microsoft/Phi-4-reasoning", "deepseek-r1:8b",
    "Qwen2.5-7B-Instruct-1M", "Qwen/Qwen2.5-Math-7B", "Qwen/Qwen2.5-VL-7B-Instruct", "allenai/OLMo-2-0325-32B",
    "zai-org/GLM-5.3-Flash", "fp8", "-", "",
)  # fmt: skip


@pytest.mark.parametrize(("name", "preset"), [(n, preset) for preset, ns in OF_THE_SAME_SHAPE.items() for n in ns])
def test_names_of_hubs_and_engines_find_the_preset_of_their_shape(name: str, preset: str) -> None:
    assert preset_of(name) == preset


@pytest.mark.parametrize("name", OF_ANOTHER_SHAPE)
def test_a_name_that_reads_like_that_of_a_preset_and_is_of_another_shape_finds_none(name: str) -> None:
    """Wrong is worse than none: a config is asked for, where a wrong shape would be priced."""
    assert preset_of(name) is None


def test_a_name_is_looked_up_without_reading_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 82 presets were opened to look up one name; each still goes by what its model is published as."""
    published = {name: json.loads((PRESETS / f"{name}.json").read_text())["hf_id"] for name in list_presets()}
    monkeypatch.setattr("planner.architecture.load.read_text", None)
    preset_of.cache_clear()
    assert [(name, hub) for name, hub in published.items() if "/" in hub and preset_of(hub) != name] == []


def test_models_of_one_shape_and_other_contexts_are_told_apart() -> None:
    """Prompts of 60,000 tokens for Qwen3-235B-A22B-2507 were refused for the 40,960 positions of its elder."""
    positions = {name: load_model(name).max_positions for name in (
        "Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B", "codellama-7b", "Kimi-K2.5",
        "Qwen2.5-72B-Instruct", "Qwen2.5-72B")}  # fmt: skip
    assert list(positions.values()) == [262144, 40960, 16384, 262144, 32768, 131072]
    windows = [load_model(f"Mistral-7B-Instruct-v0.{minor}").layers[0].window_tokens for minor in (1, 2, 3)]
    assert windows == [4096, 0, 0]


BROKEN: dict[str, tuple[Any, str, str]] = {
    "unknown family": ({**LLAMA, "model_type": "rwkv"}, "unknown-architecture", "rwkv"),
    "no family": (without(LLAMA, "model_type"), "unknown-architecture", "model_type"),
    "family is a number": ({**LLAMA, "model_type": 7}, "unknown-architecture", "model_type"),
    "missing hidden size": (without(LLAMA, "hidden_size"), "missing-key", "hidden_size"),
    "missing layers": (without(LLAMA, "num_hidden_layers"), "missing-key", "num_hidden_layers"),
    "missing width": (without(LLAMA, "intermediate_size"), "missing-key", "intermediate_size"),
    "zero layers": ({**LLAMA, "num_hidden_layers": 0}, "out-of-range", "num_hidden_layers"),
    "negative vocabulary": ({**LLAMA, "vocab_size": -5}, "out-of-range", "vocab_size"),
    "absurd layers": ({**LLAMA, "num_hidden_layers": 10**9}, "out-of-range", "num_hidden_layers"),
    "huge number": ({**LLAMA, "hidden_size": 10**400}, "out-of-range", "hidden_size"),
    "text for a number": ({**LLAMA, "hidden_size": "4096"}, "wrong-type", "hidden_size"),
    "fraction": ({**LLAMA, "hidden_size": 4096.5}, "wrong-type", "hidden_size"),
    "true for a number": ({**LLAMA, "vocab_size": True}, "wrong-type", "vocab_size"),
    "list for a number": ({**LLAMA, "vocab_size": [1]}, "wrong-type", "vocab_size"),
    "number for a flag": ({**LLAMA, "tie_word_embeddings": 1}, "wrong-type", "tie_word_embeddings"),
    "not a number": (json.dumps(LLAMA).replace("4096", "NaN"), "bad-json", "NaN"),
    "infinity": (json.dumps(LLAMA).replace("4096", "Infinity"), "wrong-type", "hidden_size"),
    "infinite": (json.dumps(LLAMA).replace("4096", "1e999"), "wrong-type", "hidden_size"),
    "heads do not divide": ({**LLAMA, "num_key_value_heads": 7}, "heads-not-divisible", "7"),
    "hidden size does not divide": ({**LLAMA, "hidden_size": 4097}, "heads-not-divisible", "4097"),
    "more routed than experts": ({**MIXTRAL, "num_experts_per_tok": 9}, "out-of-range", "9"),
    "no experts": (without(MIXTRAL, "num_local_experts"), "missing-key", "num_local_experts"),
    "dense layers beyond": ({**DEEPSEEK, "first_k_dense_replace": 99}, "out-of-range", "99"),
    "no latent rank": (without(DEEPSEEK, "kv_lora_rank"), "missing-key", "kv_lora_rank"),
    "unknown layer kind": (
        {**LLAMA, "model_type": "mistral", "layer_types": ["linear_attention"] * 32},
        "unknown-layer-kind",
        "linear_attention",
    ),
    "too few layer kinds": (
        {**LLAMA, "model_type": "mistral", "layer_types": ["full_attention"]},
        "wrong-length",
        "layer_types",
    ),
    "layer kinds of odd types": (
        {**LLAMA, "model_type": "mistral", "layer_types": [{}, *["full_attention"] * 31]},
        "unknown-layer-kind",
        "layer_types",
    ),
    "learned positions unknown": (
        {**without(LLAMA, "max_position_embeddings"), "model_type": "gpt2"},
        "missing-key",
        "max_position_embeddings",
    ),
    "attention config is a list": ({**LLAMA, "model_type": "mpt", "attn_config": [1]}, "wrong-type", "attn_config"),
    "moe layers as text": (
        {**DEEPSEEK, "model_type": "llama4_text", "num_local_experts": 16, "head_dim": 128, "moe_layers": "all"},
        "wrong-type",
        "moe_layers",
    ),
    "a list": ("[1, 2]", "bad-json", "a list"),
    "cut short": ('{"model_type": "llama",', "bad-json", "JSON"),
    "given twice": ('{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}', "bad-json", "vocab_size"),
    "deeply nested": ('{"a":' * 100_000 + "1" + "}" * 100_000, "bad-json", ""),
    "digits without end": ('{"vocab_size": ' + "9" * 10_000 + "}", "bad-json", ""),
    "empty": ("", "bad-json", ""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_config_is_one_problem_with_place_and_hint(case: str, tmp_path: Path) -> None:
    config, reference, named = BROKEN[case]
    with pytest.raises(InputError) as caught:
        read(config, tmp_path)
    (problem,) = caught.value.problems
    assert problem.reference == reference
    assert named in problem.message
    assert problem.hint
    assert problem.places[0].file == str(tmp_path / "config.json")


def test_the_line_is_found(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read({**LLAMA, "vocab_size": -5}, tmp_path)
    place = caught.value.problems[0].places[0]
    lines = (tmp_path / "config.json").read_text().splitlines()
    assert lines[place.line - 1][place.column - 1 :].startswith('"vocab_size"')


def test_several_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read({**without(LLAMA, "hidden_size"), "vocab_size": -1, "intermediate_size": "wide"}, tmp_path)
    assert sorted(problem.reference for problem in caught.value.problems) == [
        "missing-key",
        "out-of-range",
        "wrong-type",
    ]


@pytest.mark.parametrize("ref", ["no/such/config.json", "gone.json", "./missing-folder/"])
def test_missing_file(ref: str) -> None:
    with pytest.raises(InputError):
        load_model(ref)


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load_model(str(tmp_path))


def test_unknown_family_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        build(Config({"model_type": "llamma"}, "config.json"), name="x", source="x")
    assert "llama" in caught.value.problems[0].hint.split("·")[0]
    assert all(family in caught.value.problems[0].hint for family in FAMILIES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, few=80)
@given(st.sampled_from(list_presets()), st.data())
def test_any_value_under_any_key_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Whatever stands in a config: an architecture, or an InputError; never another exception."""
    config = json.loads((PRESETS / f"{name}.json").read_text())["config"]
    key = data.draw(st.sampled_from(sorted(config)))
    config[key] = data.draw(JSON)
    try:
        text = json.dumps(config)
        model = build(Config(parse_json(text, "config.json"), "config.json", text), name=name, source="test")
    except InputError as error:
        refused = error
    else:
        assert model.parameters > 0
        assert model.layer_count >= 1
        return
    assert all(problem.places and problem.hint for problem in refused.problems)


def test_summary_has_every_preset() -> None:
    rows = preset_summary()
    assert [row["name"] for row in rows] == list(list_presets())
    assert all(row["parameters"] >= row["active_parameters"] > 0 for row in rows)


def test_loading_a_model_imports_nothing_heavy() -> None:
    code = "import sys; import planner.architecture.load as l; l.load_model('llama-3.1-8b'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "pandas", "scipy", "pulp", "yaml", "highspy"} & set(loaded)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n "a": "x NaN, y",\n "hidden_size": NaN,\n "b": NaN\n}', 3, 17),
        ('{\n "vocab_size": 1,\n "vocab_size": 2}', 3, 2),
        ('{\n "text_config": {"vocab_size": 3},\n "vocab_size": 1, "vocab_size": 2}', 0, 0),  # which of three?
    ],
)
def test_what_json_does_not_have_is_told_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(text, "config.json")
    place = caught.value.problems[0].places[0]
    assert (place.line, place.column) == (line, column)
