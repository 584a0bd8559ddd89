"""A sweep as a document, with its types: what was asked, what came of it, and where the decision turns.

Catalogs stand beside each other over many scenarios: each plan against that on the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from planner import __version__
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.plan.document import digest_of
from planner.plan.model.plan import CatalogUsed, Status
from planner.plan.plan_files import catalog_used
from planner.scenario.schema import Scenario
from planner.sweeps.axes import Axis, Border, Standing, is_answer
from planner.sweeps.question import Question, Row


class AxisTold(TypedDict):
    """What was varied."""

    name: str
    values: list[str]


class Asked(TypedDict):
    """One question, as it would be on the command line of `plan solve`."""

    settings: list[str]
    prices: list[str]
    case: str | None
    catalog: str
    until: str
    seed: int | None
    scenario: NotRequired[str]
    "another than the session's"


class Point(Row):
    """A question and what came of it."""

    values: list[str]
    "on the axes, in their order; empty where there are none"
    question: Asked
    standing: NotRequired[Standing | None]
    "where days of prices are varied: the plan of the earliest day held on this one; null where there is none"


class Counted(TypedDict):
    """How the questions ended."""

    questions: int
    plans: int
    infeasible: int
    without_answer: int
    "refused, stopped, failed or lost: each row says why"


class SweepProvenance(TypedDict):
    """With what it was worked out."""

    planner: str
    catalog: CatalogUsed
    options: dict[str, object]


class SweepDocument(TypedDict):
    """A sweep; nothing in it tells where its questions were answered, or when."""

    schema: Literal["plan/sweep/v1"]
    status: Status
    name: str
    title: str
    axes: list[AxisTold]
    points: list[Point]
    "every question in its order; of a grid the last axis changes fastest"
    borders: list[Border]
    "between neighbours of the grid that are decided otherwise, both solved"
    halvings: int
    counted: Counted
    currency: Literal["USD"]
    provenance: SweepProvenance
    scenario: dict[str, object]
    scenario_file: str
    case: str | None
    sha256: str
    """over everything above, canonical JSON"""


SCENARIO, CATALOG = "scenario", "catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One scenario on one catalog.

    Parameters
    ----------
    first
        The same scenario on the first catalog.
    """

    scenario: str
    catalog: str
    point: Point
    first: Point

    @property
    def difference_microusd(self) -> int | None:
        """From the first catalog; None where one of the two has no plan."""
        here, there = self.point["cost_microusd"], self.first["cost_microusd"]
        return None if here is None or there is None else here - there

    @property
    def change(self) -> float | None:
        """The difference as a share of what the first costs; None where there is none, or the first costs nothing."""
        difference, there = self.difference_microusd, self.first["cost_microusd"]
        return None if difference is None or not there else difference / there

    @property
    def same(self) -> bool:
        """Whether both decide the same for the same money, or prove that nothing can be done."""
        mine, first = self.point, self.first
        return (
            is_answer(mine)
            and is_answer(first)
            and (mine["cost_microusd"], mine["decision"]) == (first["cost_microusd"], first["decision"])
        )

    def exceeds(self, share: float) -> bool:
        """Whether it costs more than the first by more than a share, or has no plan where the first has one."""
        here, there = self.point["cost_microusd"], self.first["cost_microusd"]
        return there is not None and (here is None or here > (1 + share) * there)


def beside(document: SweepDocument) -> Iterator[Beside]:
    """Every scenario on every catalog of a sweep over both, in that order."""
    names = [axis["name"] for axis in document["axes"]]
    scenario, catalog = names.index(SCENARIO), names.index(CATALOG)
    first: dict[str, Point] = {}
    for point in document["points"]:
        values = point["values"]
        held = first.setdefault(values[scenario], point)
        yield Beside(scenario=values[scenario], catalog=values[catalog], point=point, first=held)


