"""What a plan buys ahead, and when everything runs."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from planner.plan.model.rows import Count, Microusd, Place, Run, Usd


class PoolPlace(TypedDict):
    """Where the nodes of a pool stand."""

    provider: str
    region: str
    zone: str
    shape: str


class ContractMoney(TypedDict):
    """Fees of a contract, of which a part may lie beyond the horizon."""

    fee_microusd: Microusd
    "of one node for the whole term"
    prorated: bool
    "only the part of the fee within the horizon counts"
    full_microusd: Microusd
    "whole fees of all nodes"
    prorated_microusd: Microusd
    "the part of them within the horizon"
    cost_microusd: Microusd
    "what counts in the total"


class ContractUse(TypedDict):
    """How full what is bought is, and whether it pays."""

    used_share: float | None
    "share of its node-hours within the horizon that is used"
    last_node_share: float | None
    "share of the time in which every contracted node is in use"
    next_node_share: float | None
    "share of the time in which one more would be in use"
    on_demand_microusd: Microusd | None
    "what the used node-hours of the same nodes would cost on demand there; null: not sold so"
    saved_microusd: int | None
    "that, less what the contract costs: a plan without it may save less, by nodes that cost less than the same ones"
    break_even_share: float | None
    "share of the time above which a node is cheaper under the contract than the same one on demand"


class Contract(PoolPlace, ContractMoney, ContractUse):
    """Nodes that are bought ahead of their use."""

    kind: str
    "commitment_1y, commitment_3y, block, calendar; on_demand: nodes for whole periods on top of contracts"
    offer: str
    pool: str
    device: str
    count: Count
    "nodes"
    devices: Count
    first_period: Count
    "first period that it supplies"
    end_period: Count
    "first period that it no longer supplies"
    start_hours: float
    end_hours: float
    "within the horizon"
    start_date: str | None
    end_date: str | None
    term_hours: float
    "its whole term, beyond the horizon too"
    price_microusd_per_hour: Microusd
    price_as_of: str
    price_status: str
    price_source: str
    cost_usd: Usd


CopyOrigin = TypedDict("CopyOrigin", {"from": str})


class CopyCells(CopyOrigin):
    """What a copy of a data set is of, and what it costs."""

    size_bytes: float
    kept_hours: float
    egress_microusd: Microusd
    storage_microusd: Microusd


class Copy(CopyCells):
    """A copy of a data set where jobs run away from their data."""

    data: str
    provider: str
    region: str
    cost_microusd: Microusd
    cost_usd: Usd


class ScheduledJob(TypedDict):
    """When one row runs, of the time that it has."""

    workload: str
    place: str
    jobs: Count
    release_hours: float
    start_hours: float
    finish_hours: float
    deadline_hours: float | None
    "null: a fleet, which runs throughout"
    slack_hours: float | None
    "until the deadline, at the confidence asked for"
    start_date: str | None
    finish_date: str | None
    runs: list[Run]


class PoolUseRow(PoolPlace):
    """Nodes of a pool, or of owned hardware, period by period."""

    pool: str
    kind: Literal["reserved", "owned"]
    used_share: float | None
    "share of the contracted or owned node-hours that is used"
    reserved: list[Count]
    "nodes by period"
    on_demand: list[Count]
    "nodes by period"
    used: list[Count]
    "nodes by period"


class PoolShare(TypedDict):
    """What a pool costs, by the node-hours that workloads hold of it."""

    pool: str
    workload: str
    node_hours: float
    cost_microusd: Microusd
    cost_usd: Usd


class Schedule(TypedDict):
    """When everything runs."""

    begin: str | None
    "date that hours count from"
    period_hours: float
    periods: Count
    jobs: list[ScheduledJob]
    use: list[PoolUseRow]
    shares: list[PoolShare]
    "what each pool costs, by the node-hours that workloads hold of it"


class Owned(TypedDict):
    """What owned hardware costs whether it runs or not; beside the total, never in it."""

    shape: str
    region: str
    count: Count
    hours: float
    sunk_microusd: Microusd
    sunk_usd: Usd


class SharedUser(TypedDict):
    """A fleet with replicas on shared nodes."""

    workload: str
    devices: Count
    replicas: Count
    lost_with_a_node: Count
    "the most of its replicas that stand on one of the nodes"
    cost_microusd: Microusd
    "that it bears"
    cost_usd: Usd


class SharedNodesRow(Place):
    """Nodes of one offer that replicas of several fleets share."""

    used_devices: Count
    hours: float
    cost_microusd: Microusd
    "of all of them; the rows of the fleets bear it"
    cost_usd: Usd
    users: list[SharedUser]


class OwnedHour(TypedDict):
    """What an hour of an owned shape costs by capital, power and staff, and what of the total they are."""

    place: str
    "of the scenario, such as hardware.owned[0]"
    shape: str
    offer: str
    "of the rows that run on it"
    devices_per_shape: Count
    bought_microusd: Microusd | None
    "price of one shape; null, as the two that follow: no capital is given"
    residual_microusd: Microusd | None
    years: float | None
    power_w: float | None
    "of one shape; null, as the two that follow: no power is given"
    energy_microusd_per_kwh: Microusd | None
    pue: float | None
    capital_microusd_per_hour: Microusd
    power_microusd_per_hour: Microusd
    staff_microusd_per_hour: Microusd
    price_microusd_per_hour: Microusd
    "of one shape: the sum of the three"
    price_usd_per_device_hour: Usd
    cost_microusd: Microusd
    "of the rows that run on it"
    capital_microusd: Microusd
    power_microusd: Microusd
    staff_microusd: Microusd
    "the three parts of that cost"


class Spend(TypedDict):
    """The total by what it depends on."""

    workloads_microusd: Microusd
    "paid by the hour that something runs"
    topped_up_microusd: Microusd
    "nodes on demand on top of contracts"
    copies_microusd: Microusd
    committed_microusd: Microusd
    "contracts: spent whether used or not"
    variable_microusd: Microusd
    "the rest of the total"
    sunk_microusd: Microusd
    "spent before; not in the total"


class BoughtParts(TypedDict):
    """What is bought ahead, and when everything runs, without the total of it."""

    contracts: list[Contract]
    "what is bought ahead of its use"
    copies: list[Copy]
    "copies of data sets where jobs run away from their data"
    schedule: Schedule | None
    "null: no calendar was asked for"
    owned: list[Owned]
    "what owned hardware costs whether it runs or not; beside the total, never in it"


class Bought(BoughtParts):
    """What is bought ahead, when everything runs, and the total by what it depends on."""

    spend: Spend | None
    "the total by what it depends on; null without a plan"
