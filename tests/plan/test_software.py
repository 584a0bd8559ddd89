"""Software that a scenario names: its layouts and devices alone, and an error with both lines where none is left."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.candidates.layouts import LayoutRules, unadvised
from planner.candidates.training import TrainingTable
from planner.catalog.load import load_catalog
from planner.checks.layout import training_layout_findings
from planner.errors import InputError
from planner.estimate.engines import ENGINES
from planner.estimate.frameworks import planned_framework, software_stage
from planner.estimate.layout import Layout
from planner.estimate.software import SOFTWARE, STAGES
from planner.estimate.software_layouts import adapters_can, can, named_can, on_gpus
from planner.estimate.training import training_memory
from planner.export import llamacpp, sglang, trtllm, vllm
from planner.scenario.load import parse_scenario
from tests.worlds import scenario

HEAD = "schema: plan/v1\nname: named\n"
JOB = (
    HEAD
    + "training:\n  - {{name: a, model: {model}, tokens: 1B, deadline: 30d, {more}}}\nhardware:\n  allow: [{allow}]\n"
)


def problem(text: str) -> Any:
    with pytest.raises(InputError) as caught:
        api.solve(parse_scenario(text))
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize(
    ("model", "more", "allow", "says", "lines"),
    [
        ("llama-3.1-8b", "framework: maxtext", "h100-sxm-80gb", "none of the devices", [4, 6]),
        ("llama-3.1-8b", "framework: megatron", "tpu-v6e", "none of the devices", [4, 6]),
        ("llama-3.1-8b", "framework: torchtitan, lora: {rank: 8}", "h100-sxm-80gb", "no adapters", [4, 4]),
        ("llama-3.1-8b", "framework: trl", "h100-sxm-80gb", "adapters alone", [4]),
        ("llama-2-7b", "framework: torchtitan", "h100-sxm-80gb", "no model of the shape", [4]),
    ],
)
def test_software_that_cannot_is_an_error_with_both_lines(
    model: str, more: str, allow: str, says: str, lines: list[int]
) -> None:
    found = problem(JOB.format(model=model, more=more, allow=allow))
    assert says in found.message
    assert [place.line for place in found.places] == lines
    assert found.hint


def test_an_engine_that_serves_nowhere_is_an_error_with_both_lines() -> None:
    fleet = "{name: a, model: llama-3.1-8b, qpm: 60, input_tokens: 500, output_tokens: 100, engine: trt-llm}"
    found = problem(HEAD + f"serving:\n  - {fleet}\nhardware:\n  allow: [mi300x]\n")
    assert "does not run on devices of amd" in found.message
    assert [place.line for place in found.places] == [4, 6]


def test_weights_that_an_engine_does_not_serve_are_told_with_those_that_it_does() -> None:
    """A device that nobody owns or rents (mi100) stood for the reason, and no format for the way out."""
    fleet = (
        "{name: a, model: llama-3.1-8b, weights: int4, qpm: 6, input_tokens: 500, output_tokens: 100,"
        " engine: llama.cpp}"
    )
    found = problem(
        HEAD + f"serving:\n  - {fleet}\nhardware:\n"
        "  owned: [{shape: rtx-4090-x2, count: 1, price: $1/h}]\n  exclude: ['*']\n"
    )
    assert "rtx-4090: llama.cpp does not serve weights in int4" in found.message
    assert found.hint.startswith("write weights: q4_k_m or ")


@pytest.mark.parametrize(("name", "more"), [("trl", ", lora: {rank: 8}"), ("torchtitan", "")])
def test_a_named_program_gets_a_layout_that_it_runs(name: str, more: str) -> None:
    text = JOB.format(model="llama-3.1-70b", more=f"framework: {name}{more}", allow="h100-sxm-80gb, tpu-v6e")
    plan = api.solve(parse_scenario(text))
    (row,) = plan.document["workloads"][0]["allocations"]
    assert row["device"] == "h100-sxm-80gb"
    assert row["software"][0] == name
    assert api.verify(plan) == []
    for forged in ([], ["deepspeed"], None):
        told = {key: value for key, value in row.items() if key != "software"}
        document = copy.deepcopy({**plan.document})
        document["workloads"][0]["allocations"][0] = told if forged is None else {**told, "software": forged}  # type: ignore[typeddict-item]
        assert "wrong-software" in {problem.reference for problem in api.verify(document)}


@pytest.mark.parametrize("framework", ["fsdp", "torchtitan"])
def test_a_model_that_torchtitan_does_not_cut_gets_no_pipeline_of_fsdp(framework: str) -> None:
    """Four stages of sixteen chunks of ZeRO-3 were planned for `framework: fsdp`, and no program launched them."""
    plan = api.solve(
        parse_scenario(JOB.format(model="qwen3-32b", more=f"framework: {framework}", allow="h100-sxm-80gb"))
    )
    (row,) = plan.document["workloads"][0]["allocations"]
    assert row["layout"]["pp"] == 1
    assert row["software"]
    assert not [line for line in plan.document["warnings"] if "no program" in line]


@pytest.mark.parametrize("model", ["gemma-2-9b", "gpt-neox-20b", "qwen2.5-14b", "llama-2-70b", "phi-3-medium"])
def test_an_open_job_is_split_as_some_program_can(model: str) -> None:
    """Models that Megatron-LM or torchtitan do not make got splits of theirs, tensor ranks under ZeRO-3: nobody's."""
    text = JOB.format(model=model, more="epochs: 1", allow="h100-sxm-80gb, a100-sxm-80gb")
    for row in api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]:
        assert row["software"], row["layout"]


