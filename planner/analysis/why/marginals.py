"""What one unit more of each limit is worth: the same question solved again, with nothing taken from duals.

The marginal value of a limit is z - z', z the least cost as it stands and z' the least cost with the limit loosened
by one step: a node more of a quota, a device limit or owned hardware, a day more of a deadline, a provider more, one
percent more of a budget and of other amounts. z' is the answer of the whole planner to the scenario with that one
setting changed: enumerated, optimised and, for fleets, held against the targets of their mixes. So the value is
exact when both are proven optimal, and says what doing it would save; it says nothing of a second step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.analysis.tighten import solve_within_targets
from planner.analysis.why.relaxed import LIFTED, Search
from planner.analysis.why.repairs import place_of
from planner.analysis.why.settings import DAY_S, Stated, in_words, stated_limits
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.errors import InputError
from planner.optimize.limited import Asker, limit_of, used_by
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import Status, uninterrupted
from planner.plan.rows.row_cells import usd
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.analysis.why.model import MarginalValue


def marginal_values(
    candidates: Candidates, solution: Solution, search: Search, asker: Asker | None = None
) -> list[MarginalValue]:
    """The value of one step of every limit of a solved scenario, most valuable first.

    Parameters
    ----------
    candidates, solution
        What was solved: the plan of least cost, or the first of its objective.
    search
        Enumerates a scenario with the same catalog.

    Returns
    -------
    One row a limit: `value_microusd` = what is saved, None when that step could not be solved; `proven` when both
    costs are; `binding` when the plan uses the limit up to the last node.  [micro-USD]
    """
    asker = asker or Asker()
    asked = _Marginal(candidates=candidates, solution=solution, search=search, asker=asker)
    rows = [asked.row(limit) for limit in stated_limits(candidates.scenario)]
    return sorted(rows, key=lambda row: (-(row["value_microusd"] or 0), row["limit"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marginal:
    """One solved scenario, to be solved again."""

    candidates: Candidates
    solution: Solution
    search: Search
    asker: Asker

    @property
    def scenario(self) -> Scenario:
        return self.candidates.scenario

    def row(self, limit: Stated) -> MarginalValue:
        step, step_text = self._step(limit)
        changed = min(limit.value + step, LIFTED) if limit.unit in ("devices", "shapes") else limit.value + step
        answer = self._cost([limit.setting(changed)])
        sure = answer is not None and Status.OPTIMAL is self.solution.status is answer.status
        cost = answer.cost_microusd if answer is not None and answer.has_plan else None
        value = None if cost is None else self.solution.cost_microusd - cost
        currency = self.scenario.currency
        return {
            "limit": limit.name,
            "place": place_of(self.scenario, limit.name),
            "unit": limit.unit,
            "from": limit.value,
            "to": changed,
            "from_text": limit.shown(limit.value, currency=currency),
            "step_text": step_text,
            "setting": limit.setting(changed),
            "binding": self._binds(limit),
            "value_microusd": value,
            "value_usd": None if value is None else usd(value),
            "cost_microusd": cost,
            "proven": sure,
        }

    def _cost(self, settings: list[str]) -> Solution | None:
        """The best plan under other limits; None where the scenario may not state them, as past its calendar."""
        try:
            found = self.search(with_settings(self.scenario, settings))
        except InputError:
            return None
        options = self.asker.options
        answer = solve_within_targets(found, lambda asked: optimize(asked.program, cost_only=True, **options))[1]
        return uninterrupted(answer)

    def _step(self, limit: Stated) -> tuple[int, str]:
        if limit.unit == "s":
            return DAY_S, "one day"
        if limit.unit == "devices":
            size = self._node_size()
            return size, f"one node of {size} devices" if size > 1 else "one device"
        if limit.unit == "shapes":
            return 1, "one node"
        if limit.unit == "providers":
            return 1, "one provider"
        step = max(-(-limit.value // 100), 1)
        return step, f"1 %, {in_words(limit.unit, step, currency=self.scenario.currency)}"

    def _node_size(self) -> int:
        """Devices of the smallest shape in the plan."""
        return min((size for size in self._sizes_used()), default=1)

    def _sizes_used(self) -> Iterator[int]:
        for task in self.candidates.program.tasks:
            for column in range(task.first, task.stop):
                if task.kind != "optional" and self.solution.units[column] > 0:
                    table = self.candidates.tables[task.name]
                    yield table.sites[int(self.candidates.rows[column])].shape.devices

    def _binds(self, limit: Stated) -> bool:
        """Whether not even the smallest unit of any column in one of its rows could be added."""
        rows = [row for row in self.candidates.program.rows if limit_of(row) == limit.name and len(row.columns)]
        positive = [row for row in rows if (row.coefficients > 0).any()]
        return any(
            row.bound - used_by(row, self.solution.units) < int(row.coefficients[row.coefficients > 0].min())
            for row in positive
        )
