"""What stands beside a plan: its certificate, ways out where there is none, other plans, a simulation."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from planner.plan.model.rows import Count, Microusd, OnNode, Switch, Usd


class Limit(TypedDict):
    """A limit over several workloads, and what the plan uses of it."""

    name: str
    label: str
    bound: float
    used: float
    unit: str
    binding: bool


class SingleKind(TypedDict):
    """The cheapest plan that uses one kind of device throughout."""

    device: str
    cost_microusd: Microusd
    cost_usd: Usd
    dearer: float
    "fraction above the plan"


class Elsewhere(TypedDict):
    """What is rented by the hour, priced anew elsewhere: the same devices for the same time, nothing solved again."""

    seller: str
    "aws, gcp, azure; marketplaces: the cheapest of them, where they are left out because nobody asked for them"
    here_microusd: Microusd
    "of the same rows in this plan"
    cost_microusd: Microusd | None
    "in whole machines of the seller, on the same price model; null: some device is not sold so there"
    cost_usd: Usd | None
    dearer: float | None
    "fraction above here_microusd"
    offers: list[str]
    "the cheapest there, row by row"
    missing: list[str]
    "devices that are not sold so there, to this number or with a known network"
    unjoined: NotRequired[list[str]]
    "those of them that are sold so there, in machines that cannot work together for want of a known network"
    instead: NotRequired[list[str]]
    "where some are missing: devices that the scenario allows, sold there on a price model that it allows"


class Reason(TypedDict):
    """Why ways to run a workload were dropped, and which came nearest."""

    reason: str
    what: str
    count: Count
    nearest: str


class Named(TypedDict):
    """What became of something that the scenario names: owned machines, a device, a provider, terms of a price."""

    place: str
    "where the scenario names it first"
    name: str
    used: bool
    text: str


class Rejected(TypedDict):
    """What was looked at for a workload, and why it was dropped."""

    devices: Count
    "kinds of devices that it could run on alone, as many as alternatives are told of"
    offers_seen: Count
    layouts_seen: Count
    columns: Count
    reasons: list[Reason]


class RowPrice(TypedDict):
    """The price of a limit."""

    number: Count
    name: str
    price: Count


class RequestPrices(TypedDict):
    """Prices of a fleet's requests at a level of load, by bucket."""

    level: Count
    prefill: list[Count]
    decode: list[Count]


class FleetPrices(TypedDict):
    """Lines that a fleet's units meet together, each prices of its requests; for which share of its weights."""

    workload: str
    share: Count
    lines: list[list[RequestPrices]]


class SpotPrice(TypedDict):
    """What a rate on spot beyond its share costs a fleet, as much as one within it gains."""

    workload: str
    price: Count


class Branch(TypedDict):
    """What parts plans in two, before both sides: units of a column, or a job's use of a limit; or prices of a side."""

    kind: Literal["units", "use", "prices"]
    number: NotRequired[Count]
    "units: the column among those of the workload, or among all where none is named; use: the limit"
    most: NotRequired[Count]
    "units of the column, or use of the limit (0 where left out), on the first side; the second has more"
    workload: NotRequired[str]
    "whose column it is, or the job that uses so much of the limit at most on the first side"
    rows: NotRequired[list[RowPrice]]
    "prices of limits at which the plans of the side weigh most"


class Prices(TypedDict):
    """Prices of joint limits, of requests and of shares on spot."""

    rows: list[RowPrice]
    requests: list[FleetPrices]
    spots: NotRequired[list[SpotPrice]]
    branches: NotRequired[list[Branch]]
    "a tree from its root on, that proves more than the prices of all together"


class Selection(Prices):
    """Prices, and what selects the columns that they are put to."""

    criterion: Literal["cost", "carbon", "limits"]
    "what is bounded; limits: nothing, the prices show that they cannot be met"
    latest_s: float | None


class Choice(Prices):
    """Prices of plans at one choice of as many providers as limits.max_providers allows."""

    providers: list[int]
    "their numbers, in the order of their names among all that the columns are of"
    criterion: Literal["cost", "carbon", "limits"]
    "what is bounded there; limits: nothing, no plan there meets every limit"


class Witness(Selection):
    """What proves a bound."""

    choices: NotRequired[list[Choice]]
    "prices that prove more at some choices of providers than those of all do; there where the bound rests on them"
    allow_suspect: bool
    earlier: Prices | None
    "where the earliest finish comes first: what shows that no plan finishes before latest_s"


class Certificate(Witness):
    """Prices that prove how much less any plan could cost, or that there is none."""

    value: int
    bound: int
    gap: float
    sha256: str
    "of the prices, their names and flags"


class Conflict(TypedDict):
    """A limit that contradicts the others."""

    name: str
    label: str
    place: str


_FromTo = TypedDict("_FromTo", {"from": int, "to": int | None})


class Moved(_FromTo):
    """A limit from what to what, in whole units and in words; the setting that does it."""

    unit: str
    from_text: str
    to_text: str
    more_text: str
    setting: str


