"""trtllm-serve: options and YAML keys that it has; the plan's replicas, devices and memory, as a shell starts them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner import api
from planner.catalog.model import Catalog
from planner.export import Launch, NotExpressible, ServingLaunch, export, launches_of
from planner.export.engine import context_tokens, step_tokens
from planner.export.trtllm import files
from planner.scenario.serving_fleet import Speculative
from tests.export.hostile import HOSTILE, hostile
from tests.export.scripts import RECORDED, recorded_parser, syntax_error
from tests.export.shells import stub_folder
from tests.export.test_llama_server import words_of_all
from tests.tiers import settings
from tests.worlds import fleet, scenario

KINDS = {"flag": bool, "int": int, "float": float, "str": str}


@pytest.fixture(scope="module")
def chat(catalog: Catalog) -> ServingLaunch:
    """A fleet that is planned for TensorRT-LLM."""
    one = fleet(
        "chat", model="llama-3.1-8b", engine="tensorrt-llm", input_tokens=1000, output_tokens=200, throughput=None
    )
    document = api.solve(scenario(serving=[one], hardware={"allow": ["h100-sxm-80gb"]})).document
    (launch,) = launches_of(document, catalog, command="plan export trt-llm")
    assert isinstance(launch, ServingLaunch)
    return launch


def recorded_keys() -> dict[str, dict[str, str]]:
    with (RECORDED / "trtllm-options.csv").open(newline="") as stream:
        return {row["option"]: row for row in csv.DictReader(stream)}


def flat(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Keys of nested mappings, joined by points."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= flat(inner, f"{path}{key}.") if isinstance(inner, dict) else {path + key: inner}
    return found


def further(launch: ServingLaunch) -> dict[str, Any]:
    """The YAML's keys; each is one that was recorded, of its kind and among its choices."""
    (text,) = (file.text for file in files(launch) if file.name.endswith(".trtllm.yaml"))
    found, known = flat(yaml.safe_load(text)), recorded_keys()
    for key, value in found.items():
        assert isinstance(value, KINDS[known[key]["type"]]), key
        assert not known[key]["choices"] or str(value) in known[key]["choices"].split()
    return found


def servers(launch: ServingLaunch, folder: Path) -> list[Any]:
    """Options of every server that the script of one node starts, by the recorded list, with the devices it sees."""
    (text,) = (file.text for file in files(launch) if file.name.endswith(".sh"))
    assert syntax_error(text) == ""
    folder.mkdir(exist_ok=True)
    seen = text.replace("wait -n", "wait").replace("exec trtllm-serve", 'exec trtllm-serve "${CUDA_VISIBLE_DEVICES:-}"')
    found, parser = [], recorded_parser("trtllm-serve")
    for words in words_of_all(seen, stub_folder(folder), program="trtllm-serve"):
        options = parser.parse_args(words[3:])
        options.devices, options.model = words[1], words[2]
        found.append(options)
    return found


def check(launch: ServingLaunch, found: list[Any]) -> None:
    """Replicas, devices, lengths and the cache are the plan's."""
    layout, together, keys = launch.layout, launch.replicas_per_node, further(launch)
    assert len(found) == together
    assert together * launch.machine.nodes == launch.replicas
    assert len({one.port for one in found}) == together
    used = [name for one in found for name in one.devices.split(",") if name]
    if together > 1:
        assert sorted(map(int, used)) == list(range(together * launch.devices_per_replica))
    for one in found:
        assert one.tp_size * one.pp_size == launch.devices_per_replica
        assert one.pp_size == layout.pp
        assert (one.ep_size or 1) == layout.ep
        assert one.max_seq_len == context_tokens(launch)
        assert one.max_num_tokens == step_tokens(launch, "trt-llm")
        assert one.max_batch_size * layout.dp >= launch.batch > (one.max_batch_size - 1) * layout.dp
        assert one.enable_chunked_prefill
        assert Path(one.extra_llm_api_options).name == f"{launch.stem}.trtllm.yaml"
        assert one.host == "0.0.0.0"
    assert keys.get("enable_attention_dp", False) == (layout.dp > 1)
    memory = launch.memory
    assert memory is not None
    free = launch.machine.memory_bytes - memory.weights_bytes - memory.workspace_bytes
    assert keys["kv_cache_config.free_gpu_memory_fraction"] * free == pytest.approx(memory.cache_room_bytes, rel=1e-3)


