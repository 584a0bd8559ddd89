"""What is refused names what launches it: every format is asked for every plan, and each suggestion is followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from planner.export import FORMATS, Launch, export

NONE = "no format of plan export launches it"
# allocations that nothing launches, each with what all formats say of it
UNLAUNCHED = {
    ("mixed-job", "pretrain-8b-1"): "several offers",
    ("mixed-job", "pretrain-8b-2"): "several offers",
    ("tpu", "bert-sized"): "pythia",  # no JAX software that is exported has a GPT-NeoX
}


def follow(launch: Launch) -> set[str]:
    """Formats that launch it; every refusal of the others is followed to files, or says that there are none."""
    told = {form: export(form, [launch]) for form in FORMATS}
    able = {form for form, result in told.items() if result.files}
    for form in set(FORMATS) - able:
        (refusal,) = told[form].refusals
        assert refusal.reason
        if not able:
            assert refusal.instead.startswith(NONE), (form, refusal)
            continue
        named = re.fullmatch(r"use ([a-z.]+(?:, [a-z.]+)*)", refusal.instead)
        assert named, (form, refusal)
        assert set(named[1].split(", ")) == able
    return able


def test_every_shipped_plan_is_launched_or_said_not_to_be(
    plans: dict[str, Any], launches: Callable[..., list[Launch]]
) -> None:
    unlaunched = set()
    for name in plans:
        for launch in launches(name):
            if not follow(launch):
                unlaunched.add((name, launch.stem))
                wanted = UNLAUNCHED[name, launch.stem]
                assert any(wanted in export(form, [launch]).refusals[0].reason for form in FORMATS)
    assert unlaunched == set(UNLAUNCHED)


def test_a_dozen_others(dozen: list[Launch]) -> None:
    able = {launch.stem: follow(launch) for launch in dozen}
    assert {name for name, formats in able.items() if not formats} == {"13b-fsdp"}
    assert {"torchrun", "deepspeed", "slurm", "kubernetes"} <= able["7b"]
    assert {"trl", "deepspeed", "slurm", "kubernetes"} <= able["qlora-13b"]
    assert {"maxtext", "skypilot"} <= able["tpu-8b"]
    assert {"sglang", "kubernetes"} <= able["experts"]


def test_a_suggestion_that_does_not_work_is_noticed(dozen: list[Launch], monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.export import registry

    monkeypatch.setattr(registry, "launching", lambda launch: ("torchrun", "torchtitan"))
    with pytest.raises(AssertionError):
        follow(next(launch for launch in dozen if launch.stem == "7b"))
