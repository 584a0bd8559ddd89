"""Scenarios as the other rooms see them: values, defaults, overrides, --set, includes, places."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import get_args

import pytest

from planner.equations.memory import OPTIMIZERS
from planner.errors import InputError, Problem
from planner.estimate.serving_formats import FORMATS
from planner.scenario import Scenario, load_scenario, parse_scenario
from planner.scenario import schema as models
from planner.scenario.load import NOT_YET

GOOD = Path(__file__).parents[1] / "faults" / "good"
LLAMA = GOOD / "llama.yaml"
SMALL = """\
schema: plan/v1
name: small
training:
  - name: a
    model: gpt2-xl
    tokens: 1B
    deadline: 10 days
serving:
  - {name: f, model: gpt2-xl, qpm: 60, input_tokens: 100, output_tokens: 50}
"""


def problems(text: str, **options: object) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        parse_scenario(text, **options)  # type: ignore[arg-type]
    return caught.value.problems


def test_full_scenario() -> None:
    scenario = load_scenario(LLAMA)
    job, fleet = scenario.training[0], scenario.serving[0]
    assert (scenario.name, scenario.horizon_s, scenario.objective) == ("llama", 730 * 3600, ("cost", "time"))
    assert (job.tokens, job.epochs, job.deadline_s, job.start_s, job.start) == (200e9, 1, 30 * 86400, 0, "2026-12-01")
    assert job.model.preset == "llama-3.1-8b"
    assert job.global_batch is not None
    assert (job.global_batch.min_tokens, job.global_batch.max_tokens) == (4e6, 4e6)
    assert (job.global_batch.min_sequences, job.global_batch.max_sequences) == (None, None)
    assert (job.recompute, job.sharding) == (("none", "selective", "full"), ("zero-1", "zero-3"))
    assert (job.mfu, job.failures, job.count) == ({"h100-sxm-80gb": 0.42}, "none", 1)
    assert (fleet.qpm, fleet.input_tokens, fleet.output_tokens, fleet.weights) == (600, 1500, 400, "fp8")
    assert scenario.hardware.allow == ("h100-sxm-80gb", "a100-sxm-80gb", "l40s", "tpu-v5e", "v100-*")
    assert scenario.limits.budget_microusd == 60_000 * 10**6
    assert (scenario.limits.max_devices, scenario.limits.power_w) == (128, 120e3)
    assert scenario.resolved["training"][0]["tokens"] == "200B"
    assert "overrides" not in scenario.resolved
    assert scenario.file == str(LLAMA)


def test_defaults() -> None:
    scenario = parse_scenario(SMALL)
    job, fleet = scenario.training[0], scenario.serving[0]
    assert (scenario.estimator, scenario.currency, scenario.objective) == ("analytic", "USD", ("cost",))
    assert scenario.horizon_s == 730 * 3600
    assert (job.precision, job.optimizer, job.failures, job.critical_batch_tokens) == ("bf16", "adamw", None, None)
    assert job.recompute == ("none", "selective", "full")
    assert job.sharding == ("none", "zero-1", "zero-2", "zero-3")
    assert (job.stack.attention, job.stack.cross_entropy, job.stack.allocator) == ("flash", "fused", "default")
    assert (fleet.weights, fleet.kv_cache, fleet.peak_factor, fleet.target_load) == ("bf16", "bf16", 2.0, 0.8)
    assert (fleet.spare_replicas, fleet.min_replicas, fleet.limits.memory_fraction) == (0, 0, None)
    assert fleet.throughput_tokens_per_s_per_device is None
    hardware = scenario.hardware
    assert (hardware.catalog, hardware.allow, hardware.regions, hardware.pricing) == (
        None, ("*",), ("*",), ("on_demand",))  # fmt: skip
    assert not any(getattr(scenario.limits, name) for name in type(scenario.limits).model_fields)
    assert (scenario.scheduled, scenario.periods, scenario.period_s) == (False, 1, scenario.horizon_s)


def test_every_implemented_form() -> None:
    scenario = parse_scenario(
        SMALL.replace("    deadline: 10 days\n", """\
    hours: 720
    global_batch: {min: 256 sequences, max: 1k sequences}
    recompute: full
    sharding: zero-3
    framework: megatron
    stack: {attention: eager, cross_entropy: fused, allocator: expandable}
    count: 20
    critical_batch: 8M tokens
    mix_within_job: false
    schedule: fixed
