"""What is trained or served: a preset, a configuration, or a bare size."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, ValidationInfo, model_validator

from planner.scenario.fields import (
    FIELD,
    FilePath,
    Parameters,
    Pattern,
    from_file,
    refuse,
)
from planner.scenario.part import Part

_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?[bBmMT]")


def model_branch(value: object) -> object:
    """A bare text is short for {preset: text}; a size, "13b", for {parameters: 13b}."""
    if isinstance(value, Mapping | Part):
        return value
    return {"parameters": value} if isinstance(value, str) and _SIZE.fullmatch(value) else {"preset": value}


class ModelRef(Part):
    """What is trained or served: a preset by name, a config.json, or a bare number of parameters."""

    preset: Pattern | None = Field(None, description="name of a shipped preset, or of its model on Hugging Face")
    config: FilePath | None = Field(None, description="config.json or its folder, from the scenario file")
    parameters: Parameters | None = Field(None, description="coarse: only the size is known")

    @model_validator(mode="after")
    def _one_of_three(self, info: ValidationInfo) -> ModelRef:
        given = [key for key in ("preset", "config", "parameters") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "says nothing" if not given else f"gives {' and '.join(given)}"
            refuse("missing-field" if not given else "conflict", f"{FIELD} {what}; it wants one way to say what it is",
                   "write a preset's name, {config: path/to/config.json} or {parameters: 8B}")  # fmt: skip
        if self.config is not None:
            self.__dict__["config"] = from_file(self.config, info)
        return self