def test_a_fleet_is_served_as_planned(chat: ServingLaunch, tmp_path: Path) -> None:
    (found,) = servers(chat, tmp_path / "stubs")
    check(chat, [found])
    assert found.model == "meta-llama/Llama-3.1-8B"
    assert not any("predicted for" in file.text for file in files(chat))  # one engine by two of its names
    assert further(chat)["kv_cache_config.free_gpu_memory_fraction"] == 0.9


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tp=st.sampled_from((1, 2, 4)), pp=st.sampled_from((1, 2)), dp=st.sampled_from((1, 2)),
    shared=st.sampled_from((1, 2, 4)), batch=st.integers(2, 256), nodes=st.integers(1, 3),
)  # fmt: skip
def test_replicas_of_any_layout(
    chat: ServingLaunch, tmp_path: Path, tp: int, pp: int, dp: int, shared: int, batch: int, nodes: int
) -> None:
    size = tp * pp * dp
    machine = replace(chat.machine, nodes=nodes, devices_per_node=size * shared, devices=size * shared * nodes)
    asked = replace(
        chat, layout=replace(chat.layout, tp=tp, pp=pp, dp=dp), machine=machine, batch=float(batch),
        devices_per_replica=size, replicas=shared * nodes, replicas_needed=1, replicas_always=shared * nodes,
    )  # fmt: skip
    if min(tp, dp) > 1:
        with pytest.raises(NotExpressible, match="its own requests"):
            files(asked)
        return
    check(asked, servers(asked, tmp_path / "stubs"))


def test_pools_know_their_part(plans: dict[str, Any], launches: Callable[..., list[Launch]]) -> None:
    pools = [launch for launch in launches("disaggregated") if isinstance(launch, ServingLaunch)]
    for launch in pools:
        machine = replace(launch.machine, vendor="nvidia", devices_per_node=launch.devices_per_replica)
        asked = replace(launch, layout=replace(launch.layout, dp=1, cp=1), machine=machine)
        keys = further(asked)
        assert keys["cache_transceiver_config.backend"] == "NIXL"
        assert keys.get("disable_overlap_scheduler", False) == (launch.role == "prefill")
        assert any("context_servers" in file.text for file in files(asked))


def test_formats(chat: ServingLaunch, tmp_path: Path) -> None:
    small = replace(
        chat, fleet=chat.fleet.model_copy(update={"weights": "fp8", "kv_cache": "fp8", "prefix_cached": 0.5})
    )
    keys = further(small)
    assert keys["kv_cache_config.dtype"] == "fp8"
    assert keys["kv_cache_config.enable_block_reuse"] is True
    assert any("MODEL must hold a checkpoint in that format" in file.text for file in files(small))
    assert "kv_cache_config.enable_block_reuse" not in further(chat)


def test_fp8_is_planned_where_it_is_served() -> None:
    """vLLM serves fp8 weights on an A100 as weights alone; TensorRT-LLM on 8-bit units alone."""
    one = {"model": "llama-3.1-8b", "weights": "fp8", "throughput": None}
    asked = {"hardware": {"allow": ["a100-80gb*", "h100-sxm-80gb"]}}
    kinds = {}
    for engine in ("vllm", "trt-llm"):
        document: Any = api.solve(scenario(serving=[fleet("chat", engine=engine, **one)], **asked)).document
        (row,) = document["workloads"][0]["allocations"]
        kinds[engine] = row["device"]
    assert kinds["vllm"].startswith("a100")
    assert kinds["trt-llm"] == "h100-sxm-80gb"


def test_what_it_does_not_do_is_refused(chat: ServingLaunch) -> None:
    machine, changed = chat.machine, chat.fleet.model_copy
    drafted = {"speculative": Speculative(length=4, acceptance=0.7)}
    cases = {
        "does not run on": replace(chat, machine=replace(machine, vendor="amd")),
        "does not run on v100": replace(chat, machine=replace(machine, family="volta", device="v100")),
        "no checkpoints in q4_k_m": replace(chat, fleet=changed(update={"weights": "q4_k_m"})),
        "no cache in int8": replace(chat, fleet=changed(update={"kv_cache": "int8"})),
        "fp8 weights on a100": replace(
            chat, fleet=changed(update={"weights": "fp8"}),
            machine=replace(machine, device="a100", family="ampere", formats=frozenset({"bf16", "int8"})),
        ),
        "draft models": replace(chat, fleet=changed(update=drafted)),
        "decode context parallelism": replace(chat, layout=replace(chat.layout, tp=2, cp=2)),
        "joins the nodes": replace(chat, devices_per_replica=16, layout=replace(chat.layout, tp=16),
                                   machine=replace(machine, devices_per_node=8, nodes=2, devices=16)),
    }  # fmt: skip
    for reason, launch in cases.items():
        (refusal,) = export("trt-llm", [launch]).refusals
        assert reason in refusal.reason


def test_it_is_no_pod_of_vllm(chat: ServingLaunch) -> None:
    for form in ("kubernetes", "skypilot"):
        (refusal,) = export(form, [chat]).refusals
        assert "trt-llm" in refusal.instead


def test_hostile_names(chat: ServingLaunch) -> None:
    for name in HOSTILE[:20]:
        made = files(hostile(chat, name))
        assert all(syntax_error(file.text) == "" for file in made if file.name.endswith(".sh"))
        assert further(hostile(chat, name))
