"""llama-server: options that it has, and the replicas of the plan on devices and ports, as a shell starts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner import api
from planner.architecture.load import load_model
from planner.catalog.model import Catalog
from planner.estimate.serving_step import sequence_cache_bytes
from planner.export import Launch, NotExpressible, ServingLaunch, export, launches_of
from planner.export.engine import context_tokens
from planner.export.llamacpp import files, slots
from planner.plan.document import resealed
from tests.export.hostile import HOSTILE, hostile
from tests.export.scripts import recorded_parser, syntax_error
from tests.export.shells import stub_folder, words_of
from tests.tiers import settings
from tests.worlds import fleet, scenario


@pytest.fixture
def small(dozen: list[Launch]) -> ServingLaunch:
    (found,) = (launch for launch in dozen if launch.stem == "small" and isinstance(launch, ServingLaunch))
    return found


def servers(launch: ServingLaunch, folder: Path) -> list[Any]:
    """Options of every server that the script of one node starts, by the recorded list."""
    (text, *_) = (file.text for file in files(launch))
    assert syntax_error(text) == ""
    folder.mkdir(exist_ok=True)
    whole = text.replace("wait -n", "wait")  # servers that print and end, all of them
    (words,) = split_words(words_of_all(whole, stub_folder(folder)))
    parser = recorded_parser("llama-server")
    return [parser.parse_args(each[1:]) for each in words]


def words_of_all(text: str, stubs: Path, program: str = "llama-server") -> list[list[str]]:
    """Words of each server: the stub writes them at once, so that those of several do not mix."""
    marked = text.replace(f"exec {program}", f"exec env {program}")
    inner = f"cat > run.sh <<'END_OF_SCRIPT'\n{marked}END_OF_SCRIPT\nbash run.sh > all\n"
    more = "COUNT=$(tr -cd '\\001' < all | wc -c)\nprintf '%s\\0' all \"$((COUNT / 2))\" '\x01end\x01'\n"
    (told,) = words_of([inner + more], stubs, {"MODEL": "/a b.gguf", "LC_ALL": "C.UTF-8"})
    count = int(told[1])
    raw = (stubs / "scripts" / "all").read_bytes().decode()
    found = [part.split("\0")[:-1] for part in raw.split("\x01end\x01\0") if part]
    assert len(found) == count
    return found


def split_words(found: list[list[str]]) -> tuple[list[list[str]]]:
    assert all(words[0] == "llama-server" for words in found)
    return (found,)


def check(launch: ServingLaunch, found: list[Any]) -> None:
    """Devices, slots and lengths are the plan's."""
    layout, together = launch.layout, max(launch.replicas_per_node, 1)
    assert len(found) == together
    assert together * launch.machine.nodes == launch.replicas
    assert len({one.port for one in found}) == together
    used = [name for one in found for name in (one.device or "").split(",") if name]
    if together > 1:
        assert len(set(used)) == len(used) == together * launch.devices_per_replica
    for one in found:
        split = (one.tensor_split or "1").split(",")
        assert len(split) == layout.tp * layout.pp == launch.devices_per_replica
        assert one.split_mode == ("tensor" if layout.tp > 1 else "layer" if layout.pp > 1 else "none")
        assert one.ctx_size == one.parallel * context_tokens(launch)
        assert one.no_kv_unified
        assert one.parallel <= launch.batch
        assert one.n_gpu_layers == "all"
        arch, memory = launch.model.arch, launch.memory
        assert arch is not None
        assert memory is not None
        held = (
            one.ctx_size
            / context_tokens(launch)
            * float(sequence_cache_bytes(arch, launch.fleet.kv_cache, context_tokens(launch), layout.tp))
        )
        assert one.parallel == 1 or held / layout.pp <= memory.cache_room_bytes


def test_a_fleet_is_served_as_planned(small: ServingLaunch, tmp_path: Path) -> None:
    found = servers(small, tmp_path / "stubs")
    check(small, found)
    assert found[0].model == "/a b.gguf"
    assert found[0].cache_type_k == found[0].cache_type_v == "f16"
    assert slots(small) < small.batch  # 256 of the longest requests do not fit: the head says so
    (text, *_) = (file.text for file in files(small))
    assert f"{slots(small)} at once in place of the 256" in text


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tp=st.sampled_from((1, 2, 4)), pp=st.sampled_from((1, 2, 4)), shared=st.sampled_from((1, 2, 4)),
    batch=st.integers(1, 256), nodes=st.integers(1, 3),
)  # fmt: skip
def test_replicas_of_any_layout(
    small: ServingLaunch, tmp_path: Path, tp: int, pp: int, shared: int, batch: int, nodes: int
) -> None:
    size = tp * pp
    machine = replace(small.machine, nodes=nodes, devices_per_node=size * shared, devices=size * shared * nodes)
    asked = replace(
        small, layout=replace(small.layout, tp=tp, pp=pp), machine=machine, batch=float(batch),
        devices_per_replica=size, replicas=shared * nodes, replicas_needed=1, replicas_always=shared * nodes,
    )  # fmt: skip
    if min(tp, pp) > 1:
        with pytest.raises(NotExpressible, match="by tensors or by stages alone"):
            files(asked)
        return
    check(asked, servers(asked, tmp_path / "stubs"))


