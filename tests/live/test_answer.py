"""What the page says of an answer: how sure it is, what changed, and ways out that can be pressed."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest

from planner import api
from planner.cli.interrupts import on_time
from planner.live.answer import Views
from planner.live.desk import Answer, Desk
from planner.live.knobs import settings_of
from planner.plan.model.plan import PlanDocument
from planner.scenario.load import with_settings
from tests.report.conftest import plan_named


@cache
def small() -> api.Session:
    return api.session("gpt2-xl")


def shown(document: PlanDocument, *, last: bool = True, looking: bool = False) -> dict:
    session = small()
    views = Views(session.scenario, [], "x.yaml")
    answer = Answer(settings=("a=b",), document=document, elapsed_s=0.5, last=last, looking=looking)
    return views.answer(answer, Desk(session, on_time), None)


def test_only_what_is_proven_and_last_is_called_proven() -> None:
    plan = plan_named("llama")
    assert (shown(plan)["badge"], shown(plan)["proven"], shown(plan)["tone"]) == ("proven", True, "good")
    sofar = shown(plan, last=False)
    assert not sofar["proven"]
    assert sofar["badge"] == "best so far, within 0 % of the cheapest; looking on"
    feasible = {**plan, "status": "feasible", "certificate": None, "summary": {**plan["summary"], "gap": None}}
    assert not shown(feasible)["proven"]
    assert shown(feasible)["badge"] == "not proven, how far from the cheapest is not known"
    near = {**feasible, "summary": {**plan["summary"], "gap": 0.0184}}
    assert shown(near, last=False)["badge"] == "best so far, within 1.8 % of the cheapest; looking on"


def test_ways_out_are_buttons_that_work() -> None:
    session = small().on(with_settings(small().scenario, ["training.gpt2-xl.deadline=1 h"]))
    plan = session.solve().document
    line = shown(plan)
    assert line["badge"] == "nothing meets every limit: proven"
    assert shown(plan, looking=True)["badge"] == "nothing meets every limit: proven; looking for ways out"
    ways = [json.loads(html.unescape(text)) for text in re.findall(r'data-set="([^"]*)"', line["html"])]
    assert ways
    least = session.on(with_settings(session.scenario, settings_of(session.scenario, ways[0]))).solve()
    assert least.document["status"] == "optimal"


def test_hostile_names_are_text() -> None:
    hostile = "<script>alert(1)</script>\"'\x1b[31m"
    text = json.dumps(plan_named("llama")).replace("pretrain-8b", json.dumps(hostile)[1:-1])
    line = shown(json.loads(text))
    assert "<script" not in line["html"]
    assert "\x1b" not in line["html"] + line["command"] + line["total"]
    assert "&lt;script&gt;" in line["html"]


@pytest.mark.parametrize("name", ["llama", "fleet", "portfolio"])
def test_nothing_in_it_runs_or_loads(name: str) -> None:
    text = shown(plan_named(name))["html"]
    assert not re.search(r"<script|<img|<iframe|<link|\sstyle=|\son\w+=|https?:", text)
