"""Hardware that was not chosen: what forcing it costs, and the price at which it would be chosen.

The proof is in `optimize.break_even`. All offers of a device move together: on-demand, spot and contracts alike, and
what owned hardware costs to run. The price printed is that of the offers in the cheapest plan that uses the device, a
device-hour; the break-even price is that price times the break-even share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.analysis.tighten import on_exact_rates
from planner.analysis.why.widen import column_keys, device_of
from planner.candidates.calendar import RUN, Purchase
from planner.candidates.offers import Site
from planner.candidates.program import Task
from planner.candidates.search import Candidates
from planner.candidates.training import TrainingTable
from planner.carriers import dataclass
from planner.estimate.bill import billed_hours
from planner.optimize.break_even import BreakEven, break_even
from planner.optimize.limited import Asker
from planner.optimize.solve import Solution
from planner.optimize.status import Status
from planner.plan.rows.row_cells import MICRO, usd

if TYPE_CHECKING:
    from planner.analysis.why.model import BreakEvenRow


def break_even_prices(candidates: Candidates, solution: Solution, asker: Asker | None = None) -> list[BreakEvenRow]:
    """One row a device that could be used and is not, cheapest to force first.

    Empty when cost is not what is minimised first, or the plan is not proven cheapest: a break-even price is measured
    against the least cost.

    Parameters
    ----------
    candidates
        The ways of the scenario.
    solution
        The best plan of their program.
    asker
        How further programs are solved; None: HiGHS without a time limit.
    """
    if candidates.program.objective[0] != "cost" or solution.status is not Status.OPTIMAL:
        return []
    asker, best = replace(asker or Asker(), exact=True), solution.cost_microusd
    prices = Prices.of(candidates)
    chosen = {prices.site_of(candidates, task, column).device.id for task, column in _chosen(candidates, solution)}
    rows: list[BreakEvenRow] = []
    for device in prices.devices():
        if device not in chosen:
            candidates, row = on_exact_rates(candidates, partial(_row, device, best, asker))
            rows.append(row)
    return sorted(rows, key=lambda row: (row["forced_microusd"] is None, row["forced_microusd"] or 0, row["device"]))


def _chosen(candidates: Candidates, solution: Solution) -> Iterator[tuple[Task, int]]:
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop):
            if task.kind != "optional" and solution.units[column] > 0:
                yield task, column


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """All columns of a search, with the device that each is of."""

    candidates: Candidates
    used: NDArray[np.str_]  # (n,) device that a workload's column runs on; empty for purchases
    paid: NDArray[np.str_]  # (n,) device that the cost of a column is for

    @classmethod
    def of(cls, candidates: Candidates, key: Callable[[Site], str] = device_of) -> Prices:
        """Devices by column of `whole`.

        Parameters
        ----------
        candidates
            The ways of the scenario.
        key
            In place of the device of a site, what else is to be told apart.
        """
        used = column_keys(candidates, key)
        return cls(candidates=candidates, used=used, paid=_paid(candidates, used, key))

    @staticmethod
    def site_of(candidates: Candidates, task: Task, column: int) -> Site:
        """Where a column of the pruned program stands.

        Parameters
        ----------
        candidates
            The ways, with the program that the column is of.
        task
            A workload in it.
        column
            Of that workload.
        """
        return candidates.tables[task.name].sites[int(candidates.rows[column])]

    def devices(self) -> list[str]:
        """Every device that some workload can run on."""
        return sorted({str(one) for one in self.used if one})

    def bought_apart(self, device: str) -> bool:
        """Whether some of a device is bought by itself, as contracts and nodes that fleets share are."""
        return bool(((self.paid == device) & (self.used == "")).any())

    def break_even(
        self,
        device: str,
        best_microusd: int,
        asker: Asker,
        *,
        task: Task | None = None,
        task_alone: bool = False,
        known: BreakEven | None = None,
    ) -> BreakEven:
        """Of a device anywhere in the plan, or for one workload; `task_alone`: its price falls there alone.

        Parameters
        ----------
        device
            What is forced into the plan, and gets cheaper.
        best_microusd
            Cost of the best plan.  [micro-USD]
        asker
            How further programs are solved.
        task
            A workload of `whole` that must use the device; None: any may.
        task_alone
            The device gets cheaper for that workload alone; False: everywhere.
        known
            Of the same task and device with `task_alone` the other way: what forcing it costs is not asked again.
        """
        mine = np.ones(len(self.used), dtype=bool)
        if task is not None:
            mine[:] = False
            mine[task.first : task.stop] = True
        whole = replace(self.candidates.whole, objective=("cost",))
        paid = (self.paid == device) & (mine if task_alone else True)
        uses = (self.used == device) & mine
        return break_even(whole, paid, best_microusd, uses=uses, asker=asker, known=known)

    def device_hours(self, device: str, units: NDArray[np.int64]) -> float:
        """Device-hours of a device in a plan over all columns."""
        return sum(self.hours_of(task, column, int(units[column])) for task, column in self._on(device, units))

    def _on(self, device: str, units: NDArray[np.int64]) -> Iterator[tuple[Task, int]]:
        for task in self.candidates.whole.tasks:
            for column in range(task.first, task.stop):
                if units[column] > 0 and self.used[column] == device:
                    yield task, column

    def hours_of(self, task: Task, column: int, units: int) -> float:
        """Device-hours of some units of a column.

        Parameters
        ----------
        task
            A workload in `whole`.
        column
            Of that workload, in `whole`.
        units
            Of the column; a job counts the hours that it is billed for.
        """
        table, row = self.candidates.tables[task.name], int(self.candidates.whole_rows[column])
        hours = table.hours(row) if not isinstance(table, TrainingTable) else float(table.finish_s[row]) / 3600.0
        if isinstance(table, TrainingTable) and row in table.switches:
            switch = table.switches[row]
            parts = zip(switch.rented(table), switch.hours)
            each = (nodes * site.shape.devices * billed_hours(site.bill, held) for (site, nodes), held in parts)
            return units * sum(each)
        if isinstance(table, TrainingTable):
            hours = billed_hours(table.sites[row].bill, hours)  # what is paid for makes a price of the money
        shared = getattr(self.candidates, "whole_shared", None)
        if shared is not None and shared.is_share(column):
            return hours * int(shared.devices[column]) * units
        return hours * int(table.nodes[row]) * table.sites[row].shape.devices * units


def _paid(candidates: Candidates, used: NDArray[np.str_], key: Callable[[Site], str]) -> NDArray[np.str_]:
    """What runs by the hour is paid for where it runs; what is bought ahead, by its offer."""
    calendar, shared = getattr(candidates, "whole_calendar", None), getattr(candidates, "whole_shared", None)
    if shared is not None:  # nodes are paid for, not what stands on them
        names = np.array([key(site) for site in shared.sites], dtype=np.str_)
        used = np.where(shared.site < 0, used, np.where(shared.devices > 0, "", names[shared.site]))
    if calendar is None:
        return used
    keys = {site.offer.id: key(site) for table in candidates.tables.values() for site in table.sites}
    bought = [_device_of(candidates, one, keys) for one in calendar.purchases]
    return np.array([device or other for device, other in zip(used, bought)], dtype=np.str_)


def _device_of(candidates: Candidates, purchase: Purchase | None, keys: Mapping[str, str]) -> str:
    """What is bought, by the keys of offers; of one on which nothing runs its device."""
    if purchase is not None and purchase.kind == RUN:
        return keys[candidates.tables[purchase.workload].sites[purchase.row].offer.id]
    if purchase is None or purchase.offer is None:
        return ""
    return keys.get(purchase.offer.id) or candidates.catalog.shapes[purchase.offer.shape].device


def _row(device: str, best_microusd: int, asker: Asker, candidates: Candidates) -> BreakEvenRow:
    prices = Prices.of(candidates)
    found = prices.break_even(device, best_microusd, asker)
    row: BreakEvenRow = {
        "device": device,
        "forced_microusd": found.forced_microusd,
        "forced_usd": None if found.forced_microusd is None else usd(found.forced_microusd),
        "regret_microusd": None,
        "regret_usd": None,
        "share": None if found.share is None else float(found.share),
        "share_exact": None if found.share is None else f"{found.share.numerator}/{found.share.denominator}",
        "price_usd_per_device_hour": None,
        "break_even_usd_per_device_hour": None,
        "proven": found.proven,
    }
    if found.forced_microusd is None or found.forced_units is None:
        return row
    regret = found.forced_microusd - best_microusd
    hours = prices.device_hours(device, found.forced_units)
    price = found.spend_microusd / MICRO / hours if hours > 0 else None
    return {
        **row,
        "regret_microusd": regret,
        "regret_usd": usd(regret),
        "price_usd_per_device_hour": price,
        "break_even_usd_per_device_hour": None if price is None or found.share is None else price * float(found.share),
    }