def test_what_it_does_not_do_is_refused(small: ServingLaunch) -> None:
    two = replace(small, layout=replace(small.layout, tp=2), devices_per_replica=2,
                  machine=replace(small.machine, devices_per_node=2, devices=2))  # fmt: skip
    deepseek = replace(two, model=replace(small.model, arch=load_model("deepseek-v3")))
    cases = {
        "does not split tensors of deepseek_v3": deepseek,
        "devices of intel": replace(two, machine=replace(two.machine, vendor="intel")),
        "beside a cache in int8": replace(two, fleet=small.fleet.model_copy(update={"kv_cache": "int8"})),
        "no backend": replace(small, machine=replace(small.machine, vendor="google")),
        "no cache in fp8": replace(small, fleet=small.fleet.model_copy(update={"kv_cache": "fp8"})),
        "no files in fp8": replace(small, fleet=small.fleet.model_copy(update={"weights": "fp8"})),
        "joins machines": replace(small, layout=replace(small.layout, pp=4), devices_per_replica=4,
                                  machine=replace(two.machine, nodes=2)),
    }  # fmt: skip
    for reason, launch in cases.items():
        (refusal,) = export("llama.cpp", [launch]).refusals
        assert reason in refusal.reason


def test_a_server_of_llama_cpp_is_no_pod_of_vllm(small: ServingLaunch) -> None:
    for form in ("kubernetes", "skypilot"):
        (refusal,) = export(form, [small]).refusals
        assert "llama.cpp" in refusal.instead


@pytest.mark.parametrize("cards", [["l4"], ["l40s"]])
def test_llama_cpp_is_planned_in_layouts_that_it_has(catalog: Catalog, cards: list[str]) -> None:
    """A 70B model does not fit one card: of tensors and stages one is split, within one machine."""
    one = fleet("chat", model="llama-3.1-70b", weights="q4_k_m", kv_cache="fp16", engine="llama.cpp", qpm=5,
                input_tokens=500, output_tokens=100)  # fmt: skip
    document = api.solve(scenario(serving=[one], hardware={"allow": cards})).document
    assert document["status"] == "optimal"
    (launch,) = launches_of(document, catalog, command="plan export")
    assert isinstance(launch, ServingLaunch)
    assert min(launch.layout.tp, launch.layout.pp) == 1
    assert launch.nodes_per_replica == 1
    assert files(launch)
    assert not api.verify(document)


def test_a_plan_that_splits_both_ways_is_refused() -> None:
    one = fleet("chat", model="llama-3.1-70b", weights="q4_k_m", kv_cache="fp16", engine="llama.cpp", qpm=5,
                input_tokens=500, output_tokens=100)  # fmt: skip
    document: Any = api.solve(scenario(serving=[one], hardware={"allow": ["l4"]})).document
    row = document["workloads"][0]["allocations"][0]
    assert row["layout"]["tp"] * row["layout"]["pp"] == 4
    row["layout"].update(tp=2, pp=2)
    assert any("by tensors or by stages alone" in problem.message for problem in api.verify(resealed(document)))


def test_hostile_names(small: ServingLaunch) -> None:
    for name in HOSTILE[:20]:
        (text, *_) = (file.text for file in files(hostile(small, name)))
        assert syntax_error(text) == ""


@pytest.mark.parametrize(
    ("vendor", "cache", "built"),
    [("nvidia", "q5_0", True), ("nvidia", "q4_1", True), ("nvidia", "q8_0", False), ("nvidia", "bf16", False),
     ("amd", "q5_0", False)],
)  # fmt: skip
def test_caches_that_a_default_build_leaves_to_the_processor_are_told(
    small: ServingLaunch, vendor: str, cache: str, built: bool
) -> None:
    """llama.cpp says nothing itself, and prompts take eight to thirty times as long."""
    asked = replace(
        small,
        machine=replace(small.machine, vendor=vendor),
        fleet=small.fleet.model_copy(update={"kv_cache": cache}),
        layout=replace(small.layout, tp=1, pp=1),
    )
    (text, *_) = (file.text for file in files(asked))
    assert ("-DGGML_CUDA_FA_ALL_QUANTS=ON" in text) == built