""")
        .replace("output_tokens: 50", "output_tokens: 50, throughput: 2100 tokens/s, speed: 20 tokens/s, "
                 "disaggregated: false, arrival_variability: 1, limits: {max_num_seqs: 256, memory_fraction: 0.85}")
        + """\
hardware:
  catalog: my-hardware
  deny: [k80]
  owned: [{shape: dgx-a100-80gb, count: 2, price: $9.80/h, region: home}]
  quotas: [{provider: gcp, device: "h100-*", region: "us-*", price_model: on_demand, max_devices: 0, max_shapes: 4}]
  assume_inter_node: 100 Gbit/s
limits: {budget: $60000, max_providers: 2, spend: $500/h, carbon: 5 t}
objective: time
""",
        file="folder/s.yaml",
    )  # fmt: skip
    job, fleet, hardware, limits = scenario.training[0], scenario.serving[0], scenario.hardware, scenario.limits
    assert (job.deadline_s, job.count, job.critical_batch_tokens) == (720 * 3600, 20, 8e6)
    assert job.global_batch is not None
    assert (job.global_batch.min_sequences, job.global_batch.max_sequences) == (256, 1000)
    assert (job.recompute, job.sharding, job.framework) == (("full",), ("zero-3",), "megatron")
    assert (fleet.throughput_tokens_per_s_per_device, fleet.speed_tokens_per_s_per_user) == (2100, 20)
    assert (fleet.limits.max_num_seqs, fleet.limits.memory_fraction) == (256, 0.85)
    assert (hardware.catalog, hardware.deny) == (os.path.join("folder", "my-hardware"), ("k80",))  # noqa: PTH118
    owned, quota = hardware.owned[0], hardware.quotas[0]
    assert (owned.shape, owned.count, owned.price_microusd_per_hour, owned.region) == (
        "dgx-a100-80gb", 2, 9_800_000, "home")  # fmt: skip
    assert (quota.provider, quota.max_devices, quota.max_shapes, quota.price_model) == ("gcp", 0, 4, "on_demand")
    assert hardware.assume_inter_node_bytes_per_s == 12.5e9
    assert (limits.spend_microusd_per_hour, limits.carbon_g) == (500_000_000, 5e6)
    assert scenario.objective == ("time",)


def test_model_references() -> None:
    def model(text: str) -> models.ModelRef:
        return parse_scenario(SMALL.replace("model: gpt2-xl\n", f"model: {text}\n"), file="d/s.yaml").training[0].model

    assert model("{config: m/config.json}").config == os.path.join("d", "m", "config.json")  # noqa: PTH118
    assert model("{parameters: 8B}").parameters == 8_000_000_000
    assert model("{preset: gpt2}").preset == "gpt2"


def test_starts_count_from_the_earliest_date() -> None:
    job = "  - {name: NAME, model: gpt2, tokens: 1B, hours: 1START}\n"
    text = "schema: plan/v1\nname: s\ntraining:\n" + "".join(
        job.replace("NAME", name).replace("START", f", start: {start}" if start else "")
        for name, start in [
            ("a", "2026-12-03"),
            ("b", "2026-12-01"),
            ("c", "10 days"),
            ("d", ""),
            ("e", "2026-12-01 06:00"),
        ]
    )
    scenario = parse_scenario(text)
    assert [job.start_s / 3600 for job in scenario.training] == [48, 0, 240, 0, 6]
    assert scenario.begin == "2026-12-01"
    assert parse_scenario(SMALL).begin is None


def test_empty_values_count_as_not_given() -> None:
    scenario = parse_scenario(SMALL.replace("50}", "50, throughput: null, slo: }") + "limits:\n")
    assert scenario.limits.budget_microusd is None
    assert "slo" not in scenario.resolved["serving"][0]


def test_case_and_settings_and_their_places() -> None:
    scenario = load_scenario(
        LLAMA,
        case="launch",
        settings=["training.pretrain-8b.tokens=300B", "limits.power=", "hardware.allow=[a100-sxm-80gb, 't4*']",
                  "serving[0].weights=int8", "serving.0.target_load=70 %", "limits.carbon=5 t",
                  "training.pretrain-8b.mfu.h100-sxm-80gb=0.5"],
    )  # fmt: skip
    job, fleet = scenario.training[0], scenario.serving[0]
    assert (job.deadline_s, job.tokens, fleet.qpm, fleet.weights, fleet.target_load) == (
        14 * 86400,
        300e9,
        1200,
        "int8",
        0.7,
    )
    assert (scenario.limits.budget_microusd, scenario.limits.power_w) == (90_000 * 10**6, None)
    assert (scenario.limits.carbon_g, job.mfu) == (5e6, {"h100-sxm-80gb": 0.5})
    assert scenario.hardware.allow == ("a100-sxm-80gb", "t4*")
    assert (scenario.case, len(scenario.settings)) == ("launch", 7)
    lines = LLAMA.read_text(encoding="utf-8").splitlines()
    place = scenario.places["training[0].deadline"]
    assert (place.file, place.text) == (str(LLAMA), next(line for line in lines if "tight: " in line))
    assert place.text[place.column - 1 :].startswith("14 days")
    place = scenario.places["training[0].tokens"]
    assert (place.file, place.line, place.column, place.text) == ("--set", 1, 29, "training.pretrain-8b.tokens=300B")
    assert str(scenario.places["hardware.allow[1]"]) == "--set:1:32"
    assert scenario.places["training[0].name"].file == str(LLAMA)


def test_the_scenario_on_file_is_not_changed_by_a_case() -> None:
    assert load_scenario(LLAMA).serving[0].qpm == 600
    assert load_scenario(LLAMA, case="rush").serving[0].qpm == 600


def test_shared_anchors_are_not_changed_through_one_path() -> None:
    job = "  - {name: NAME, model: gpt2, tokens: 1B, hours: 1, stack: STACK}\n"
    jobs = [("a", "&s {attention: eager}"), ("b", "*s")]
    text = "schema: plan/v1\nname: s\ntraining:\n" + "".join(
        job.replace("NAME", name).replace("STACK", stack) for name, stack in jobs
    )
    scenario = parse_scenario(text, settings=["training.a.stack.attention=flash"])
    assert [job.stack.attention for job in scenario.training] == ["flash", "eager"]


def test_names_with_dots_are_found() -> None:
    text = SMALL.replace("name: a\n", "name: llama-3.1\n")
    assert parse_scenario(text, settings=["training.llama-3.1.tokens=5"]).training[0].tokens == 5


@pytest.mark.parametrize(
    ("setting", "reference", "column", "hint"),
    [
        ("training.b.tokens=1B", "bad-reference", 1, "there is: a"),
        ("training[3].tokens=1B", "bad-reference", 1, "there is: a"),
        ("trainig.a.tokens=1B", "bad-reference", 1, "'training'"),
        ("training.a.tokns=1B", "unknown-field", 1, "'tokens'"),
        ("training.a.name.x=1B", "bad-reference", 1, "shorten"),
        ("training.a.deadline=30", "missing-unit", 21, '"30 days"'),
        ("training.a.deadline=1:30", "ambiguous-number", 21, "90 min"),
        ("hardware.allow=[*]", "bad-yaml", 18, "quotes"),
        ("overrides.x=1", "bad-reference", 1, "there is"),
        ("limits.budget", "bad-reference", 1, "PATH=VALUE"),
        ("=3", "bad-reference", 1, "PATH=VALUE"),
        ("limits=3", "wrong-type", 8, "write limits: {"),
        ("limits.budget=$60\x1b000", "bad-yaml", 18, "remove"),
        ("training.a.deadline=", "missing-field", 5, "deadline"),
        ("limits[0]=1", "bad-reference", 1, "field"),
    ],
)
def test_bad_settings(setting: str, reference: str, column: int, hint: str) -> None:
    found = problems(SMALL, settings=[setting])
    assert [problem.reference for problem in found] == [reference], found
    assert hint in found[0].hint
    assert found[0].places[0].column == column
    assert found[0].places[0].file == ("--set" if reference != "missing-field" else "scenario.yaml")


FLEET = """schema: plan/v1
name: s
serving:
  - name: f
    model: llama-3.1-8b
    qpm: 600
    input_tokens: 800
    output_tokens: 200
    EXTRA