def flat_comparison(document: SweepDocument) -> list[dict[str, object]]:
    """One row a scenario and catalog without anything nested."""
    rows: list[dict[str, object]] = []
    for one in beside(document):
        point, problem = one.point, one.point["problem"]
        rows.append(
            {
                SCENARIO: one.scenario,
                CATALOG: one.catalog,
                "status": point["status"],
                "cost_microusd": point["cost_microusd"],
                "cost_usd": point["cost_usd"],
                "difference_microusd": one.difference_microusd,
                "change": one.change,
                "devices": point["devices"],
                "decision": point["decision"],
                "plan_sha256": point["plan_sha256"],
                "problem": "" if problem is None else f"{problem['reference']}: {problem['message']}",
            }
        )
    return rows


def sweep_document(
    scenario: Scenario,
    catalog: Catalog,
    axes: Sequence[Axis],
    asked: Sequence[tuple[Question, tuple[str, ...], Row]],
    borders: list[Border],
    *,
    halvings: int,
    options: dict[str, object],
    standing: Sequence[Standing | None] | None = None,
) -> SweepDocument:
    """The document; it is the same wherever the rows come from.

    Parameters
    ----------
    asked
        Questions in their order, their values on the axes, and what came of them.
    standing
        Of each question what standing still costs, where days are varied.
    """
    rows = [row for _, _, row in asked]
    document: SweepDocument = {
        "schema": "plan/sweep/v1",
        "status": _status(rows),
        "name": scenario.name,
        "title": scenario.title or "",
        "axes": [{"name": axis.name, "values": list(axis.texts)} for axis in axes],
        "points": [
            cast("Point", {"values": list(values), "question": cast("Asked", question.told()), **row})
            for question, values, row in asked
        ],
        "borders": borders,
        "halvings": halvings,
        "counted": {
            "questions": len(rows),
            "plans": sum(row["cost_microusd"] is not None for row in rows),
            "infeasible": sum(row["status"] == "infeasible" for row in rows),
            "without_answer": sum(row["cost_microusd"] is None and row["status"] != "infeasible" for row in rows),
        },
        "currency": "USD",
        "provenance": {"planner": __version__, "catalog": catalog_used(catalog, scenario), "options": options},
        "scenario": scenario.resolved,
        "scenario_file": scenario.file,
        "case": scenario.case,
        "sha256": "",
    }
    for point, held in zip(document["points"], standing or ()):
        point["standing"] = held
    document["sha256"] = digest_of(document)
    return document


def _status(rows: Sequence[Row]) -> Status:
    """Optimal: each question has its proven answer; feasible: some have; infeasible: there is a plan to none."""
    answers = [is_answer(row) for row in rows]
    if any(row["cost_microusd"] is not None for row in rows):
        return "optimal" if all(answers) else "feasible"
    if all(answers):
        return "infeasible"
    return "stopped"


def flat_rows(document: SweepDocument) -> list[dict[str, Any]]:
    """One row a question without anything nested, the axes first."""
    names = [axis["name"] for axis in document["axes"]]
    return [
        {
            **dict(zip(names, point["values"])),
            **({} if names else _told(point["question"])),
            **{name: point[name] for name in _FLAT},  # type: ignore[literal-required]
            **(_stood(point) if "standing" in point else {}),
            "problem": _why(point),
        }
        for point in document["points"]
    ]


_FLAT = (
    "status", "cost_microusd", "cost_usd", "bound_usd", "devices", "finish_hours", "decision", "plan_sha256",
)  # fmt: skip


def _told(question: Asked) -> dict[str, Any]:
    return {
        **({"scenario": question["scenario"]} if "scenario" in question else {}),
        "settings": " ".join(question["settings"]), "prices": " ".join(question["prices"]), "case": question["case"],
        "catalog": question["catalog"], "until": question["until"], "seed": question["seed"],
    }  # fmt: skip


def _stood(point: Point) -> dict[str, Any]:
    held = point["standing"]
    return {
        "standing_usd": None if held is None else held["cost_usd"],
        "regret_usd": None if held is None else held["regret_usd"],
    }


def _why(point: Point) -> str:
    problem = point["problem"]
    return "" if problem is None else f"{problem['reference']}: {problem['message']}"