class Change(Moved):
    """A limit that is loosened together with others."""

    limit: str


class WayOut(Change):
    """A limit loosened alone by the least that does; to is null where that limit alone is not enough."""

    place: str
    cost_microusd: Microusd | None
    cost_usd: float | None
    proven: bool


class Combined(TypedDict):
    """Several limits loosened together."""

    changes: list[Change]
    cost_microusd: Microusd
    cost_usd: float
    loosening: float
    "sum over the limits of the share by which each is loosened, the least there is"
    proven: bool


class Conflicts(TypedDict):
    """What contradicts itself, and what would mend it."""

    conflict: list[Conflict]
    minimal: bool
    ways_out: list[WayOut]
    "limits loosened one at a time, each by the least that does; to is null where that limit alone is not enough"
    combined: Combined | None
    "several limits loosened together"


class Infeasible(Conflicts):
    """Why nothing meets every limit."""

    workloads: dict[str, list[str]]
    "nearest misses of each workload that has no way to run"
    median_cost_microusd: Microusd | None
    median_cost_usd: float | None
    "what it would cost if times and memory had to hold at the median of their errors only"


class RowInShort(TypedDict):
    """What is rented, cut down to what tells plans apart."""

    offer: str
    provider: str
    region: str
    zone: str
    device: str
    shape: str
    price_model: str
    funding: str
    devices_per_shape: Count
    count: Count
    "shapes"
    devices: Count
    jobs: NotRequired[Count]
    replicas: NotRequired[Count]
    shared: NotRequired[list[OnNode]]
    "nodes that its replicas share with others"
    start_hours: float
    hours: float
    finish_hours: NotRequired[float]
    cost_microusd: Microusd
    cost_usd: Usd
    layout: dict[str, int | str]
    switch: NotRequired[Switch]
    "of a part of a job that begins on spot and ends on demand"


class WorkloadInShort(TypedDict):
    """A workload, cut down to what is rented for it."""

    name: str
    kind: Literal["training", "serving"]
    cost_microusd: Microusd
    cost_usd: Usd
    devices: Count
    finish_hours: float | None
    allocations: list[RowInShort]


class Plain(TypedDict):
    """The cheapest plan beside a plainer one that costs little more."""

    within: float
    "share that each workload may cost more"
    cheapest_microusd: Microusd
    cheapest_usd: Usd
    above: float
    "of the plan over the cheapest, as a share of that"
    workloads: list[WorkloadInShort]
    "as the cheapest plan runs those that are run more plainly here"


class DecisionPlan(TypedDict):
    """The plan of one decision in short."""

    proven: bool
    cost_microusd: Microusd
    cost_usd: float
    dearer_usd: float
    dearer: float
    devices: Count
    workloads: list[WorkloadInShort]


class Decisions(TypedDict):
    """The best different decisions."""

    asked: Count
    ended: str
    "how the search for more ended: infeasible = there is no other decision; empty = as many as asked"
    plans: list[DecisionPlan]
    "best first; each gives up at least one device, price model or place of every one before it"


class DeviceRange(TypedDict):
    """Fewest and most devices of a kind; null = not proven."""

    device: str
    fewest: Count | None
    most: Count | None
    best: Count


class NearOptimal(TypedDict):
    """What plans can have that cost hardly more than the best."""

    share: float
    cost_microusd: Microusd
    most_microusd: Microusd
    most_usd: float
    devices: list[DeviceRange]
    "fewest and most devices of each kind in plans of at most that cost; null = not proven"


class NodesChanged(TypedDict):
    """Nodes of a workload on an offer, in the plan before and now."""

    workload: str
    offer: str
    before: Count
    after: Count


class Previous(TypedDict):
    """The plan before: what changes, and what staying costs beside the cheapest plan."""

    sha256: str
    file: NotRequired[str]
    "where it was read"
    share: float | None
    move_usd: float | None
    changed_nodes: Count
    proven: bool
    changes: list[NodesChanged]
    cheapest_microusd: Microusd | None
    cheapest_usd: float | None
    staying_usd: float | None


class Others(TypedDict):
    """What else could be done: each figure is a proven solve."""

    decisions: Decisions | None
    near_optimal: NearOptimal | None
    previous: Previous | None
    "the plan before: what changes, and what staying costs beside the cheapest plan"


class SimulatedLatency(TypedDict):
    """A latency in a simulation."""

    mean: float
    p50: float
    p95: float
    p99: float


class Simulated(TypedDict):
    """A replica of a fleet in a seeded simulation."""

    workload: str
    offer: str
    device: str
    seed: int
    requests: Count
    users: NotRequired[Count]
    "of the replica, in whole numbers"
    requests_per_s: float
    "that are sent to it; of users what they did send"
    sequences: float
    ttft_s: SimulatedLatency
    tpot_s: SimulatedLatency
    e2e_s: SimulatedLatency
