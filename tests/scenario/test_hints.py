"""Hints lead to what was meant: cities, formats of four bits, encoders, sellers whom the catalog does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import api
from planner.errors import InputError
from planner.scenario.load import load_scenario, parse_scenario
from tests.worlds import catalog, device, fleet, offer, scenario, shape


def hints_of(text: str) -> list[str]:
    """Of a scenario that is refused, when it is read or when it meets the catalog."""
    with pytest.raises(InputError) as caught:
        api.solve(parse_scenario(text, file="test.yaml"))
    return [problem.hint for problem in caught.value.problems]


def written(hardware: str = "{allow: [h100-sxm-80gb]}", **fleet_keys: str) -> str:
    keys = {"name": "f", "model": "llama-3.1-8b", "qpm": "60", "input_tokens": "1000", "output_tokens": "300"}
    said = ", ".join(f"{key}: {value}" for key, value in (keys | fleet_keys).items())
    return f"schema: plan/v1\nname: t\nhardware: {hardware}\nserving:\n  - {{{said}}}\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (written("{regions: [Frankfurt]}"), "providers call it eu-central-1 or europe-west3"),
        (
            written("{regions: nowhere, owned: [{shape: dgx-h100, count: 1, price: $10/h}]}"),
            "to rent nothing beside what is owned: kinds: [owned]",
        ),
        (written("{regions: [gotham]}"), "plan catalog list shows every region"),
        (
            written("{providers: [acme-cloud]}"),
            "plan catalog list shows every provider; a quote of one that is not there: hardware.contracts, of a "
            "machine such as dgx-h100, or --prices",
        ),
        (written(weights="fp4"), "did you mean 'mxfp4' or 'nvfp4'?"),
        (
            written(model="bge-m3"),
            "an encoder, and models here write token by token: a decoder of its size with output_tokens: 1, such as "
            "qwen3-0.6b, or {parameters: 568M} with a measured throughput",
        ),
        (written(model="minimax_m1"), "minimax-m2.5  ·  own model: {config: path/to/config.json}"),
        (
            written("{}\nlimits: {budget: £5000}"),
            "write currency: {GBP: …, as_of: 2026-11-01} in the scenario, the dollars that one GBP was worth that day; "
            "or the amount in dollars",
        ),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert hints_of(text) == [hint]


def test_a_long_line_is_shown_around_the_place(tmp_path: Path) -> None:
    """A scenario of one line of JSON showed its first 160 characters, or nothing, and a caret far to the right."""
    data = {"schema": "plan/v1", "name": "one", "serving": [fleet() | {"output_tokenz": 3, "spare_replicas": 1}]}
    (tmp_path / "one.json").write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        load_scenario(tmp_path / "one.json")
    (place,) = caught.value.problems[0].places
    _, line, caret = (text[text.index("|") + 2 :] for text in ["| ", *str(caught.value).splitlines()[2:4]])
    assert place.column == json.dumps(data).index('"output_tokenz"') + 1
    assert line[caret.index("^") :].startswith('"output_tokenz"')
    assert len(line) <= 78


def test_terms_that_leave_nothing_have_a_way_out() -> None:
    """Of fleets that allow spot alone nothing was told but the count of offers."""
    known = catalog([device()], [shape()], [offer("north/one", 1.0), offer("north/one", 0.2, price_model="spot")])
    hardware = {"pricing": ["spot"], "spot": {"interruptions": "0.05 /h"}}
    document = api.solve(scenario([], [fleet("f")], hardware=hardware), known).document
    assert document["infeasible"]
    ways = {way["limit"]: way["setting"] for way in document["infeasible"]["ways_out"]}
    assert ways == {
        "hardware.pricing": "hardware.pricing=[spot, on_demand]",
        "serving[0].max_spot_share": "serving.f.max_spot_share=1",
    }
    assert [one.message for one in api.verify(document, known) if one.severity == "error"] == []