@pytest.mark.parametrize(
    ("optimizer", "stages"), [("adamw", [True, True, True, True]), ("muon", [True, True, False, False])]
)
def test_an_open_job_is_sharded_as_some_program_has_its_optimizer(optimizer: str, stages: list[bool]) -> None:
    """Mixtral with Muon was split by experts under ZeRO-3, which Megatron-LM has of other optimizers alone."""
    text = JOB.format(model="mixtral-8x7b", more=f"optimizer: {optimizer}", allow="h100-sxm-80gb")
    job, arch = parse_scenario(text).training[0], api.load_model("mixtral-8x7b")
    sizes = {"devices": 16, "dp": 8, "tp": 2, "pp": 1, "vpp": 1, "cp": 1, "ep": 8, "micro_batch": 1, "recompute": 0}
    layout = Layout(sharding=np.arange(4), global_batch=8, **sizes)
    assert on_gpus(job, arch, layout).tolist() == stages


def test_finer_sizes_are_split_as_some_program_can_too() -> None:
    text = JOB.format(model="gemma-2-9b", more="epochs: 1", allow="h100-sxm-80gb, a100-sxm-80gb")
    listed = api.enumerate_candidates(parse_scenario(text))
    job, table = listed.scenario.training[0], listed.tables["a"]
    assert isinstance(table, TrainingTable)
    sizes = np.asarray(table.layout.micro_batch)
    assert (sizes & (sizes - 1)).any()  # some are no powers of two
    assert on_gpus(job, api.load_model(job.model), table.layout).all()


def test_a_split_that_nobody_exports_is_planned_where_it_is_asked_for() -> None:
    """And told so: what it would cost is a question, too."""
    pinned = "sharding: zero-3, layout: {tp: 2, pp: 1}"
    plan = api.solve(parse_scenario(JOB.format(model="gemma-2-9b", more=pinned, allow="h100-sxm-80gb"))).document
    (row,) = plan["workloads"][0]["allocations"]
    assert (row["layout"]["tp"], row["software"]) == (2, [])
    assert any("no program that plan export writes for" in one for one in plan["warnings"])


@pytest.mark.parametrize(
    "more",
    ["lora: {rank: 8, base: nf4}, layout: {pp: 2}", "framework: pytorch", "framework: pytorch, mix_within_job: true"],
)
def test_what_is_planned_of_a_job_left_open_the_verifier_takes(more: str) -> None:
    """A packed base whose job fixes `pp` was cut by tensors, and a pipeline had ZeRO-3 where `pytorch` was named: each
    plan was refused as illegal by its own check, and there was none."""
    text = JOB.format(model="llama-3.1-70b", more=more, allow="a100-sxm-80gb") + "  assume_inter_node: 50 Gbit/s\n"
    assert api.solve(parse_scenario(text)).document["status"] in ("optimal", "feasible")


