"""The reserve document (`plan/reserve/v1`) as types, of which its JSON Schema is made."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from planner.plan.model.plan import CatalogUsed, Status
from planner.scenario.hardware_keys import COMMITMENT_HOURS

ASKED_HOURS = {**COMMITMENT_HOURS, "block": 8760.0}  # of load, for each kind; a scenario with periods keeps its horizon
Happens = Literal["demand", "price", "end"]


class BreakEven(TypedDict):
    """A commitment to a shape beside what the shape costs on demand at the same provider."""

    offer: str
    provider: str
    region: str
    device: str
    shape: str
    price_model: str
    contract: str
    """reservation, savings plan, committed use, capacity block; empty where nothing is said"""
    term_hours: float
    price_microusd_per_hour: int
    on_demand: str | None
    """the offer on demand that it is held against: in its region, else the provider's cheapest; null: not sold so"""
    on_demand_microusd_per_hour: int | None
    use: float | None
    """share of the term that a node has to be in use for the commitment to be cheaper"""
    as_of: str
    status: str


class Reserved(TypedDict):
    """Nodes of one commitment that the program takes."""

    offer: str
    region: str
    shape: str
    device: str
    nodes: int
    devices: int
    fee_microusd: int
    used: float | None
    """share of the node-hours that is in use"""


class Otherwise(TypedDict):
    """What both ways cost when something turns out otherwise, with what was reserved kept."""

    happens: Happens
    """demand: the rate of every fleet is 30 % lower; price: all prices fall by 30 %; end: all is over half-way"""
    reserved_microusd: int | None
    on_demand_microusd: int | None
    """null: no plan was found, or the scenario says no rate that could be lower, or several futures"""


class Term(TypedDict):
    """What one kind of commitment does for the scenario, over its term."""

    price_model: str
    term_hours: float
    status: Status
    proven: bool
    cost_microusd: int | None
    on_demand_microusd: int | None
    """what the cheapest plan without commitments costs over the same time"""
    saved_microusd: int | None
    reserved: list[Reserved]
    otherwise: list[Otherwise]


class Started(Reserved):
    """Nodes of one commitment, of whatever kind, from when the program takes them."""

    price_model: str
    start_hours: float
    """from the begin; the program decides, in steps of a period"""
    start_date: str | None
    term_hours: float


class Together(TypedDict):
    """All kinds of commitments at once: which of them, how many nodes and from when is one decision of the program."""

    horizon_hours: float
    """of the scenario where it has periods, else the longest term"""
    period_hours: float
    status: Status
    proven: bool
    cost_microusd: int | None
    on_demand_microusd: int | None
    """what the cheapest plan without commitments costs over the same time"""
    saved_microusd: int | None
    reserved: list[Started]


@with_config(ConfigDict(extra="forbid"))
class ReserveDocument(TypedDict):
    """Break-evens of commitments, and what to reserve and what to leave on demand."""

    schema: Literal["plan/reserve/v1"]
    name: str
    title: str
    status: Status
    catalog: CatalogUsed
    break_evens: list[BreakEven]
    terms: list[Term]
    together: Together | None
    """null: fewer than two kinds of commitments are offered"""
    not_held: list[str]
    """limits of all that its own horizon costs or emits: no limits of a term, which is another time"""
    warnings: list[str]
    """what the plans that are chosen warn of, each once"""
