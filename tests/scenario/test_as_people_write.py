"""What people write is read: sums with commas or in thousands, sizes in lower case, names of the hub, dates, "+7d"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import units
from planner.architecture.load import PRESETS, list_presets, load_model
from planner.errors import InputError
from planner.scenario.load import parse_scenario, with_settings
from tests.worlds import fleet, job, scenario


@pytest.mark.parametrize(
    ("text", "usd"),
    [
        ("$20,000", 20_000),
        ("20k", 20_000),
        ("$20k", 20_000),
        ("20K", 20_000),
        ("$1.5M", 1.5e6),
        ("1,234,567.5 USD", 1234567.5),
    ],
)
def test_money(text: str, usd: float) -> None:
    assert units.parse_money(text) == round(usd * 1e6)


@pytest.mark.parametrize("text", ["$1,2,3", "$12,34", "$1,0000", "1.000,5 USD", "20"])
def test_money_that_may_be_meant_otherwise_is_refused(text: str) -> None:
    with pytest.raises(units.UnitError):
        units.parse_money(text)


def test_a_price_takes_commas_too() -> None:
    assert units.parse_price("$1,200/h") == 1_200_000_000


def test_a_size_in_lower_case_is_a_model() -> None:
    asked = scenario([job(model="13b")]).training[0].model
    assert asked.parameters == 13 * 10**9
    assert scenario([job(model={"parameters": "125m"})]).training[0].model.parameters == 125 * 10**6


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct"),
    ],
)
def test_a_name_of_the_hub_is_its_preset(name: str, preset: str) -> None:
    assert load_model(name) == load_model(preset)


def test_every_name_that_presets_state_finds_that_shape() -> None:
    published = {name: json.loads((PRESETS / f"{name}.json").read_text())["hf_id"] for name in list_presets()}
    named = {preset: name for preset, name in published.items() if name.count("/") == 1}
    for preset, name in named.items():
        assert load_model(name).parameters == load_model(preset).parameters
    assert len(named) > len(published) // 2


def test_an_unknown_name_of_the_hub_is_its_config_in_the_local_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError) as error:
        load_model("nobody/own-model")
    assert "not in the local cache" in error.value.problems[0].message
    folder = tmp_path / "models--nobody--own-model" / "snapshots" / "1"
    folder.mkdir(parents=True)
    config = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000,
              "max_position_embeddings": 512, "tie_word_embeddings": False}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    assert load_model("nobody/own-model").layer_count == 2


def test_a_deadline_by_date_counts_from_the_start() -> None:
    asked = scenario([job(deadline="2026-12-11")], begin="2026-12-01").training[0]
    assert asked.deadline_s == 10 * 86400
    later = scenario([job(deadline="2026-12-11", start="2026-12-03")], begin="2026-12-01").training[0]
    assert (later.start_s, later.deadline_s) == (2 * 86400, 8 * 86400)


@pytest.mark.parametrize(
    ("top", "message"),
    [({}, "'begin' is missing: a deadline by date counts from it"),
     ({"begin": "2026-12-11"}, "'deadline' is not after the start")],
)  # fmt: skip
def test_a_deadline_by_date_wants_a_date_to_count_from(top: dict[str, str], message: str) -> None:
    data = {"schema": "plan/v1", "name": "x", "training": [job(deadline="2026-12-11")], **top}
    with pytest.raises(InputError) as error:
        parse_scenario(json.dumps(data))
    assert [problem.message for problem in error.value.problems] == [message]


PREFERENCES = (
    "learning from preferences or rewards is not modelled: neither passes of a reference model nor answers that are "
    "sampled are in any estimate; without the field it is fine-tuning on as many tokens"
)
BATCH = (
    "of a batch of requests write its rate and time: requests: their number / that time in s, horizon: that time, "
    "peak_factor: 1, target_load: 1"
)


@pytest.mark.parametrize("key", ["lora", "adapters", "max_loras", "enable_lora"])
def test_adapters_that_are_served_are_refused_with_what_to_do(key: str) -> None:
    """The hint was that 'lora' is a field of training."""
    data = {"schema": "plan/v1", "name": "x", "serving": [fleet("chat", **{key: 8})]}
    with pytest.raises(InputError) as error:
        parse_scenario(json.dumps(data))
    (problem,) = error.value.problems
    assert problem.hint.startswith("adapters of a served model are not planned. Leave their memory free, limits: {")
    assert parse_scenario(json.dumps({**data, "serving": [fleet("chat", limits={"memory_fraction": 0.85})]}))


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"precision": "bfloat16"}, "did you mean 'bf16'?"),  # the first choice, fp32, stood for all that is not known
        ({"sharding": "fsdp"}, "did you mean 'zero-3'?"),
        ({"recompute": True}, "did you mean 'full'?"),
        ({"framework": "unsloth"}, "did you mean 'trl'?"),
        ({"lora": True}, "write lora: {rank: 16}"),
        ({"lora": {"rank": 8, "base": "int4"}}, "did you mean 'nf4'?"),
        ({"seq_len": 4096}, "did you mean 'sequence_length'?"),
        ({"software": "megatron"}, "did you mean 'framework'?"),
        ({"gradient_checkpointing": True}, "did you mean 'recompute'?"),
        ({"tp": 4}, "'tp' is a field of layout: write layout: {tp: 4}"),
        ({"gpus": 8}, "'allow' is a field of hardware"),
        ({"method": "QLoRA"}, "'lora' is a field of its own: write lora: {rank: 16, base: nf4}"),  # that is, of 4 bits
        ({"qlora": True}, "'lora' is a field of its own: write lora: {rank: 16, base: nf4}"),
        ({"lora": "qlora"}, "write lora: {rank: 16, base: nf4}"),
        ({"method": "lora"}, "'lora' is a field of its own: write lora: {rank: 16}"),
        ({"method": "dpo"}, f"{PREFERENCES}"),  # told all fields
        ({"grpo": {"group": 8}}, f"{PREFERENCES}"),
    ],
)
def test_words_of_trainers_are_told_ours(more: dict[str, object], hint: str) -> None:
    with pytest.raises(InputError) as error:
        scenario([job(**{"model": "llama-3.1-8b", **more})])
    assert [problem.hint for problem in error.value.problems] == [hint]


SHARE = "say of which share of requests:"


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"rps": 5}, "did you mean 'qpm'? It is requests per minute, 60 times those of a second"),
        ({"precision": "fp8"}, "did you mean 'weights'?"),
        ({"weights": "awq"}, "did you mean 'int4'?"),
        ({"prompt_tokens": 500}, "did you mean 'input_tokens'?"),  # the letters of output_tokens are nearer
        ({"uptime": "99.9 %"}, "did you mean 'availability'?"),
        ({"ttft_p95": "1 s"}, "'ttft_p95' is a field of slo: write slo: {ttft_p95: 1 s}"),
        ({"slo": {"ttft_p95": 500}}, 'write "500 ms" or "500 s"'),  # not days
        (
            {"slo": {"ttft": "1 s"}},
            f"{SHARE} ttft_p50, ttft_p95 or ttft_p99",
        ),  # told the loosest
        ({"slo": {"p90_tpot": "50 ms"}}, f"{SHARE} tpot_p50, tpot_p95 or tpot_p99"),
        ({"region": "us-east-1"}, "did you mean 'regions'?"),
        ({"deadline": "60 h"}, BATCH),  # "a field of training"
    ],
)
def test_words_of_engines_are_told_ours(more: dict[str, object], hint: str) -> None:
    with pytest.raises(InputError) as error:
        scenario(serving=[fleet(**more)])
    assert [problem.hint for problem in error.value.problems] == [hint]


@pytest.mark.parametrize(
    ("hardware", "hint"),
    [
        ({"pricing": ["reserved_1y"]}, "did you mean 'commitment_1y'?"),
        ({"gpus": ["h100"]}, "did you mean 'allow'?"),
        ({"clouds": ["aws"]}, "did you mean 'providers'?"),
        (
            {"pricing": ["commitment_2y"]},  # three years were meant
            "commitments of 1 and 3 years have prices; of another term write yours under hardware.contracts",
        ),
        (
            {"owned": [{"device": "rtx-4090", "count": 1, "price": "$0.1/h"}]},
            "did you mean 'shape'? It is a machine, such as dgx-h100",
        ),
    ],
)
def test_words_of_clouds_are_told_ours(hardware: dict[str, object], hint: str) -> None:
    with pytest.raises(InputError) as error:
        scenario([job()], hardware=hardware)
    assert [problem.hint for problem in error.value.problems] == [hint]


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"micro_batch": 4}, "'micro_batch' is a field of layout: write layout: {micro_batch: 4}"),
        ({"rank": 16}, "'rank' is a field of lora: write lora: {rank: 16}"),
        ({"restart": "15 min"}, "'restart' is a field of failures: write failures: {restart: 15 min}"),
        ({"deadline": "24.12.2026"}, "write year, month and day: 2026-12-01"),
        ({"deadline": "12/11/2026"}, "write year, month and day: 2026-12-01"),
        ({"deadline": "24 Dec 2026"}, "write year, month and day: 2026-12-01"),
        ({"start": "December 24, 2026"}, "write year, month and day: 2026-12-01"),
    ],
)
def test_fields_of_a_field_and_dates_of_other_orders_are_told_how_they_are_written(
    more: dict[str, object], hint: str
) -> None:
    """Fields of `layout` were told the list of all fields, and a date that times have units."""
    with pytest.raises(InputError) as error:
        scenario([job(**more)])
    assert [problem.hint for problem in error.value.problems] == [hint]


def test_what_several_fields_have_is_told_of_all() -> None:
    with pytest.raises(InputError) as error:
        scenario([job()], hardware={"max_shapes": 4})
    assert [problem.hint for problem in error.value.problems] == ["'max_shapes' is a field of quotas and of contracts"]


def test_a_field_in_the_singular_is_told_before_fields_of_others() -> None:
    """One region of what may be rented was sent to owned machines, quotas, discounts and contracts."""
    with pytest.raises(InputError) as error:
        scenario([job()], hardware={"region": "europe-west4"})
    assert [problem.hint for problem in error.value.problems] == ["did you mean 'regions'?"]


def test_a_tab_is_told_to_be_spaces() -> None:
    with pytest.raises(InputError) as error:
        parse_scenario("schema: plan/v1\nname: a\ntraining:\n  - name: b\n\t tokens: 20B\n", file="a.yaml")
    assert error.value.problems[0].hint == "a tab cannot indent: write spaces in its place"


def test_a_plan_in_place_of_a_scenario_is_one_mistake() -> None:
    """It was thirty: each key of the plan was no field of the scenario."""
    text = '{"schema": "plan/result/v1", "status": "optimal", "scenario_file": "shipped:llama", "limits": []}'
    with pytest.raises(InputError) as error:
        parse_scenario(text, file="a.plan.json")
    (problem,) = error.value.problems
    assert problem.message == "this is a plan, and a scenario is wanted"
    assert problem.hint == "its scenario is llama; plan explain, report, export and verify take plans"
    with pytest.raises(InputError) as error:
        parse_scenario('{"schema": "plan/report/v1"}', file="a.json")
    assert error.value.problems[0].hint == "name its scenario"


def test_a_number_of_requests_is_no_money() -> None:
    """'10M' was "an amount of money"."""
    with pytest.raises(InputError) as error:
        scenario(serving=[{name: value for name, value in fleet(requests="10M").items() if name != "qpm"}])
    (problem,) = error.value.problems
    assert problem.message == "'10M' of 'requests' says not in what time"


def test_a_setting_adds_to_what_is_there() -> None:
    asked = scenario([job(deadline="30 days", tokens="2B")], limits={"budget": "$20,000"})
    more = with_settings(asked, ["training.job.deadline=+7d", "limits.budget=+5k", "training.job.tokens=+1B"])
    assert more.training[0].deadline_s == 37 * 86400
    assert more.limits.budget_microusd == 25_000 * 10**6
    assert more.training[0].tokens == 3e9
    with pytest.raises(InputError) as error:
        with_settings(asked, ["training.job.deadline=+5 GB"])
    assert "cannot be added" in error.value.problems[0].message


def test_a_provider_that_the_catalog_does_not_have_is_refused_with_the_nearest() -> None:
    from planner import api

    with pytest.raises(InputError) as error:
        api.solve(scenario([job()], hardware={"quotas": [{"provider": "lamda", "max_devices": 8}]}))
    (problem,) = error.value.problems
    assert problem.message == "no provider of the catalog matches 'lamda'"
    assert problem.hint == "did you mean lambda?"


def test_a_setting_takes_the_place_of_the_other_spelling() -> None:
    """A file says a deadline or hours, requests a minute or a second: what is set wins over either."""
    plain = {key: value for key, value in job().items() if key != "deadline"}
    hours = scenario([{**plain, "hours": 720}])
    assert with_settings(hours, ["training[0].deadline=40 days"]).training[0].deadline_s == 40 * 86400
    assert with_settings(scenario([job()]), ["training[0].hours=48"]).training[0].deadline_s == 48 * 3600
    assert with_settings(hours, ["training[0].deadline=null"]).training[0].deadline_s == 720 * 3600
    served = with_settings(scenario(serving=[fleet(qpm=600)]), ["serving[0].requests=2 /s"]).serving[0]
    assert (served.requests_per_minute, served.requests_per_s) == (None, 2.0)


def test_an_empty_list_of_sellers_is_told_how_to_rent_nothing() -> None:
    with pytest.raises(InputError) as caught:
        scenario([job()], hardware={"providers": []})
    assert caught.value.problems[0].hint == 'leave the field out for all; to rent nothing: exclude: ["*"]'


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("p5.48xlarge", "that is a machine of aws: here devices are named, h100-sxm-80gb"),
        ("Standard_ND96isr_H100_v5", "that is a machine of azure: here devices are named, h100-sxm-80gb"),
        ("dgx-h100", "that is a machine that one owns (hardware.owned): here devices are named, h100-sxm-80gb"),
        ("amd", "that is a vendor: name its devices, mi300x, mi355x"),
        ("RTX 4090", 'write "rtx-4090", a name or a pattern'),
        ("nvidia-h100", "devices go by their names without their makers': h100"),
        ("AMD-MI300X", "devices go by their names without their makers': mi300x"),
    ],
)
def test_machines_and_vendors_in_place_of_devices_are_told_so(name: str, hint: str) -> None:
    """`p5.48xlarge` was sent to read the whole catalog, `a2-ultragpu-8g` was told of Macs."""
    from planner import api

    with pytest.raises(InputError) as error:
        api.solve(scenario([job()], hardware={"allow": [name]}))
    assert error.value.problems[0].hint == hint


def test_a_device_in_place_of_a_machine_that_is_owned_is_told_machines_of_it() -> None:
    """The hint was to read the catalog's list, which has none of what one owns."""
    from planner import api

    owned = [{"shape": "h200", "count": 1, "price": "$1/h"}]
    with pytest.raises(InputError) as error:
        api.solve(scenario([job()], hardware={"owned": owned}))
    hint = error.value.problems[0].hint
    assert hint.startswith("that is a device: machines of it are dgx-h200, ")
    assert hint.endswith(" more (plan catalog show h200-sxm)")


