"""A contract among the choices makes a calendar where a scenario states no periods: no plan is lost by that."""

from __future__ import annotations

from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.plan.document import resealed
from planner.scenario.schema import Scenario
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

CHOICES = (["on_demand"], ["on_demand", "commitment_1y"])


def known() -> Catalog:
    """Nodes of eight devices, by the hour and committed to for a year."""
    sold = [offer("north/one", 4.0), offer("north/one", 2.0, price_model="commitment_1y")]
    return catalog([device()], [shape("north/one", devices=8)], sold)


def asked(choice: list[str], training: list[dict[str, Any]], **top: Any) -> Scenario:
    """A scenario in which these price models may be used."""
    return scenario(training, top.pop("serving", []), hardware={"pricing": choice}, **top)


LONG = {"tokens": "2T"}


@pytest.mark.parametrize("serving", [[], [fleet(qpm=60)]])
def test_a_deadline_beyond_the_horizon_is_none_of_the_calendar(serving: list[dict[str, Any]]) -> None:
    """It was refused as soon as commitments might be used: "where the calendar ends"."""
    long = [job(deadline="60 days", **LONG)]
    plain, more = (
        api.solve(asked(choice, long, serving=serving, horizon="30 h"), known()).document for choice in CHOICES
    )
    follow_schema(more)
    assert plain["status"] == more["status"] == "optimal"
    assert more["summary"]["cost_usd"] == plain["summary"]["cost_usd"]
    (run,) = [one for one in more["schedule"]["jobs"] if one["workload"] == "job"]
    assert run["finish_hours"] > 30
    assert errors(more, known()) == []


def test_what_contracts_pay_for_ends_with_the_horizon() -> None:
    """A forged row on reserved nodes that runs on after it."""
    long = [job(deadline="60 days", **LONG)]
    choice = {"pricing": ["commitment_1y"], "beyond_horizon": "prorate"}
    document = api.solve(scenario(long, hardware=choice, horizon="60 days"), known()).document
    assert document["status"] == "optimal"
    assert errors(document, known()) == []
    document["scenario"]["horizon"] = "30 h"
    assert "late" in {problem.reference for problem in errors(resealed(document), known())}


@pytest.mark.parametrize(("start", "periods"), [("10 days", 3), ("11 days", 30), ("241 h", 44)])
def test_jobs_that_start_later_begin_with_a_period(start: str, periods: int) -> None:
    """A scenario without periods was refused where commitments might be used: the one there is begins with the plan."""
    jobs = [job("first", deadline="6 days"), job("second", start=start, deadline="20 days")]
    plain, more = (api.solve(asked(choice, jobs, horizon="30 days"), known()).document for choice in CHOICES)
    assert plain["status"] == more["status"] == "optimal"
    assert more["summary"]["cost_usd"] == plain["summary"]["cost_usd"]
    assert errors(more, known()) == []
    assert more["schedule"]["periods"] == periods


def test_jobs_one_after_the_other_use_the_same_machines() -> None:
    """In one period they would run at the same time, and be one machine too many."""
    jobs = [job("first", deadline="6 days"), job("second", start="6 days", deadline="6 days")]
    limits = {"limits": {"max_devices": 8}}
    plain, more = (api.solve(asked(choice, jobs, horizon="30 days", **limits), known()).document for choice in CHOICES)
    assert plain["status"] == more["status"] == "optimal"
    assert more["summary"]["cost_usd"] == plain["summary"]["cost_usd"]
