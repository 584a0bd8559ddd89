"""A solved scenario that can be asked: what its limits are worth, what other devices would cost, why not this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.candidates.search import Candidates
from planner.catalog.load import match_devices
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from planner.plan.why.break_evens import break_even_prices
from planner.plan.why.infeasible import infeasibility
from planner.plan.why.marginals import marginal_values
from planner.plan.why.relaxed import Search
from planner.plan.why.why_not import why_not
from planner.spelling import closest

Document = dict[str, Any]
ASKED = ("solver", "time_limit_s", "threads", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question, its answer, and what it takes to ask on.

    Parameters
    ----------
    search
        Enumerates a scenario with the same catalog: ``search(scenario, patience_s=None)``.
    options
        Of the solver; a time limit is that of each program.
    """

    candidates: Candidates
    solution: Solution
    catalog: Catalog
    search: Search
    options: dict[str, Any]

    @property
    def asker(self) -> Asker:
        """How further programs are solved."""
        return Asker(options={key: value for key, value in self.options.items() if key in ASKED})

    def marginal_values(self) -> list[Document]:
        """What one step more of each limit saves: `planner.plan.why.marginals`; nothing without a plan."""
        if not self.solution.has_plan:
            return []
        return marginal_values(self.candidates, self.solution, self.search, self.asker)

    def break_even(self) -> list[Document]:
        """Cost of forcing each other device, and the price at which it would be chosen."""
        return break_even_prices(self.candidates, self.solution, self.asker)

    def why_not(self, device: str, *, workload: str | None = None) -> list[Document]:
        """Why a device is not in the plan, workload by workload: `planner.plan.why.why_not`.

        Raises
        ------
        InputError
            The catalog has no such device, or several go by that name.
        """
        found = known_device(self.catalog, device)
        return why_not(self.candidates, self.solution, found, self.search, workload=workload, asker=self.asker)

    def repairs(self) -> Document | None:
        """Conflict set and ways out, as the plan document has them; None unless proven infeasible."""
        if self.solution.status != "infeasible":
            return None
        return infeasibility(self.candidates, self.search, **self.options)


def known_device(catalog: Catalog, name: str) -> str:
    """Id of the one device that a name or a pattern means.

    Raises
    ------
    InputError
        There is none, or there are several.
    """
    found = [name] if name in catalog.devices else [one.id for one in match_devices(catalog, name)]
    if len(found) == 1:
        return found[0]
    near = found[:5] or closest(name, sorted(catalog.devices))
    hint = f"did you mean {' or '.join(near)}?" if near else "plan catalog list shows every device"
    message = f"'{name}' is {'several devices' if found else 'no device'} of the catalog"
    raise InputError.of("unknown-device", message, hint=hint)