EMPTY = "schema: plan/v1\nname: s\nserving: [{name: a, model: 8B, qpm: 60, input_tokens: 9, output_tokens: 9}]\n"


@pytest.mark.parametrize(
    ("limits", "hint"),
    [
        ("{budget: $8,000}", "a comma ends a value in braces: write budget: $8000"),
        ("{budget: $1,250,000, max_devices: 3}", "a comma ends a value in braces: write budget: $1250000"),
        ("{budget: $8,5 k}", "a comma ends a value in braces: write budget: $8.5 k"),
        ("{max_devices: 1,024}", "a comma ends a value in braces: write max_devices: 1024"),
        ("{budget: $8, max_device}", "did you mean 'max_devices'?"),
    ],
)
def test_a_comma_in_braces_makes_no_small_budget(limits: str, hint: str) -> None:
    """`{budget: $8,000}` was a budget of $8: fields that are left empty were left out before they were looked at."""
    text = f"{EMPTY}limits: {limits}\n"
    with pytest.raises(InputError) as caught:
        parse_scenario(text)
    assert caught.value.problems[0].reference == "unknown-field"
    assert caught.value.problems[0].hint == hint


def test_two_commas_in_braces_are_one_mistake() -> None:
    with pytest.raises(InputError) as caught:
        parse_scenario(f"{EMPTY}limits: {{budget: $8,000,000}}\n")
    (problem,) = caught.value.problems
    assert problem.hint == "a comma ends a value in braces: write numbers without it"