@pytest.mark.parametrize(
    ("more", "software"),
    [
        ("lora: {rank: 8}", "hf"),
        ("lora: {rank: 8}, framework: pytorch", "hf"),
        ("lora: {rank: 8}, framework: deepspeed", "deepspeed"),
        ("sharding: zero-3", "fsdp"),
    ],
)
def test_adapters_left_open_are_predicted_by_what_trains_them(more: str, software: str) -> None:
    """They were predicted by Megatron-LM and torchtitan, which train none."""
    plan = api.solve(parse_scenario(JOB.format(model="llama-3.1-8b", more=more, allow="h100-sxm-80gb"))).document
    assert f"a: software as {software} does by default" in plan["assumed"]


def test_a_short_sequence_and_experts_are_both_split_on_many_devices_alone() -> None:
    """Five kinds of parallelism for a model of 30 billion on 24 devices, which no measured row and no guide has."""

    def splits(**pin: Any) -> list[bool]:
        more = {"sequence_length": 8192, **pin}
        text = JOB.format(model="qwen3-30b-a3b", more=", ".join(f"{k}: {v}" for k, v in more.items()), allow="h100-*")
        job = parse_scenario(text).training[0]
        pinned = tuple((job.layout.sizes if job.layout else {}).items())
        rules = LayoutRules(sequence_length=int(more["sequence_length"]), batches=(64.0,), batch_range=(64.0, 64.0),
                            sharding=(1,), recompute=(0,), domain_devices=8, pinned=pinned)  # fmt: skip
        sizes = {"tp": 2, "vpp": 1, "micro_batch": 1, "recompute": 0, "global_batch": 64}
        layout = Layout(devices=np.array([16, 16, 16, 128]), dp=np.array([4, 8, 4, 32]), cp=np.array([2, 1, 2, 2]),
                        ep=np.array([2, 2, 1, 2]), pp=np.ones(4), sharding=np.ones(4), **sizes)  # fmt: skip
        return [bool(one) for one in unadvised(job, rules, layout)]

    assert splits() == [True, False, False, False]
    assert splits(sequence_length=32768) == [False] * 4
    assert splits(layout="{cp: 2}") == [False] * 4


