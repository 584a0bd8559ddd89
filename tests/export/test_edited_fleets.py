"""A plan file that was edited: whatever stands in a fleet's part, files, reasons, or an error for people."""

from __future__ import annotations

import copy
from typing import Any

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
