"""How long a column of a job holds its machines: its run at the confidence asked for, and the queue before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from planner.candidates.offers import Site
from planner.candidates.program import IntArray, Task
from planner.candidates.training_choice import busy_s
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import TrainingTable
from planner.scenario.schema import Scenario

FloatArray = NDArray[np.float64]
FLEX = "flex"


class HoldTimes(TypedDict):
    """Arrays over all columns of all workloads; fleets hold their machines all the time, and have zeros."""

    hold_s: FloatArray
    wait_s: FloatArray
    restart_s: FloatArray
    turn_s: FloatArray


def hold_times(
    scenario: Scenario,
    questions: Mapping[str, object],
    tables: Mapping[str, object],
    confidence: float | None = None,
) -> HoldTimes:
    """Hold times of every column, in the order of the tables; infinite where an offer's longest term is too short.

    Parameters
    ----------
    confidence
        Quantile of the error band at which the run must hold; None: the one that each job asks for.
    """
    parts = []
    for name, table in tables.items():
        question = questions[name]
        if isinstance(table, TrainingTable) and isinstance(question, TrainingQuestion):
            parts.append(_of_job(scenario, question, table, confidence))
        else:
            parts.append(np.zeros((4, len(table))))  # type: ignore[arg-type]
    hold, wait, restart, turn = np.concatenate(parts, axis=1) if parts else np.zeros((4, 0))
    return HoldTimes(hold_s=hold, wait_s=wait, restart_s=restart, turn_s=turn)


def of_columns(held: HoldTimes, tasks: Sequence[Task], placed: Sequence[Task], rows: IntArray) -> HoldTimes:
    """Hold times of the columns of a program in which nodes are shared: of a share none, as of any fleet.

    Parameters
    ----------
    held
        Of the rows of all tables.
    tasks
        The workloads, whose columns are those rows.
    placed
        Tasks of the program, those of the workloads first.
    rows
        (columns of the program,) row of each in its workload's table; -1 of nodes.
    """
    place = np.concatenate([task.first + rows[now.first : now.stop] for task, now in zip(tasks, placed)])
    more = np.zeros(len(rows) - len(place))

    def moved(times: FloatArray) -> FloatArray:
        return np.concatenate([times[place], more])

    return HoldTimes(hold_s=moved(held["hold_s"]), wait_s=moved(held["wait_s"]), restart_s=moved(held["restart_s"]),
                     turn_s=moved(held["turn_s"]))  # fmt: skip


def _of_job(
    scenario: Scenario, question: TrainingQuestion, table: TrainingTable, confidence: float | None
) -> FloatArray:
    """(4, rows): hold, wait and restart of every row, and when it changes machines."""
    share = question.spec.confidence if confidence is None else confidence
    figures, busy = np.zeros((4, len(table))), np.asarray(busy_s(table.time))
    of_offer: dict[tuple[str, int], list[int]] = {}
    for row, site in enumerate(table.sites):
        of_offer.setdefault((site.offer.id, site.shape.devices), []).append(row)
    for some in of_offer.values():
        site, rows = table.sites[some[-1]], np.array(some)
        run_s = table.finish_s[rows] * question.time_margins(site, share, table.nodes[rows], table.layout, rows)
        run_s = run_s * question.preemption_margin(site, busy[rows], table.nodes[rows], share)
        wait = wait_s(site, scenario)
        longest = site.offer.max_term_hours if site.offer.price_model == FLEX else None
        fits = True if longest is None else run_s <= longest * 3600.0
        figures[0, rows] = np.where(fits, wait + run_s, np.inf)
        figures[1, rows], figures[2, rows] = wait, _restart_s(question, site)
    for row, switch in table.switches.items():
        figures[0, row], figures[3, row] = 3600.0 * sum(switch.held_hours), 3600.0 * switch.hours[0]
    return figures


def wait_s(site: Site, scenario: Scenario) -> float:
    """Expected time in the queue before an offer's machines are there.  [s]"""
    if site.offer.price_model != FLEX:
        return 0.0
    if site.offer.wait_hours is not None:
        return site.offer.wait_hours * 3600.0
    flex = scenario.hardware.flex
    assert flex is not None  # a scenario that may use flex says so
    return flex.wait_s


def _restart_s(question: TrainingQuestion, site: Site) -> float:
    """What going on after a pause takes: as after a failure."""
    run = question.spec_on(site).run
    return run.restart_s if run is not None and question.job.schedule == "elastic" else 0.0
