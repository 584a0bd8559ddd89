"""Numbers of a plan with their units and bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=0)]
Microusd = Annotated[int, Field(ge=0, description="integer micro-dollars")]
Usd = Annotated[float, Field(description="USD, for people; the micro-dollar figure beside it is exact")]