@pytest.mark.parametrize(
    ("model", "device"),
    [
        ("llama-3.1-8b", "l40s"),  # pipelines under ZeRO-3 crowded out the micro-batch that is planned
        ("llama-3.1-8b", "b200"),
        ("qwen2.5-32b", "tpu-v6e"),
        ("qwen2.5-32b", "h100-sxm-80gb"),
        ("llama-3.1-70b", "mi300x"),  # a pipeline under ZeRO-3 where it was named, 11 % cheaper
        ("mixtral-8x7b", "a100-sxm-80gb"),
        ("gpt2-xl", "tpu-v6e"),  # ZeRO-1, which MaxText was not known to have
    ],
)
def test_naming_what_a_job_is_predicted_by_does_not_change_its_cost(model: str, device: str) -> None:
    """Time was that of a program, memory that of none: the same layout fitted or not, -8 to +5 % of the cost."""

    def planned(more: str) -> Any:
        text = JOB.format(model=model, more=f"sequence_length: 4096, global_batch: 1M tokens{more}", allow=device)
        return api.solve(parse_scenario("prefer: cheapest\n" + text)).document

    left_open = planned("")
    (row,) = left_open["workloads"][0]["allocations"]
    family = load_catalog().devices[row["device"]].family
    stage = software_stage(STAGES.index(row["layout"]["sharding"]), row["devices"] // row["jobs"])
    name = planned_framework(None, family, int(stage)).name
    named = planned(f", framework: {name}")
    cost, same = (plan["summary"]["cost_microusd"] for plan in (left_open, named))
    assert same == pytest.approx(cost, rel=1e-3)  # torchtitan's checkpoints are a little smaller
    assert named["workloads"][0]["allocations"][0]["layout"] == row["layout"]


def test_finer_sizes_are_tried_beside_the_layouts_of_each_program() -> None:
    """Variants of one pipeline took all the places: ZeRO-3 was 1.2 % dearer left open than with FSDP named."""

    def cost(more: str) -> Any:
        more = f"sequence_length: 4096, global_batch: 1M tokens, optimizer: sgd{more}"
        text = JOB.format(model="qwen3-30b-a3b", more=more, allow="h100-sxm-80gb") + "  providers: [hyperstack]\n"
        text += "limits: {max_devices: 8}\nprefer: cheapest\n"
        return api.solve(parse_scenario(text)).document["summary"]["cost_microusd"]

    assert cost("") == pytest.approx(cost(", framework: fsdp"), rel=1e-3)


def test_zero_2_of_an_open_job_is_that_of_megatron_lm_named() -> None:
    """Its row had no ZeRO-2, which its launch file writes as FSDP's optim_grads: 4 % dearer named than left open."""

    def planned(more: str) -> Any:
        text = JOB.format(model="gemma-2-9b", more=f"sequence_length: 4096{more}", allow="h100-sxm-80gb")
        return api.solve(parse_scenario(text + "  providers: [hyperstack]\nlimits: {max_devices: 8}\n")).document

    left_open, named = planned(", sharding: [zero-2]"), planned(", framework: megatron, sharding: [zero-2]")
    assert left_open["status"] == "optimal"
    assert left_open["summary"]["cost_microusd"] == named["summary"]["cost_microusd"]


def test_nodes_of_other_devices_than_tpus_are_no_slices() -> None:
    """What lies between slices of TPUs was asked of nodes of Trainium where a job is open: 4 % dearer than named."""

    def planned(more: str) -> Any:
        text = JOB.format(model="mixtral-8x7b", more=f"sequence_length: 4096{more}", allow="'trainium*'")
        return api.solve(parse_scenario("prefer: cheapest\n" + text)).document

    left_open, named = planned(""), planned(", framework: neuron")
    assert left_open["summary"]["cost_microusd"] == named["summary"]["cost_microusd"]


@pytest.mark.parametrize(("pinned", "stages"), [("", 1), (", layout: {pp: 2}", 2)])
def test_a_pipeline_on_tpus_is_what_somebody_asks_for(pinned: str, stages: int) -> None:
    """Four small slices took the place of a large one, so that two stages, which no row there has, lay between them."""
    more = f"sequence_length: 4096, global_batch: 4M tokens{pinned}"
    text = JOB.format(model="llama-2-7b", more=more, allow="tpu-v6e").replace("tokens: 1B", "tokens: 2T")
    (row,) = api.solve(parse_scenario(text + "prefer: cheapest\n")).document["workloads"][0]["allocations"]
    assert row["layout"]["pp"] == stages


@pytest.mark.parametrize(("framework", "stage"), [("megatron", "zero-3"), ("fsdp", "zero-1"), ("deepspeed", "zero-2")])
def test_one_device_shares_nothing_whatever_stage_is_asked_for(framework: str, stage: str) -> None:
    """The plan's own check refused a stage that the program has not, where there is nothing to share."""
    more = f"sequence_length: 1024, framework: {framework}, sharding: [{stage}]"
    text = JOB.format(model="gpt2-xl", more=more, allow="h100-sxm-80gb") + "limits: {max_devices: 1}\n"
    (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
    assert (row["devices"], row["layout"]["sharding"]) == (1, stage)


def test_each_machine_of_a_job_has_the_memory_of_its_own_software() -> None:
    """Ways on TPUs beside those on GPUs are told with what MaxText keeps there."""
    listed = api.enumerate_candidates(parse_scenario(JOB.format(model="llama-3.1-8b", more="epochs: 1",
                                                                allow="h100-sxm-80gb, tpu-v6e")))  # fmt: skip
    table, question = listed.tables["a"], listed.questions["a"]
    assert isinstance(table, TrainingTable)
    families = np.array([site.device.family for site in table.sites])
    assert len(set(families)) == 2
    for family in set(families):
        own = np.flatnonzero(families == family)
        needed = training_memory(question.arch, question.spec, table.layout.select(own), str(family)).total
        assert table.memory.total[own].tolist() == needed.tolist()


def test_virtual_stages_that_a_program_has_not_are_told_so() -> None:
    """The reason told was the unknown network of some other machine."""
    more = "framework: deepspeed, layout: {pp: 2, vpp: 2}"
    found = problem(JOB.format(model="llama-3.1-8b", more=more, allow="h100-sxm-80gb"))
    assert (found.message, found.hint) == ("DeepSpeed has no virtual stages", "write vpp: 1")


@pytest.mark.parametrize("nothing", ["exclude: ['*']", "kinds: owned"])
def test_software_is_held_against_what_is_owned_where_nothing_is_rented(nothing: str) -> None:
    """With `kinds: owned` MaxText was planned for TPUs that nobody rents, and no way was left without a reason."""
    text = JOB.format(model="llama-3.1-8b", more="framework: maxtext", allow="'*'") + f"  {nothing}\n"
    found = problem(text + "  owned: [{shape: dgx-h100, count: 1, price: $20/h}]\n")
    assert "maxtext runs on none of the devices that are allowed: h100-sxm-80gb" in found.message


def test_what_the_table_masks_the_verifier_refuses() -> None:
    """The mask over arrays and the rules of the checks, written apart, agree on every layout of adapters."""
    job = parse_scenario(
        JOB.format(model="llama-3.1-8b", more="framework: trl, lora: {rank: 8}", allow="h100-sxm-80gb")
    ).training[0]
    open_job = job.model_copy(update={"framework": None})
    assert job.lora is not None
    packed = open_job.model_copy(update={"lora": job.lora.model_copy(update={"base": "nf4"})})
    named = packed.model_copy(update={"framework": "deepspeed"})
    jobs = {"trl": job, "open": open_job, "packed": packed, "deepspeed": named}
    arch, shape = _arch(), _shape()
    for stage in range(4):
        for dp, tp, pp, cp, recompute in (
            (8, 1, 1, 1, 0),
            (4, 2, 1, 1, 0),
            (4, 1, 2, 1, 2),
            (4, 1, 1, 2, 0),
            (8, 1, 1, 1, 1),
        ):
            split = {"dp": dp, "tp": tp, "pp": pp, "vpp": 1, "cp": cp, "ep": 1, "micro_batch": 1, "micro_batches": 1,
                     "global_batch_sequences": dp, "sharding": STAGES[stage],
                     "recompute": ("none", "selective", "full")[recompute]}  # fmt: skip
            layout = Layout(devices=8, dp=dp, tp=tp, pp=pp, vpp=1, cp=cp, ep=1, micro_batch=1, sharding=stage,
                            recompute=recompute, global_batch=dp)  # fmt: skip
            masks = [can(SOFTWARE["trl"], layout), adapters_can(open_job, layout), adapters_can(packed, layout)]
            for one, mask in zip(jobs.values(), (*masks, named_can(named, layout))):
                found = training_layout_findings(one, arch, split, shape, 8, shared=True)  # type: ignore[arg-type]
                assert (list(found) == []) == bool(np.all(mask)), (split, one.framework)


def test_deepspeed_is_planned_as_its_configuration_has_it() -> None:
    """It was pipelines of virtual stages, which DeepSpeed has not, with Megatron-LM's launch file told; and 4-bit
    bases were cut by tensors, which nobody does."""
    text = JOB.format(model="llama-3.1-70b", more="framework: deepspeed", allow="h100-sxm-80gb")
    (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
    assert (row["layout"]["pp"], row["layout"]["vpp"], row["software"][0]) == (1, 1, "deepspeed")
    for more in ("lora: {rank: 16, base: nf4}", "framework: deepspeed, lora: {rank: 16, base: nf4}"):
        text = JOB.format(model="llama-3.1-70b", more=more, allow="a100-sxm-80gb")
        (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
        assert row["layout"]["tp"] == 1
        assert {"trl", "axolotl", "deepspeed"} & set(row["software"])
    pinned = JOB.format(model="llama-3.1-70b", more="framework: deepspeed, layout: {pp: 4}", allow="h100-sxm-80gb")
    (row,) = api.solve(parse_scenario(pinned)).document["workloads"][0]["allocations"]
    assert (row["layout"]["pp"], row["layout"]["vpp"]) == (4, 1)  # its pipeline is a class of the user's own


def test_deepspeed_is_planned_without_what_it_has_by_code_alone() -> None:
    """A 7B of long sequences was planned on context ranks, and the launch file named was Megatron-LM's."""
    more = "framework: deepspeed, sequence_length: 32768"
    document = api.solve(parse_scenario(JOB.format(model="qwen2.5-7b", more=more, allow="h100-sxm-80gb"))).document
    (row,) = document["workloads"][0]["allocations"]
    assert (row["layout"]["cp"], row["software"][0]) == (1, "deepspeed")
    assert not api.verify(document)
    more += ", layout: {cp: 4}"
    document = api.solve(parse_scenario(JOB.format(model="qwen2.5-7b", more=more, allow="h100-sxm-80gb"))).document
    (row,) = document["workloads"][0]["allocations"]
    assert (row["layout"]["cp"], row["software"]) == (4, ["torchrun"])  # Ulysses of the user's own script
    told = "nothing for DeepSpeed, which the job names, but for Megatron-LM: context parallelism is code in DeepSpeed"
    assert any(told in line for line in document["warnings"])
    assert not api.verify(document)


@pytest.mark.parametrize("framework", ["", "framework: deepspeed, "])
def test_adapters_are_not_cut_by_tensors_where_no_program_does(framework: str) -> None:
    """LoRA of a 70B was tp4 dp2 under DeepSpeed, 4 % cheaper than ZeRO-3: its tensor parallelism stops there."""
    more = framework + "lora: {rank: 16}"
    text = JOB.format(model="llama-3.1-70b", more=more, allow="h100-sxm-80gb")
    (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
    assert (row["layout"]["tp"], row["layout"]["sharding"]) == (1, "zero-3")
    assert set(row["software"]) == {"trl", "axolotl", "deepspeed"}
    pinned = JOB.format(model="llama-3.1-70b", more=more + ", layout: {tp: 4}", allow="h100-sxm-80gb")
    document = api.solve(parse_scenario(pinned)).document
    assert document["workloads"][0]["allocations"][0]["software"] == []
    assert any("tensor parallelism stops under adapters" in line for line in document["warnings"]) == bool(framework)
    assert [finding for finding in api.verify(document) if finding.severity == "error"] == []
    named = JOB.format(model="llama-3.1-70b", more="framework: megatron, lora: {rank: 16}", allow="h100-sxm-80gb")
    (row,) = api.solve(parse_scenario(named)).document["workloads"][0]["allocations"]
    assert row["layout"]["tp"] > 1  # as Megatron-Bridge's PEFT, which is not exported


def _arch() -> Any:
    from planner.architecture.load import load_model

    return load_model("llama-3.1-8b")


def _shape() -> Any:
    shapes = api.load_catalog().shapes.values()
    return next(shape for shape in shapes if shape.device == "h100-sxm-80gb" and shape.devices == 8)


def test_a_device_that_no_program_of_export_runs_on_is_told_without_naming_one() -> None:
    """Of Trainium it was said that "trainium1 is no GPU, which Megatron-LM is not exported for"."""
    text = """{schema: plan/v1, name: a, hardware: {allow: [trainium1]},
      training: [{name: pre, model: llama-3.1-8b, tokens: 20B, deadline: 30 days}]}"""
    document = api.solve(parse_scenario(text, file="a.yaml")).document
    (said,) = [one for one in document["warnings"] if "plan export" in one]
    assert said.endswith("trainium1 is neither GPU nor TPU, and all that it writes for runs on those alone")


@pytest.mark.parametrize(("more", "stages"), [("", {"none", "zero-1"}), (", sharding: zero-2", {"zero-2"})])
def test_muon_is_shared_out_as_the_program_that_is_named_does_it(more: str, stages: set[str]) -> None:
    """Megatron-LM has ZeRO-2, and Muon not in it: the job that named it was planned so, and DeepSpeed's file told."""
    text = JOB.format(
        model="llama-3.1-8b", more=f"framework: megatron, optimizer: muon{more}, layout: {{dp: [2, 4, 8], pp: 1}}",
        allow="b200-sxm",
    )  # fmt: skip
    (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
    assert row["layout"]["sharding"] in stages
    assert ("torchrun" in row["software"]) == (not more)  # what is asked for is planned all the same


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_experts_that_no_program_multiplies_are_told(precision: str) -> None:
    """Megatron-LM groups the products of experts in bf16 alone, and stops: its file was written, without a word."""
    text = JOB.format(model="mixtral-8x7b", more=f"precision: {precision}", allow="h100-sxm-80gb")
    document = api.solve(parse_scenario(text)).document
    (row,) = document["workloads"][0]["allocations"]
    assert row["software"] == []
    assert any("Megatron-LM computes experts" in warning for warning in document["warnings"])


FLEET = "{{name: a, model: llama-3.1-8b, qpm: 6, input_tokens: 500, output_tokens: 100, {more}}}"
SERVED = HEAD + "serving:\n  - " + FLEET + "\nhardware:\n  allow: [{allow}]\n"


@pytest.mark.parametrize(
    ("more", "says", "way"),
    [
        ("kv_cache: q4_0", "vllm keeps no cache in q4_0", "or engine: llama.cpp"),
        ("kv_cache: fp32", "vllm keeps no cache in fp32", "write kv_cache: bf16"),
        ("kv_cache: int8, engine: sglang", "sglang keeps no cache in int8", "or engine: vllm or llama.cpp"),
        ("kv_cache: fp8, engine: llama.cpp, weights: q8_0", "llama.cpp keeps no cache in fp8", "q8_0"),
    ],
)
def test_a_cache_that_an_engine_does_not_keep_is_refused(more: str, says: str, way: str) -> None:
    """Such fleets were planned, and no launch file could be written; of neither was there a word."""
    found = problem(SERVED.format(more=more, allow="h100-sxm-80gb"))
    assert found.message == says
    assert way in found.hint
    assert [place.line for place in found.places] == [4]


def test_a_cache_in_nvfp4_stands_where_engines_keep_one() -> None:
    """vLLM refuses it on Hopper and on cards of desks; it was planned, and launched, on the H100."""
    text = SERVED.format(more="kv_cache: nvfp4", allow="h100-sxm-80gb, rtx-5090, b200-sxm")
    document = api.solve(parse_scenario(text)).document
    assert {row["device"] for row in document["workloads"][0]["allocations"]} == {"b200-sxm"}
    assert any("keeps a cache in nvfp4 on b200-sxm" in line["text"] for line in document["named"])
    measured = SERVED.format(more="kv_cache: nvfp4, throughput: 2000 tokens/s", allow="h100-sxm-80gb")
    assert api.solve(parse_scenario(measured)).status == "optimal"  # whoever measured it has a build that does


@pytest.mark.parametrize(("more", "told"), [("layout: tp16", True), ("layout: tp4", False)])
def test_slices_of_several_hosts_are_told_to_have_no_launch_file(more: str, told: bool) -> None:
    """A layout of one's own is planned on any slice, and of large ones no launch file could be written."""
    text = SERVED.replace("llama-3.1-8b", "llama-3.1-70b").format(more=more + ", weights: int8", allow="tpu-v6e")
    document = api.solve(parse_scenario(text)).document
    said = "plan export writes for slices of one host alone"
    assert any(said in warning for warning in document["warnings"]) == told


@pytest.mark.parametrize(("engine", "told"), [("trt-llm", True), ("vllm", False)])
def test_replicas_of_several_machines_that_no_file_starts_are_told(engine: str, told: bool) -> None:
    """`plan export trt-llm` refused what was planned for it, and the plan had not said so."""
    text = SERVED.replace("llama-3.1-8b", "llama-3.1-405b").format(more=f"engine: {engine}", allow="h100-sxm-80gb")
    document = api.solve(parse_scenario(text)).document
    (row,) = document["workloads"][0]["allocations"]
    assert row["devices_per_replica"] > row["devices_per_shape"]
    assert any("MPI starts TensorRT-LLM's server" in warning for warning in document["warnings"]) == told


def test_every_cache_that_is_planned_has_a_word_in_the_launch_file() -> None:
    words = {"vllm": vllm.CACHES, "sglang": sglang.CACHES, "trt-llm": trtllm.CACHES, "llama.cpp": llamacpp.CACHES}
    assert {name: set(found) for name, found in words.items()} == {name: set(ENGINES[name].caches) for name in words}


def test_a_program_that_only_has_to_be_named_is_told_before_another_optimizer() -> None:
    """`adamw-8bit` on one card was answered with torchtitan's lack of it, and with AdamW, which does not fit there."""
    (row,), warnings = tuned("optimizer: adamw-8bit")
    assert row["software"] == []
    assert any("write framework: axolotl" in warning for warning in warnings)
    (row,), warnings = tuned("optimizer: adamw-8bit, framework: axolotl")
    assert row["software"] == ["axolotl"]
    large = JOB.format(model="qwen2.5-72b", more="optimizer: adamw-8bit", allow="h200-sxm")  # split by tensors, too
    warnings = api.solve(parse_scenario(large)).document["warnings"]
    assert any("write framework: axolotl, which has it, or optimizer: adamw" in warning for warning in warnings)


@pytest.mark.parametrize("optimizer", ["adamw-8bit-no-master", "adamw-pure-bf16"])
def test_axolotl_keeps_no_master_weights_without_deepspeed(optimizer: str) -> None:
    """No program of `plan export` had 8 bits without master weights, which is what Axolotl's loading in bf16 makes."""
    (row,), _ = tuned(f"optimizer: {optimizer}, framework: axolotl")
    assert (row["layout"]["sharding"], row["software"]) == ("none", ["axolotl"])
    (row,), warnings = tuned(f"optimizer: {optimizer}, framework: axolotl, sharding: zero-2, layout: {{dp: 8}}")
    assert "axolotl" not in row["software"]
    assert row["software"] or any("keeps a copy of the weights in 32 bits" in warning for warning in warnings)


def tuned(more: str) -> tuple[Any, Any]:
    """Allocations and warnings of a small model that is tuned."""
    text = JOB.format(model="llama-3.2-1b", more=more, allow="h100-sxm-80gb")
    document = api.solve(parse_scenario(text)).document
    return document["workloads"][0]["allocations"], document["warnings"]


@pytest.mark.parametrize(("framework", "told"), [("tensorflow", True), ("jax", True), ("pytorch", False)])
def test_a_library_that_nothing_is_exported_for_is_told(framework: str, told: bool) -> None:
    """A job that names TensorFlow was planned as FSDP and launched with torchtitan, without a word."""
    (row,), warnings = tuned(f"framework: {framework}")
    assert row["software"]
    said = f"plan export writes nothing for {framework}, which the job names, but for "
    assert any(said in warning for warning in warnings) == told


@pytest.mark.parametrize(
    ("more", "recompute"),
    [("", "full"), (", framework: deepspeed", "full"), (", lora: {rank: 8}", "full"), (", recompute: none", "none")],
)
def test_activations_move_to_the_host_where_a_program_moves_them(more: str, recompute: str) -> None:
    """DeepSpeed moves the inputs of layers that it computes again, and was told nothing where nothing is: the device
    was to hold what was planned for the host."""
    text = JOB.format(model="llama-3.1-8b", more=f"offload: activations{more}", allow="h100-sxm-80gb")
    (row,) = api.solve(parse_scenario(text)).document["workloads"][0]["allocations"]
    assert row["layout"]["recompute"] == recompute
    assert ("deepspeed" in row["software"]) == (recompute == "full")


def test_adapters_on_tpus_name_what_trains_them() -> None:
    """It said that MaxText trains none, and not what does."""
    job = {"name": "adapt", "model": "llama-3.1-70b", "tokens": "200M", "deadline": "7 days", "lora": {"rank": 16}}
    document = api.solve(scenario([job], hardware={"allow": ["tpu-v6e"]})).document
    (said,) = [line for line in document["warnings"] if "no program that plan export writes for" in line]
    assert said.endswith("MaxText trains no adapters; DeepSpeed, TRL, Axolotl do, on GPUs (hardware.allow)")