def test_fields_that_are_left_empty_are_as_good_as_none() -> None:
    assert parse_scenario(f"{EMPTY}limits: {{budget: }}\ntitle:\n").limits.budget_microusd is None


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("deadline=3 days", "did you mean training.job.deadline or training.other.deadline?"),
        ("budget=$100", "did you mean limits.budget?"),
        ("allow=h100", "did you mean hardware.allow?"),
        ("qpm=600", "there is: schema"),  # no fleet is there
    ],
)
def test_a_setting_that_names_a_field_alone_is_told_its_path(setting: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        with_settings(scenario([job(name="job"), job(name="other")]), [setting])
    assert meant in caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("serving.chat.qpm=10 /s", "write 600, of a minute; or requests: 10 /s"),
        ("serving.chat.qpm=ten", 'write "8"'),
        ("serving.chat.input_tokens=0", "write input_tokens: 1500"),
        ("training.job.tokens=0", "write tokens: 200B"),
        ("objective=[]", "leave the field out"),
        ("hardware.allow=[]", 'leave the field out for all; to rent nothing: exclude: ["*"]'),
        ("hardware.owned=[{shape: x, count: 2, price: 9,50 EUR/h}]", "write price: 9.50 EUR/h"),
        (
            "hardware.owned=[{shape: x, count: 2, power: {watts: 1 kW, price: $0,125/kWh, pue: 1}}]",
            "write price: $0.125/kWh",
        ),
        ("hardware.owned=[{shape: x, count: 2, capital: $300000}]", "write capital: {price: $300000, years: 4}"),
        ("hardware.quotas=[{provider: aws, devices: 8}]", "did you mean 'max_devices'?"),
        ("report=3", "write report: {fiscal_year_start: …"),
        ("confidence=95", "write p95"),
        ("confidence=0.75", "write p75"),
        ("confidence=30", "write p90"),
        ("limits.carbon=1 tonne", 'did you mean "1 t"?'),
        ("training.job.global_batch=1024 seqs", 'did you mean "1024 sequences"?'),
        ("serving.chat.api_price=$0,90 /1M output tokens", 'write "$0.90 /1M output tokens"'),
        ("serving.chat.api_price=0.9 /1M tokens", 'write "$0.9 /1M tokens"'),
        ("serving.chat.api_price=$0.9", 'write "$0.90 /1M output tokens"'),
    ],
)
def test_one_slip_is_one_problem_whose_hint_is_of_what_was_written(setting: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        with_settings(scenario([job(name="job")], [fleet("chat")]), [setting])
    (problem,) = caught.value.problems
    assert hint in problem.hint


def test_lengths_are_of_tokens_and_may_say_so() -> None:
    for text, tokens in (("4096 tokens", 4096), ("64k tokens", 64_000), ("8k", 8000)):
        asked = with_settings(scenario([job(name="job")]), [f"training.job.sequence_length={text}"])
        assert asked.training[0].sequence_length == tokens


def test_a_layout_in_one_word() -> None:
    words = ["training.job.sharding=null", "training.job.layout=tp8pp2zero-1mb4"]
    asked = with_settings(scenario([job(name="job")]), words).training[0].layout
    assert asked is not None
    assert (asked.tp, asked.pp, asked.sharding, asked.micro_batch) == ((8,), (2,), ("zero-1",), (4,))


def test_prices_of_tokens_storage_and_transfers_are_read_in_other_currencies() -> None:
    euro = {"currency": {"EUR": 1.25, "as_of": "2026-11-01"}}
    data = {"name": "d", "size": "1 TB", "at": "north/r1", "egress": "0.08 EUR/GB", "storage": "€0.02/GB-month"}
    asked = scenario([job(data=data)], [fleet(api_price="0.80 EUR /1M output tokens")], **euro)
    found = asked.training[0].data
    assert found is not None
    assert (found.egress_usd_per_gb, found.storage_usd_per_gb_month) == (0.1, 0.025)
    assert (asked.serving[0].api_price, asked.serving[0].api_usd_per_token) == (
        "$1 /1M output tokens",
        (1e-6, "output"),
    )
    with pytest.raises(InputError, match="is in GBP, and no rate"):
        scenario([job(data=data | {"egress": "£0.08/GB"})], **euro)
