"""Settings without which a trainer stops, or keeps more in memory than was planned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.export import Launch, export
from planner.export.torchtitan import job_config
from tests.export.test_training_formats import changed, jobs_of

Read = Callable[..., list[Launch]]


@pytest.mark.parametrize(("pp", "policy"), [(1, "default"), (2, "always")])
def test_torchtitan_frees_weights_after_the_forward_pass(launches: Read, pp: int, policy: str) -> None:
    """Its default keeps them whole under a pipeline: more memory than ZeRO-3 was planned with."""
    change = changed({"layout": {"sharding": "zero-3", "pp": pp, "dp": 16 // pp, "micro_batches": 31 * pp}})
    (launch,) = jobs_of(launches("llama", change))
    assert job_config(launch)["parallelism"]["fsdp_reshard_after_forward"] == policy


def test_torchtitan_says_that_it_moves_more_than_the_optimizer(launches: Read) -> None:
    for offload in ([], ["optimizer"]):
        (launch,) = jobs_of(launches("llama", changed({"job": {"offload": offload or None}})))
        config, _ = export("torchtitan", [launch]).files
        assert ("keeps weights and gradients on the host, too" in config.text) == bool(offload)


@pytest.mark.parametrize(
    ("precision", "loss", "components"),
    [("bf16", "fused", ["loss"]), ("bf16", "standard", None), ("fp8", "fused", ["model", "loss"]),
     ("fp8", "standard", ["model"])],
)  # fmt: skip
def test_torchtitan_compiles_what_the_plan_counts_on(
    launches: Read, precision: str, loss: str, components: list[str] | None
) -> None:
    """A note asked for it alone, and a job in fp8 ran without: slower than one of 16 bits."""
    change = changed(
        {"layout": {"sharding": "zero-3"}, "job": {"precision": precision, "stack": {"cross_entropy": loss}}}
    )
    (launch,) = jobs_of(launches("llama", change))
    expected = None if components is None else {"enable": True, "components": components}
    assert job_config(launch).get("compile") == expected


@pytest.mark.parametrize(("sharding", "queues"), [("zero-1", "1"), ("zero-3", "8")])
def test_megatron_finds_its_queues_on_amd_too(launches: Read, sharding: str, queues: str) -> None:
    """It asks for one queue beside tensor ranks on every device before Blackwell, AMD's among them, and stopped."""
    change = changed({"layout": {"sharding": sharding}, "row": {"device": "mi300x"}})
    (file,) = export("torchrun", [jobs_of(launches("llama", change))[0]]).files
    assert f"export CUDA_DEVICE_MAX_CONNECTIONS={queues}" in file.text
