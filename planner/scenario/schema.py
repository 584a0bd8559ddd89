"""The scenario file, schema plan/v1, as frozen models: YAML keys are aliases, attributes carry units.

Every key of the schema is here, also those whose implementation is still to come: `not_yet.py`
lists the latter and refuses them when used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from planner import units
from planner.brief import brief, shown, some
from planner.errors import Place
from planner.scenario.fields import (
    Confidence,
    Count,
    CountOrZero,
    DataRate,
    Date,
    Duration,
    FilePath,
    Latency,
    Many,
    Mass,
    Name,
    OneOrMany,
    Pattern,
    Power,
    RequestRate,
    Share,
    ShareOrZero,
    Title,
    from_file,
    parse_date,
    refuse,
)
from planner.scenario.hardware_keys import (
    COMMITMENT_HOURS,
    Contract,
    Data,
    Discount,
    Flex,
    Owned,
    PriceModel,
    ProviderKind,
    SiteLimit,
)
from planner.scenario.money_fields import Currency, Money, Price, TransferPrice
from planner.scenario.periods import period_for
from planner.scenario.serving_fleet import EngineLimits, Format, ServingFleet
from planner.scenario.training_job import Batch, Optimizer, Stack, TrainingJob
from planner.scenario.workload_parts import (
    DEFAULT_CONFIDENCE,
    DEFAULT_ESTIMATOR,
    Estimator,
    Failures,
    GivenLayout,
    Lora,
    ModelRef,
    Part,
    StepTime,
)
from planner.yamlfile.writing import flow_text

if TYPE_CHECKING:
    from planner.yamlfile import Document

HORIZON_S = units.parse_duration("1 month")
MAX_PERIODS = 520  # ten years of weeks

Objective = Literal["cost", "time", "carbon"]
Month = Literal[
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip


class Quota(Part):
    """What a provider grants: devices or shapes of a kind, in a place, on a price model."""

    provider: Pattern | None = Field(None, description="of this provider; left out: of all")
    device: Pattern | None = Field(None, description="for these devices")
    region: Pattern | None = Field(None, description="in these regions")
    price_model: PriceModel | None = Field(None, description="on this price model; left out: on all, contracts too")
    max_devices: CountOrZero | None = Field(None, description="most devices at any time")
    max_shapes: CountOrZero | None = Field(None, description="most shapes at any time")

    @model_validator(mode="after")
    def _limits_something(self) -> Quota:
        if self.max_devices is None and self.max_shapes is None:
            refuse("missing-field", "a quota needs max_devices or max_shapes", 'add "max_devices: 64"')
        return self


class Spot(Part):
    """How often spot shapes are taken away."""

    interruptions_per_s: RequestRate = Field(alias="interruptions", description="of one shape")
    warning_s: Latency | None = Field(None, alias="warning", description="from the notice to the loss of the shape")
    restart_s: Latency | None = Field(
        None, alias="restart", description="until the job runs again, else as after a failure"
    )


class BetweenZones(Part):
    """What groups of one job in different zones, regions or providers reach of each other, one way."""

    bandwidth_bytes_per_s: DataRate = Field(alias="bandwidth", description="of one shape to shapes in other zones")
    latency_s: Latency | None = Field(
        None, alias="latency", description="default 100 ms, half the way round the Earth in glass"
    )
    price_usd_per_gb: TransferPrice = Field(alias="price", description="of what a group sends; $0/GB when it is free")


def _catalog(value: object) -> object:
    return None if value == "default" else value


class Hardware(Part):
    """What may be used."""

    catalog: Annotated[FilePath | None, BeforeValidator(_catalog)] = Field(None, description="default, or a folder")
    allow: OneOrMany[Pattern] = Field(
        ("*",),
        description="devices that may be used: names or patterns; one that is named counts "
        "even where plan export launches nothing on it",
    )
    deny: Many[Pattern] = Field((), description="devices that may not, even where allowed")
    regions: OneOrMany[Pattern] = Field(
        ("*",), description="regions that may be used: names, patterns, countries (de), or eu and eea"
    )
    providers: OneOrMany[Pattern] = Field(("*",), description="providers that may be rented from: names or patterns")
    exclude: Many[Pattern] = Field((), description="providers that may not, even where they are among those")
    kinds: OneOrMany[ProviderKind] | None = Field(
        None,
        description="kinds of providers; left out: all, marketplaces only where named or nobody else sells; what is "
        "owned always counts, `owned` alone rents nothing",
    )
    pricing: OneOrMany[PriceModel] = Field(("on_demand",), description="price models that may be used")
    allow_recalled: bool = Field(False, description="whether prices count that nobody saw, as they are remembered")
    owned: Many[Owned] = Field((), description="hardware that is there already; cheaper than rent, or idle")
    quotas: Many[Quota] = Field((), description="what providers grant you")
    assume_inter_node_bytes_per_s: DataRate | None = Field(
        None,
        alias="assume_inter_node",
        description="one direction, of one shape, where the network is unknown; rented parts of a host share that of "
        "the host, and no job is spread over them unasked where whole hosts are sold",
    )
    assume_between_zones: BetweenZones | None = Field(
        None, description="for groups of one job in different zones (mix_within_job)"
    )
    discounts: Many[Discount] = Field((), description="shares off list prices; the first that matches counts")
    contracts: Many[Contract] = Field(
        (),
        description="prices that you negotiated, beside the catalog's; of a seller whom it does not know by a machine "
        "such as dgx-h100",
    )
    beyond_horizon: Literal["full", "prorate"] = Field(
        "full", description="what counts of a fee for time after the horizon: all of it, or the part before"
    )
    flex: Flex | None = Field(None, description="terms of capacity that one queues for")
    boot_s: Latency | None = Field(
        None,
        alias="boot",
        description="paid for before a job runs on what it rents by the hour: boot and set-up; left out: by provider",
    )
    spot: Spot | None = Field(None, description="how often spot shapes are taken away, and what follows")
    share_nodes: bool = Field(
        True, description="whether replicas of several fleets, and jobs beside them, may stand on one node"
    )

    @model_validator(mode="after")
    def _resolve(self, info: ValidationInfo) -> Hardware:
        if self.catalog is not None:
            self.__dict__["catalog"] = from_file(self.catalog, info)
        return self


# key -> unit of the integer program, and how many of them are one of the scenario's own
_WHOLE = {
    "max_devices": ("devices", 1),
    "max_providers": ("providers", 1),
    "budget": ("microusd", 1),
    "spend": ("microusd/h", 1),
    "power": ("mW", 1000),
    "carbon": ("mg", 1000),
}


class Limits(Part):
    """What the whole plan must stay within."""

    budget_microusd: Money | None = Field(
        None, alias="budget", description="most that training and serving over the horizon may cost together"
    )
    max_devices: CountOrZero | None = Field(None, description="most devices at any time")
    power_w: Power | None = Field(
        None,
        alias="power",
        description="most power drawn at any time: as owned machines say, else what the accelerators are rated at; "
        "offers of unknown power are left out then",
    )
    max_providers: Count | None = Field(None, description="most different providers; what is owned counts as one")
    spend_microusd_per_hour: Price | None = Field(None, alias="spend", description="most spent in any hour")
    carbon_g: Mass | None = Field(
        None,
        alias="carbon",
        description="most CO2-equivalent over the horizon, of that power; offers of unknown power are left out then",
    )
    sites: Many[SiteLimit] = Field((), description="limits of single sites")

    @property
    def whole(self) -> dict[str, tuple[str, int]]:
        """Every limit that is stated, by its path: its unit in the integer program, and how many of them."""
        parts: list[tuple[str, Part]] = [("limits", self)]
        parts += [(f"limits.sites[{index}]", site) for index, site in enumerate(self.sites)]
        stated = {
            f"{path}.{key}": (_WHOLE[key], getattr(part, name))
            for path, part in parts
            for name, field in type(part).model_fields.items()
            if (key := field.alias or name) in _WHOLE
        }
        return {
            path: (unit, math.floor(value * of_one))
            for path, ((unit, of_one), value) in stated.items()
            if value is not None
        }


class Uncertainty(Part):
    """Something that may happen: settings that then hold."""

    name: Name = Field(description="what the case is called")
    probability: Share = Field(description="of the case; the rest belongs to the scenario as written")
    settings: Mapping[str, Any] = Field(alias="set", description="settings that then hold: path -> value")


class Risk(Part):
    """How much the bad cases weigh."""

    cvar: Share = Field(description="level of the bad cases: 95 % looks at the worst 5 %")
    weight: ShareOrZero = Field(0.5, description="weight of their mean cost; the rest goes to the expected cost")


class ReportOptions(Part):
    """How budgets are reported."""

    fiscal_year_start: Month = Field("january", description="first month of the fiscal year")
    contingency: ShareOrZero = Field(0.0, description="set aside beside the total; a line of its own, never in it")


class Scenario(Part):
    """The question: workloads, hardware, limits, objective."""

    schema_name: Literal["plan/v1"] = Field(alias="schema", description="version of this file's format")
    name: Name = Field(description="what plan files are called")
    title: Title = Field("", description="one line for people, printed above the plan")
    rates: Currency = Field(
        units.NO_RATES,
        alias="currency",
        description="dollars for one unit of other currencies that amounts are written in, and their day; totals are "
        "in dollars",
        json_schema_extra={"default": "USD"},
    )
    horizon_s: Duration = Field(
        HORIZON_S, alias="horizon", description="how long serving is paid for", json_schema_extra={"default": "1 month"}
    )
    estimator: Estimator = Field(
        DEFAULT_ESTIMATOR,
        description="rule (rules of thumb), analytic (fitted on published measurements), measured (what you measured)",
    )
    confidence: Confidence | None = Field(
        None,
        description="end of the error band at which deadlines, memory and latency targets must hold; left out: p90",
    )
    errors: Confidence | None = Field(None, description="what if all predictions err to this quantile, together")
    periods_s: Duration | None = Field(
        None,
        alias="periods",
        description="calendar grid; left out: as long as the shortest commitment that may be renewed, else all at once",
    )
    begin_date: Date | None = Field(None, alias="begin", description="of the plan; left out: the earliest start")
    training: Many[TrainingJob] = Field((), description="training jobs")
    serving: Many[ServingFleet] = Field((), description="serving fleets")
    hardware: Hardware = Field(
        default_factory=lambda: Hardware.model_validate({}), description="what may be rented or used"
    )
    limits: Limits = Field(
        default_factory=lambda: Limits.model_validate({}), description="what the whole plan must stay within"
    )
    objective: OneOrMany[Objective] = Field(
        ("cost",), description="what is minimised; a list is in order of importance"
    )
    prefer: Literal["plain", "cheapest"] = Field(
        "plain",
        description="plain takes, on the offers of the cheapest plan, plainer layouts and machines at little more",
    )
    plain_within: ShareOrZero = Field(
        0.02, description="share that each workload may cost more for plainer layouts or machines (prefer: plain)"
    )
    uncertainty: Many[Uncertainty] = Field(
        (), description="what may happen, each with its probability; contracts are chosen for all cases together"
    )
    risk: Risk | None = Field(None, description="how much the bad cases of uncertainty weigh")
    report: ReportOptions | None = Field(None, description="how budgets are reported")

    _document: Document = PrivateAttr()
    _again: Callable[[Scenario, Sequence[str]], Scenario] = PrivateAttr()  # loads it with --set texts, which load knows
    _resolved: dict[str, Any] = PrivateAttr(default_factory=dict)
    _case: str | None = PrivateAttr(None)
    _settings: tuple[str, ...] = PrivateAttr(())
    _begin: datetime | None = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        """Count every start from the earliest date that is named; what holds for all workloads holds for each."""
        for job in self.training:
            job._tier = job.estimator or self.estimator
            job._confidence = job.confidence or self.confidence or DEFAULT_CONFIDENCE
            job._errors = self.errors
        for fleet in self.serving:
            fleet._tier = fleet.estimator or self.estimator
            # a replica that errs to a quantile carries what it carries at that confidence
            fleet._confidence = self.errors or fleet.confidence or self.confidence or DEFAULT_CONFIDENCE
        dates = {job.name: parse_date(job.start) for job in self.training if job.start}
        named = [date for date in dates.values() if date is not None]
        self._begin = parse_date(self.begin_date) if self.begin_date else min(named) if named else None
        for job in self.training:
            if job.start is not None:
                date = dates[job.name]
                since = (date - self._begin).total_seconds() if date and self._begin else None
                job._start_s = units.parse_duration(job.start) if since is None else since
            if isinstance(job.deadline_given, str) and self._begin is not None:
                due = parse_date(job.deadline_given)
                held_s = (due - self._begin).total_seconds() - job._start_s if due else 0.0
                job._deadline_s = max(held_s, 1.0)  # one before the start is met by nothing

    @property
    def currency(self) -> str:
        """Of every figure: what is written in others is converted when it is read."""
        return "USD"

    @property
    def mixes(self) -> bool:
        """Whether groups of several offers may share a job: there are many, which are listed anew for each question."""
        return any(job.mix_within_job for job in self.training)

    @property
    def scheduled(self) -> bool:
        """Whether a calendar is asked for: periods, or something that is bought or placed ahead."""
        hardware = self.hardware
        ahead = hardware.contracts or not {"on_demand", "spot"}.issuperset(hardware.pricing)
        windows = any(owned.from_date or owned.until_date for owned in hardware.owned)
        jobs = any(job.after or job.schedule == "elastic" or job.data for job in self.training)
        return bool(self.periods_s or ahead or windows or jobs)

    @property
    def period_s(self) -> float:
        """Length of one period of the calendar; left out: a term that another may follow, else the horizon.

        Of that a part, where jobs start later and would have to wait for the next one.
        """
        if self.periods_s:
            return self.periods_s
        whole_s = self.renewed_s or self.horizon_s
        windows = tuple((job.start_s, job.deadline_s) for job in self.training if job.start_s > 0)
        return period_for(whole_s, windows, int(MAX_PERIODS * whole_s / self.horizon_s)) if windows else whole_s

    @property
    def renewed_s(self) -> float | None:
        """The shortest term of a commitment that ends within the horizon, so that another one may follow; None: none.

        Only where no periods are given.
        """
        if self.periods_s:
            return None
        terms = [COMMITMENT_HOURS[one] for one in self.hardware.pricing if one in COMMITMENT_HOURS]
        own = (one for one in self.hardware.contracts if one.price_model in COMMITMENT_HOURS)
        terms += [hours for one in own for hours in one.hours[:1] if hours]
        ends = (3600.0 * hours for hours in terms)
        return min((s for s in ends if self.horizon_s / MAX_PERIODS <= s < self.horizon_s * (1 - 1e-12)), default=None)

    @property
    def periods(self) -> int:
        """Periods of the calendar; the last one ends with the horizon."""
        return max(1, math.ceil(self.horizon_s / self.period_s * (1 - 1e-12)))

    def since_begin_s(self, date: str) -> float | None:
        """Seconds from the beginning of the plan to a date; None when the plan has no date."""
        moment = parse_date(date)
        return (moment - self._begin).total_seconds() if moment and self._begin else None

    @property
    def workloads(self) -> tuple[TrainingJob | ServingFleet, ...]:
        """Jobs, then fleets, in the order of the file."""
        return (*self.training, *self.serving)

    @property
    def file(self) -> str:
        """The scenario file, as it was named."""
        return self._document.file

    @property
    def document(self) -> Document:
        """The resolved tree with the place of every key and value."""
        return self._document

    @property
    def places(self) -> Mapping[str, Place]:
        """Path -> place, after includes, overrides and --set: "training[0].deadline"."""
        return self._document.places

    @property
    def resolved(self) -> dict[str, Any]:
        """The scenario as plain data, after includes, overrides and --set."""
        return self._resolved

    @property
    def case(self) -> str | None:
        """The named case that was applied."""
        return self._case

    @property
    def settings(self) -> tuple[str, ...]:
        """The --set texts that were applied."""
        return self._settings

    @property
    def begin(self) -> str | None:
        """The date that every offset counts from: as given, else the earliest start; None when no date is named."""
        return self._begin.isoformat(sep=" ").removesuffix(" 00:00:00") if self._begin else None

    def discounts_with(self, change: float) -> list[dict[str, Any]]:
        """Its discounts, as a file has them, with all list prices changed by a share more: 0.1 is a tenth dearer.

        Of several discounts the first that matches counts, so that each has the change in it, and the rest a last one.
        """
        given = (self.resolved.get("hardware") or {}).get("discounts") or []
        shares = [1 - (1 - one.fraction) * (1 + change) for one in self.hardware.discounts]
        own = [{**raw, "fraction": _share(share)} for raw, share in zip(given, shares, strict=True)]
        return [*own, {"fraction": _share(-change)}]

    def with_(self, changes: Mapping[str, Any] | str | None = None, /, **more: Any) -> Scenario:
        """The same question with some values changed; checked anew, as by --set.

        Parameters
        ----------
        changes
            Path -> value, {"training.pretrain-8b.deadline": "14 days"}, None leaves a key out; or one as after --set.
        more
            The same by name, where paths are words: limits__budget="$60000".

        Raises
        ------
        InputError
            A path leads nowhere, or the scenario is no longer one.
        """
        said, changes = ([changes], {}) if isinstance(changes, str) else ([], changes or {})
        named = {key.replace("__", "."): value for key, value in more.items()}
        told = [f"{path}={flow_text(value)}" for path, value in {**changes, **named}.items()]
        return self._again(self, [*said, *told])

    def __repr__(self) -> str:
        return brief("Scenario", self.name, some(workload.name for workload in self.workloads))

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> Any:
        return shown(self, "html")


def _share(fraction: float) -> str:
    return f"{100 * fraction + 0:.10g}%"  # 0, and not -0


__all__ = [
    "DEFAULT_ESTIMATOR",
    "Batch",
    "Contract",
    "Data",
    "Discount",
    "EngineLimits",
    "Failures",
    "Format",
    "GivenLayout",
    "Hardware",
    "Limits",
    "Lora",
    "ModelRef",
    "Optimizer",
    "Owned",
    "Quota",
    "Scenario",
    "ServingFleet",
    "SiteLimit",
    "Spot",
    "Stack",
    "StepTime",
    "TrainingJob",
]
