"""Offers whose rates a fleet's own table gives: what stands for a model and for hardware that nobody describes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from planner.architecture.model import size_only
from planner.catalog.offers import Given
from planner.scenario.schema import Scenario

NO_MODEL = size_only(name="any (rates given)", family="given", source="")


def known(value: Any) -> Any:
    """The same, with None for what is not a number, however deep."""
    if isinstance(value, Mapping):
        return {key: known(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [known(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def given_offers(scenario: Scenario) -> Iterator[Given]:
    """Every offer of every fleet's own table of rates."""
    for fleet in scenario.serving:
        rates = fleet.rates
        if rates is not None:
            source = ", ".join(name.replace("\\", "/").rsplit("/", 1)[-1] for name, _ in rates.files)
            for name, price in zip(rates.offers, rates.price_microusd_per_hour):
                yield Given(fleet=fleet.name, name=name, price_microusd_per_hour=price, source=source)
