"""What every mapping of a scenario has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A mapping of the scenario: strict, frozen, no unknown fields."""

    # validators are built on first use: as parts of the whole scenario, and not also each on its own
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)
