"""Adapters on cards that cannot hold the frozen weights: what people do then is told, since it is not planned."""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from tests.worlds import scenario

SAID = "frozen weights are planned on the devices"


@pytest.mark.parametrize(("model", "said"), [("llama-3.1-70b", True), ("llama-3.1-8b", False)])
def test_frozen_weights_that_do_not_fit_are_told_with_what_others_do(model: str, said: bool) -> None:
    """A QLoRA of 70B takes 19.96 GB of weights on each of two cards, and 27.7 GB with the rest at 2,048 tokens.

    As published: two cards of 24 GB run it with weights in host memory, without that two of 40 GB are asked for.
    """
    job: dict[str, Any] = {"name": "j", "model": model, "tokens": "1M", "deadline": "60 days",
                           "lora": {"rank": 16, "base": "nf4"}, "sequence_length": 2048,
                           "global_batch": "16 sequences"}  # fmt: skip
    owned = [{"shape": "onprem/rtx-3090-x2", "count": 1, "price": "$0.2/h"}]
    asked = scenario([job], hardware={"allow": ["rtx-3090"], "owned": owned}, limits={"max_devices": 2})
    plan = api.solve(asked, api.catalog_of(asked)).document
    assert (plan["status"] == "infeasible") == said
    assert any(SAID in line for line in plan["warnings"]) == said
