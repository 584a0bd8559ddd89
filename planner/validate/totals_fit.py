"""What size costs a whole run: the one constant that whole-run budgets decide, fitted and cross-validated.

Predicted hours are those without it times 1 + loss (hosts - 1) / hosts: failures and checkpoints scale with the
steps. A publisher weighs one, however many runs it has published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.equations.scale import scale_loss_factor
from planner.validate.rows import TotalsRow
from planner.validate.totals import TotalsPrediction

TRIED = np.round(np.arange(0.0, 0.505, 0.01), 2)  # hundredths: runs of nine publishers decide no finer


class Run(NamedTuple):
    """One run with a measured figure."""

    name: str
    publisher: str
    hosts: int
    bare: float  # predicted over measured device hours, without what size costs

    def ratio(self, loss: float) -> float:
        """Predicted over measured at a loss."""
        return self.bare * float(scale_loss_factor(loss, self.hosts))


def runs_of(rows: Sequence[TotalsRow], predictions: Sequence[TotalsPrediction]) -> list[Run]:
    """Runs of which hours are both predicted and measured."""
    found = []
    for row, said in zip(rows, predictions, strict=True):
        if row.device_hours and said.device_hours and said.hosts:
            lost = said.terms.get("scale_loss", 0.0)
            steps = sum(hours for name, hours in said.terms.items() if name not in _BEYOND_STEPS)
            bare = said.device_hours * steps / (steps + lost) / row.device_hours
            found.append(Run(row.name, publisher_of(row), said.hosts, bare))
    return found


_BEYOND_STEPS = ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts")


def publisher_of(row: TotalsRow) -> str:
    """Who published a figure: the owner of a repository, so that cards of one house count as one source."""
    head = (row.source or row.file).split(":")[0]
    return head.split("/")[0] if "/" in head else head


def fitted_scale_loss(runs: Sequence[Run]) -> float:
    """The loss with the least squares of the logarithm of predicted over measured, in the mean of publishers' means."""
    counts = Counter(run.publisher for run in runs)
    errors = [sum(np.log(run.ratio(loss)) ** 2 / counts[run.publisher] for run in runs) for loss in TRIED]
    return float(TRIED[int(np.argmin(errors))])


def left_out_errors(runs: Sequence[Run]) -> dict[str, float]:
    """Absolute relative error of every run, the loss fitted without its publisher."""
    errors: dict[str, float] = {}
    for publisher in sorted({run.publisher for run in runs}):
        loss = fitted_scale_loss([run for run in runs if run.publisher != publisher])
        errors |= {run.name: abs(run.ratio(loss) - 1.0) for run in runs if run.publisher == publisher}
    return errors
