"""Catalogs beside each other over many scenarios: each plan against that on the first catalog."""

from __future__ import annotations

from collections.abc import Iterator

from planner.carriers import dataclass
from planner.sweeps.borders import is_answer
from planner.sweeps.model import Point, SweepDocument

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
