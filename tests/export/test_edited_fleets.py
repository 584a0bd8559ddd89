"""A plan file that was edited: whatever stands in a fleet's part, files, reasons, or an error for people."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.export import export, launches_of
from tests.export.test_training_formats import FORM, STRANGE, places
from tests.tiers import settings

FORMS = ("vllm", "sglang", "trt-llm", "skypilot", "kubernetes")
PARTS = ("row", "demand", "fleet", "scenario")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_edited_fleets_are_input_errors(plans: dict[str, Any], catalog: Catalog, data: st.DataObject) -> None:
    document = copy.deepcopy(
        plans[data.draw(st.sampled_from(["llama", "trace", "disaggregated", "chat-fleet", "tpu"]))]
    )
    fleet = next(workload for workload in document["workloads"] if workload["kind"] == "serving")
    row = fleet["allocations"][0]
    document["workloads"] = [{**fleet, "allocations": [row]}]
    wholes = {"row": row, "demand": fleet["demand"], "fleet": fleet["fleet"], "scenario": document["scenario"]}
    whole = wholes[data.draw(st.sampled_from(PARTS))]
    *before, last = data.draw(st.sampled_from(places(whole)))
    for key in before:
        whole = whole[key]
    whole[last] = data.draw(st.sampled_from(STRANGE))
    if not FORM.is_valid(document):  # refused where it is read
        return
    try:
        launches = launches_of(document, catalog, command="plan export FORMAT plan.json")
    except InputError:
        return
    for form in FORMS:
        export(form, launches)


def test_amounts_in_euros_are_read_by_the_rates_of_the_plan(plans: dict[str, Any], catalog: Catalog) -> None:
    """A fleet with the price of an API in euros was refused by every format, and a job with one of its data."""
    document = copy.deepcopy(plans["llama"])
    document["scenario"]["currency"] = {"EUR": 1.25, "as_of": "2026-11-01"}
    document["scenario"]["serving"][0]["api_price"] = "€4 /1M output tokens"
    document["scenario"]["training"][0]["data"] = {"size": "1 TB", "at": "aws/eu-central-1", "egress": "0.08 EUR/GB"}
    job, fleet = launches_of(document, catalog, command="plan export FORMAT plan.json")
    assert fleet.fleet.api_price == "$5 /1M output tokens"
    assert job.job.data.egress_usd_per_gb == pytest.approx(0.1)
    document["scenario"]["currency"] = {"EUR": 1.25}
    with pytest.raises(InputError, match="the scenario in the plan is wrong: currency lacks the day of its rates"):
        launches_of(document, catalog, command="plan export FORMAT plan.json")
