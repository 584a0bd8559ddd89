"""Layouts that are fixed, or a choice of few: `layout` of a workload, as a mapping or in words, "tp2 pp1 zero-3"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field

from planner.scenario.fields import FIELD, Count, OneOrMany, refuse, written
from planner.scenario.part import Part
from planner.scenario.runs import Recompute, Sharding

SERVING_SIZES = ("tp", "pp", "dp", "ep", "cp")
TRAINING_SIZES = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch")
_SIZE = re.compile(r"(dp|tp|pp|vpp|cp|ep|mb|micro_batch)[=:]?([1-9][0-9]{0,5})")
_STAGE = re.compile(r"(?:sharding[=:])?zero[-=:]?([0-3])")
_EXAMPLE = 'write {tp: 2, pp: 1}, or "tp2 pp1"'


class ReplicaPin(Part):
    """Sizes of a replica's layout; what is not given is free."""

    tp: OneOrMany[Count] | None = Field(None, description="tensor-parallel ranks; a list: choose")
    pp: OneOrMany[Count] | None = Field(None, description="pipeline stages; a list: choose")
    dp: OneOrMany[Count] | None = Field(None, description="attention data-parallel ranks, beside experts; or a list")
    ep: OneOrMany[Count] | None = Field(None, description="expert-parallel ranks; a list: choose")
    cp: OneOrMany[Count] | None = Field(None, description="tensor ranks that share out a cache's tokens; or a list")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """What is fixed."""
        return {name: getattr(self, name) for name in SERVING_SIZES if getattr(self, name) is not None}


class LayoutPin(Part):
    """Parts of a job's layout; what is not given is free."""

    dp: OneOrMany[Count] | None = Field(None, description="data-parallel replicas; a list: choose")
    tp: OneOrMany[Count] | None = Field(None, description="tensor-parallel ranks; a list: choose")
    pp: OneOrMany[Count] | None = Field(None, description="pipeline stages; a list: choose")
    vpp: OneOrMany[Count] | None = Field(None, description="virtual stages of each pipeline rank; a list: choose")
    cp: OneOrMany[Count] | None = Field(None, description="context-parallel ranks; a list: choose")
    ep: OneOrMany[Count] | None = Field(None, description="expert-parallel ranks; a list: choose")
    micro_batch: OneOrMany[Count] | None = Field(None, description="sequences of one pass of a replica; a list: choose")
    sharding: OneOrMany[Sharding] | None = Field(None, description="ZeRO stage, in place of the job's own list")
    recompute: OneOrMany[Recompute] | None = Field(None, description="recomputation, in place of the job's own list")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Sizes that are fixed."""
        return {name: getattr(self, name) for name in TRAINING_SIZES if getattr(self, name) is not None}


def layout_branch(value: object) -> object:
    """A layout in words, "tp2 pp1 zero-3 mb4 full" or "tp=2,pp=1", is short for a mapping."""
    if value is None or isinstance(value, Mapping | Part):
        return value
    words = re.split(r"[\s,]+|(?<=\d)(?=[a-z])", value.strip(" ,").lower()) if isinstance(value, str) else []
    if not any(words):
        refuse("wrong-type", f"{FIELD} is {written(value)}, which is no layout", _EXAMPLE)
    found: dict[str, object] = {}
    for word in words:
        size, stage = _SIZE.fullmatch(word), _STAGE.fullmatch(word)
        kept = re.fullmatch(r"(?:recompute[=:])?(none|selective|full)", word)
        part: tuple[str, object]
        if size:
            part = ("micro_batch" if size[1] == "mb" else size[1], int(size[2]))
        elif stage:
            part = ("sharding", f"zero-{stage[1]}" if stage[1] != "0" else "none")
        elif kept:
            part = ("recompute", kept[1])
        else:
            refuse("wrong-type", f"{FIELD} has '{word[:40]}', which is no part of a layout", _EXAMPLE)
        if found.get(part[0], part[1]) != part[1]:  # the last one would count, and the first be lost
            both = f"{part[0]}: [{found[part[0]]}, {part[1]}]"
            refuse("wrong-type", f"{FIELD} has two values of {part[0]}", f"write one of them, or a list: {{{both}}}")
        found[part[0]] = part[1]
    return found
