"""Answers to what is asked of a plan, as types: what limits are worth, break-even prices, why not another device."""

from __future__ import annotations

from typing import Literal, NotRequired, final

from typing_extensions import TypedDict

from planner.plan.model.plan import Allocation

_From = TypedDict("_From", {"from": int, "to": int})


class MarginalValue(_From):
    """What one step of a limit saves; null where that step could not be solved."""

    limit: str
    place: str
    unit: str
    from_text: str
    step_text: str
    setting: str
    binding: bool
    value_microusd: int | None
    value_usd: float | None
    cost_microusd: int | None
    proven: bool


class EnterPrices(TypedDict):
    """The price at which a device would be chosen; null where that is at no price."""

    share: float | None
    share_exact: str | None
    price_usd_per_device_hour: float | None
    break_even_usd_per_device_hour: float | None
    proven: bool


class BreakEvenRow(EnterPrices):
    """What forcing a device costs, and when it would be chosen."""

    device: str
    forced_microusd: int | None
    forced_usd: float | None
    regret_microusd: int | None
    regret_usd: float | None


class AskedOf(TypedDict):
    """A workload and the device that is asked about."""

    workload: str
    device: str
    allowed: bool
    unlaunched: NotRequired[bool]
    "left out as nothing that `plan export` writes for runs it there, and nobody named the device; compared if it did"
    misses: list[str]


@final
class NotCompared(AskedOf):
    """The device is in the plan, or there is no way to use it."""

    state: Literal["chosen", "impossible"]


@final
class WithinNoLimits(AskedOf):
    """The limits that the workloads share leave no room for the device."""

    state: Literal["limits"]
    proven: bool


@final
class ComparedWith(AskedOf, EnterPrices):
    """The cheapest plan with the device beside the plan."""

    state: Literal["dearer", "as cheap", "cheaper"]
    rows: list[Allocation]
    alone: bool
    plan_microusd: int
    plan_usd: float
    regret_microusd: int
    regret_usd: float
    regret_share: float
    device_hours_factor: float | None
    price_factor: float | None
    break_even_mfu: float | None


WhyNot = NotCompared | WithinNoLimits | ComparedWith


class LayoutPlan(TypedDict):
    """The cheapest plan with a layout beside the plan."""

    rows: list[Allocation]
    cost_microusd: int
    plan_microusd: int
    plan_usd: float
    dearer: float
    "of the workload over what it costs in the plan, as a share of that"
    proven: bool


class LayoutPrice(TypedDict):
    """What a workload costs in a layout: on the offers that it is planned on, and anywhere; or why it cannot be."""

    workload: str
    layout: str
    refused: str
    hint: str
    aside: str
    """why the plan did not weigh it; empty: it did, or nobody knows better"""
    here: LayoutPlan | None
    anywhere: LayoutPlan | None


class Answers(TypedDict, total=False):
    """Everything that was asked."""

    marginal_values: list[MarginalValue]
    break_even: list[BreakEvenRow]
    why_not: list[WhyNot]
    layouts: list[LayoutPrice]
