"""One side of a comparison: a plan, and the question and the catalog that it can be solved again from."""

from __future__ import annotations

from typing import Literal

from planner.analysis.compare.model import CatalogTold, SideTold
from planner.brief import brief
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.plan.model.others import Conflict
from planner.plan.model.plan import CatalogUsed, PlanDocument
from planner.plan.parts import expected_microusd, limit_name
from planner.scenario.schema import Scenario

WITH_PLAN = ("optimal", "feasible")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Side:
    """A plan with a name.

    Parameters
    ----------
    document
        The plan document, of this planner version or an older one.
    kind
        plan | scenario | catalog: what the name is of.
    scenario, catalog
        What to solve again from; None when they are not at hand, and `missing` says why.
    """

    name: str
    kind: Literal["plan", "scenario", "catalog"]
    document: PlanDocument
    scenario: Scenario | None = None
    catalog: Catalog | None = None
    missing: str = ""

    def __repr__(self) -> str:
        return brief("Side", self.name, self.kind, self.document["status"])

    @property
    def has_plan(self) -> bool:
        """Whether there is anything to rent."""
        return self.document["status"] in WITH_PLAN

    @property
    def cost_microusd(self) -> int | None:
        """Total cost, of several futures what is expected; None without a plan.  [micro-USD]"""
        cost = expected_microusd(self.document)
        return int(cost) if self.has_plan and cost is not None else None

    def told(self) -> SideTold:
        """The side in the comparison's document."""
        provenance, summary = self.document["provenance"], self.document["summary"]
        return {
            "name": self.name,
            "kind": self.kind,
            "scenario": self.document["name"],
            "case": self.document.get("case"),
            "status": self.document["status"],
            "reason": "" if self.cost_microusd is not None else self._reason(),
            "cost_microusd": self.cost_microusd,
            "cost_usd": None if self.cost_microusd is None else self.cost_microusd / 1e6,
            "cost_band": summary.get("cost_band") if self.has_plan and not self.document.get("uncertainty") else None,
            "horizon_hours": summary.get("horizon_hours"),
            "devices": summary.get("devices"),
            "planner": provenance["planner"],
            "solver": provenance["solver"],
            "catalog": _catalog_told(provenance["catalog"]),
            "sha256": self.document.get("sha256", ""),
            "warnings": list(self.document.get("warnings") or ()) if self.has_plan else [],
        }

    def _reason(self) -> str:
        """Why there is no plan, in words: the limits in conflict, or how the solver ended."""
        if self.has_plan:
            return "some case of its uncertainty has none"
        if self.document["status"] != "infeasible":
            return f"the solver ended without one ({self.document['status']})"
        found = self.document.get("infeasible")
        names = [_limit_told(self.document, one) for one in found["conflict"]] if found else []
        return "proven infeasible" + (f": {_listed(names)} cannot all be met" if names else "")


def _limit_told(document: PlanDocument, limit: Conflict) -> str:
    """A limit of the conflict by the name of its workload, or a workload: "limits.budget $100"."""
    name, label = limit["name"], limit["label"]
    return limit_name(document, name) + ("" if label in ("", name) else f" {label}")


def _listed(names: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _catalog_told(catalog: CatalogUsed) -> CatalogTold:
    return {"name": catalog["name"], "as_of": catalog["as_of"], "sha256": catalog["sha256"]}