"""


def test_a_draft_of_which_only_the_size_is_known_is_refused() -> None:
    text = FLEET.replace("EXTRA", "speculative: {length: 3, acceptance: 70 %, model: 1B}")
    (found,) = problems(text)
    assert (found.reference, found.places[0].line) == ("no-layers", 9)
    assert "llama-3.2-1b" in found.hint


@pytest.mark.parametrize("share", ["100 %", "1", "1.0", "99.99999999999999999 %", "0", "0 %"])
def test_no_replica_is_up_all_the_time(share: str) -> None:
    (found,) = problems(FLEET.replace("EXTRA", f"availability: {share}"))
    assert (found.reference, found.places[0].line) == ("out-of-range", 9)
    assert "it must be above 0 and below 1" in found.message
    assert parse_scenario(FLEET.replace("EXTRA", "availability: 99.999 %")).serving[0].availability == 0.99999


DUE = """schema: plan/v1
name: s
BEGIN
training:
  - {name: a, model: gpt2-xl, tokens: 1B, deadline: 2026-12-20}
"""


@pytest.mark.parametrize(
    ("begin", "references"),
    [("begin: 2026-13-45", ["out-of-range"]), ("begin: yesterday", ["wrong-type"]),
     ("begn: 2026-12-01", ["unknown-field"]),
     ("begin:", ["missing-field"]), ("", ["missing-field"]), ("begin: 2026-12-01", [])],
)  # fmt: skip
def test_a_begin_that_is_mistyped_is_one_mistake(begin: str, references: list[str]) -> None:
    text = DUE.replace("BEGIN", begin)
    assert [one.reference for one in problems(text)] == references if references else parse_scenario(text)


def test_the_day_of_rates_is_named_where_it_is_none() -> None:
    (found,) = problems(DUE.replace("BEGIN", "begin: 2026-12-01\ncurrency: {EUR: 1.08, as_of: 2026-02-30}"))
    assert found.message == "as_of of currency is '2026-02-30', which is not a date of the calendar"


def test_autoscaling_wants_a_load_to_follow() -> None:
    (found,) = problems(FLEET.replace("EXTRA", "autoscaling: {start_up: 10 min}"))
    assert (found.reference, found.places[0].line) == ("conflict", 9)
    assert "does not act" in found.message
    assert parse_scenario(
        FLEET.replace("EXTRA", "availability: 99 %"), settings=["serving.f.autoscaling={start_up: 1 h}"]
    )
    assert parse_scenario(FLEET.replace("EXTRA", "autoscaling: null"))


def test_unknown_case() -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(LLAMA, case="rsh")
    assert caught.value.problems[0].reference == "bad-reference"
    assert caught.value.problems[0].hint == "did you mean 'rush'?"
    assert "defines none" in problems(SMALL, case="rush")[0].hint


def test_all_problems_of_file_overrides_and_settings_at_once() -> None:
    text = SMALL.replace("tokens: 1B", "tokens: 1b") + "overrides: {x: {training.a.epochs: 0}}\n"
    found = problems(text, settings=["limits.budget=5"])
    assert [p.reference for p in found] == ["ambiguous-suffix", "out-of-range", "missing-unit"]


# ---- includes


def test_include_merges_below_and_keeps_places(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "hardware.yaml").write_text("hardware: {allow: [t4], deny: [k80]}\nlimits: {max_devices: 8}\n")
    (tmp_path / "main.yaml").write_text(SMALL + "include: [sub/hardware.yaml]\nhardware: {allow: [l4]}\n")
    scenario = load_scenario(tmp_path / "main.yaml")
    assert (scenario.hardware.allow, scenario.hardware.deny) == (("l4",), ("k80",))
    assert scenario.limits.max_devices == 8
    assert scenario.places["limits.max_devices"].file == str(tmp_path / "sub" / "hardware.yaml")
    assert scenario.places["hardware.allow"].file == str(tmp_path / "main.yaml")


def test_mistake_in_an_include_is_placed_there(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("limits:\n  budget: 60000\n")
    (tmp_path / "main.yaml").write_text(SMALL + "include: base.yaml\n")
    with pytest.raises(InputError) as caught:
        load_scenario(tmp_path / "main.yaml")
    assert [str(p.places[0]) for p in caught.value.problems] == [f"{tmp_path / 'base.yaml'}:2:11"]


@pytest.mark.parametrize("kind", ["circle", "link-out", "folder-link-out", "fifo", "device", "bomb", "empty", "absent"])
def test_bad_includes(kind: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "x.yaml").write_text("limits: {max_devices: 8}\n")
    target = inside / "x.yaml"
    if kind == "circle":
        target.write_text("include: x.yaml\n")
    elif kind == "link-out":
        target.symlink_to(outside / "x.yaml")
    elif kind == "folder-link-out":
        (inside / "sub").symlink_to(outside)
    elif kind == "fifo":
        os.mkfifo(target)
    elif kind == "device":
        target.symlink_to("/dev/zero")
    elif kind == "bomb":
        target.write_text("a: " + "[" * 1000)
    elif kind == "empty":
        target.write_text("")
    name = "sub/x.yaml" if kind == "folder-link-out" else "x.yaml"
    (inside / "main.yaml").write_text(SMALL + f"include: {name}\n")
    with pytest.raises(InputError) as caught:
        load_scenario(inside / "main.yaml")
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].hint
    assert caught.value.problems[0].places[0].line


# ---- the house


def test_names_agree_with_the_physics() -> None:
    assert get_args(models.Optimizer) == OPTIMIZERS
    assert set(get_args(models.Format)) == set(FORMATS)


def test_every_key_of_the_architecture_page() -> None:
    """Each model knows the keys that architecture.md section 5 and interface.md section 4 name."""
    named = {
        models.Scenario: "schema name title horizon estimator confidence currency periods training serving hardware "
        "limits objective uncertainty risk report",
        models.TrainingJob: "name model tokens epochs deadline hours start sequence_length global_batch precision "
        "optimizer recompute sharding failures checkpoint_every mfu lora offload stack mix_within_job count framework "
        "critical_batch gradient_compression progress step_time after schedule data estimator",
        models.ServingFleet: "name model weights kv_cache qpm peak_factor target_load input_tokens output_tokens "
        "throughput slo spare_replicas availability min_replicas max_spot_share integer_slices engine prefix_cached "
        "speculative disaggregated arrival_variability load_profile autoscaling api_price trace requests histogram "
        "profile limits estimator",
        models.Hardware: "catalog allow deny regions pricing owned quotas assume_inter_node discounts spot",
        models.Owned: "shape count price region carbon from until",
        models.Quota: "provider device max_devices region price_model max_shapes",
        models.Limits: "budget max_devices power max_providers spend carbon",
        models.Failures: "mtbf_per_device checkpoint_bandwidth restart detection checkpoint stragglers scale_loss "
        "checkpoints_kept storage_price",
        models.Spot: "interruptions warning restart",
        models.StepTime: "measured shape count layout",
        models.EngineLimits: "max_num_seqs max_num_batched_tokens memory_fraction",
    }
    for model, keys in named.items():
        known = {info.alias or name for name, info in model.model_fields.items()}
        assert known >= set(keys.split()), model.__name__


USES = {
    "estimator": "analytic", "confidence": "p90", "periods": "1 week", "currency": "EUR",
    "uncertainty": "[{name: busy, probability: 30 %, set: {serving.f.qpm: 900}}]", "risk": "{cvar: 95 %, weight: 0.5}",
    "report": "{fiscal_year_start: april, contingency: 10 %}",
    "training[].confidence": "p80", "serving[].confidence": "p80",
    "training[].estimator": "analytic", "training[].lora": "{rank: 16, base: nf4}",
    "training[].offload": "[optimizer, activations]",
    "training[].after": "[a]", "training[].schedule": "elastic",
    "training[].data": '{size: 2 TB, at: gcp/us-central1, residency: ["us-*"]}', "training[].gradient_compression": "4",
    "serving[].estimator": "analytic", "serving[].slo": "{ttft_p95: 1 s, tpot_p95: 50 ms}",
    "serving[].availability": "99.9 %", "serving[].max_spot_share": "50 %", "serving[].integer_slices": "true",
    "serving[].engine": "vllm", "serving[].prefix_cached": "30 %",
    "serving[].speculative": "{length: 3, acceptance: 70 %}", "serving[].disaggregated": "auto",
    "serving[].arrival_variability": "2", "serving[].autoscaling": "{start_up: 10 min}",
    "serving[].api_price": "$0.90 /1M output tokens",
    "serving[].limits.max_num_batched_tokens": "8192", "hardware.pricing[]": "commitment_1y",
    "hardware.discounts": '[{provider: aws, device: "h100-*", fraction: 20 %}]',
    "hardware.owned[].from": "2026-12-01", "hardware.owned[].until": "2026-12-02",
}  # fmt: skip


@pytest.mark.parametrize("entry", NOT_YET, ids=lambda entry: entry.path)
def test_not_yet_is_refused_when_used_and_never_ignored(entry) -> None:  # type: ignore[no-untyped-def]
    path = entry.path.removesuffix("[]").replace("training[]", "training.a").replace("serving[]", "serving.f")
    found = problems(
        SMALL + "hardware: {owned: [{shape: dgx, count: 1, price: $1/h}]}\n",
        settings=[f"{path.replace('owned[]', 'owned[0]')}={USES[entry.path]}"],
    )
    assert [p.reference for p in found] == ["not-yet"], found
    assert found[0].hint == entry.instead
    assert found[0].places[0].file == "--set"


def test_not_yet_form_is_checked_first() -> None:
    assert [p.reference for p in problems(SMALL, settings=["serving.f.slo={ttft_p95: 1}"])] == ["missing-unit"]
    assert [p.reference for p in problems(SMALL, settings=["serving.f.slo={tffft: 1 s}"])] == ["unknown-field"]


def test_scenarios_are_frozen() -> None:
    scenario = parse_scenario(SMALL)
    with pytest.raises(ValueError, match="frozen"):
        scenario.name = "other"
    assert isinstance(scenario, Scenario)


@pytest.mark.parametrize(("batch", "shown"), [("1048576", "1048576"), ("1e6", "1000000"), ("0.1", "0.1")])
def test_a_batch_without_a_unit_is_spelled_exactly_tokens_first(batch: str, shown: str) -> None:
    """The hint said "1.04858e+06 sequences"."""
    text = (
        "schema: plan/v1\nname: a\ntraining:\n"
        f"  - {{name: a, model: gpt2, tokens: 1B, deadline: 30 days, global_batch: {batch}}}\n"
    )
    with pytest.raises(InputError) as error:
        parse_scenario(text)
    (problem,) = error.value.problems
    assert problem.message == "global_batch needs a unit: tokens or sequences"
    assert problem.hint == f'write "{shown} tokens" or "{shown} sequences"'


def test_every_limit_is_a_whole_number_of_its_unit() -> None:
    """What is loosened, and what a plan says of ways out, is read from `Limits.whole`: no key is left out of it."""
    site = {"region": "r1", "power": "1.5 kW", "carbon": "2 kg"}
    amounts = {"max_devices": 8, "max_providers": 2, "budget": "$3", "spend": "$2/h", "power": "1 kW", "carbon": "1 t"}
    assert {*amounts, "sites"} == {field.alias or name for name, field in models.Limits.model_fields.items()}
    found = models.Limits.model_validate({**amounts, "sites": [site]}).whole
    assert {path.rpartition(".")[2] for path in found} == set(amounts)
    assert found["limits.budget"] == ("microusd", 3_000_000)
    assert found["limits.sites[0].power"] == ("mW", 1_500_000)
    assert found["limits.sites[0].carbon"] == ("mg", 2_000_000)


@pytest.mark.parametrize(
    ("model", "more", "weights"),
    [
        ("deepseek-v3", {}, "fp8-block"),
        ("gpt-oss-20b", {"engine": "vllm"}, "mxfp4"),
        ("Qwen/Qwen3-32B-FP8", {}, "fp8-block"),  # quantization_config.weight_block_size of its repository
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", {}, "fp8"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", {}, "int4"),
        ("llama-3.1-8b", {}, "bf16"),
        ("deepseek-v3", {"weights": "bf16"}, "bf16"),
        ("gpt-oss-20b", {"engine": "llama.cpp"}, "bf16"),  # its files are of a format that somebody chooses
        ({"parameters": "8B"}, {}, "bf16"),
    ],
)
def test_weights_that_are_left_out_are_those_that_a_model_is_published_in(
    model: object, more: dict[str, str], weights: str
) -> None:
    """DeepSeek-V3 was planned in 16 bits, in which nobody has it, at three times the cost."""
    fleet = {"name": "chat", "model": model, "qpm": 60, "input_tokens": 100, "output_tokens": 10, **more}
    found = parse_scenario(json.dumps({"schema": "plan/v1", "name": "w", "serving": [fleet]}))
    assert found.serving[0].weights == weights
