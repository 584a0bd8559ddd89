"""Errors of catalogs that others copy from, each planted in a catalog of its own: `check` names every one.

The figures are those of catalog.md section 6: what a reader of those projects would write into a folder of ours. Its
"B100 wrong" is not here: no table of ours holds a B100, so that nothing can contradict it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.check import check_catalog, facts_of, is_slice
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.reading import STATUSES
from planner.errors import Problem
from tests.catalog.extending import HEAD, extended, offers_of, written

OFFERS_HEAD = "offer,provider,shape,region,zone,price_model,price_usd_per_hour_per_shape,as_of,status,source\n"
STEADY, SPOT = "aws:use1-az3:p5.48xlarge:on_demand", "aws:use1-az3:p5.48xlarge:spot"


def seen(text: str) -> str:
    """Facts as a catalog states them that copies: seen somewhere, not a user's own knowledge."""
    return f"as_of: 2026-11-20\ndevices:\n  - {{{text}, status: seen, source: another catalog}}\n"


# project, catalog.yaml after `extends: default`, reference, words of the message
COPIED = [
    ("llm-analysis: A10 28 GB", seen("id: a10, memory: {label: 28 GB, capacity: 28 GiB}"), "device-table",
     "a10: memory_bytes"),
    ("llm-analysis: V100 16 GB with 32", seen("id: v100-sxm2-16gb, memory: {label: 32 GB, capacity: 32 GiB}"),
     "device-table", "v100-sxm2-16gb: memory_bytes"),
    ("llm-analysis: AMD INT8 doubled", seen("id: mi300x, peak_dense: {int8: 5229.8 TOP/s}"), "device-table",
     "mi300x: peak_flop_per_s.int8"),
    ("GenZ: GH200 at 1,979", seen("id: gh200-96gb, peak_dense: {bf16: 1979 TFLOP/s}"), "device-table",
     "gh200-96gb: peak_flop_per_s.bf16"),
    ("GenZ: Gaudi 3 at 1,835", seen("id: gaudi3, peak_dense: {bf16: 1835 TFLOP/s}"), "device-table",
     "gaudi3: peak_flop_per_s.bf16"),
    ("gpuhunt: MI325X 288 GB", seen("id: mi325x, memory: {label: 288 GB, capacity: 288 GiB}"), "device-table",
     "mi325x: memory_bytes"),
    ("gpuhunt: a board for a chip", seen("id: tpu-v3, memory: {label: 128 GB, capacity: 128 GiB}"),
     "device-table", "tpu-v3: memory_bytes"),
    ("founding text: A100 624 TFLOP/s", seen("id: a100-sxm-80gb, peak_dense: {bf16: 624 TFLOP/s}"), "sparse-peak",
     "a100-sxm-80gb: measured bf16 is 43%"),
    ("founding text: A100 600 GB/s", seen("id: a100-sxm-80gb, links: {scale_up: {one_way_all: 600 GB/s}}"),
     "two-way-rate", "a100-sxm-80gb: nvlink3 does 600 GB/s one way, more than half of both"),
]  # fmt: skip


def found(catalog: Catalog, shipped: Catalog) -> list[Problem]:
    return check_catalog(catalog, table=shipped.devices, today=date(2026, 11, 21))


@pytest.fixture(scope="module")
def before(catalog: Catalog) -> set[str]:
    """What is found in the shipped catalog."""
    return {problem.message for problem in found(catalog, catalog)}


@pytest.mark.parametrize(("project", "text", "reference", "words"), COPIED, ids=[row[0] for row in COPIED])
def test_a_copied_error_is_named(
    catalog: Catalog, before: set[str], tmp_path: Path, project: str, text: str, reference: str, words: str
) -> None:
    new = [p for p in found(extended(tmp_path, text), catalog) if p.message not in before]
    assert any(p.reference == reference and words in p.message for p in new), [str(p) for p in new]
    assert all(problem.places for problem in new)


def test_what_a_user_knows_better_is_not_doubted(catalog: Catalog, tmp_path: Path) -> None:
    mine = extended(tmp_path, "as_of: 2026-11-20\ndevices: [{id: gaudi3, peak_dense: {bf16: 1835 TFLOP/s}}]\n")
    assert not [problem for problem in found(mine, catalog) if problem.reference == "device-table"]


def test_the_table_agrees_with_itself(catalog: Catalog) -> None:
    assert not [
        problem for problem in found(catalog, catalog) if problem.reference in ("device-table", "factor-of-two")
    ]


def row(offer: str, price: str, model: str, shape: str = "tpu-v5e-x", provider: str = "gcp") -> str:
    return f"{offer},{provider},{shape},us-x,us-x-a,{model},{price},2026-11-20,seen,another catalog\n"


EIGHT, OTHER = (row(name, "40", "on_demand", "tpu-v6e-8") for name in "xy")


def test_prices_of_chips_among_those_of_boards(catalog: Catalog, tmp_path: Path) -> None:
    """gpuhunt's tpu_pricing.json: a spot price of one chip beside those of whole slices."""
    spot = sorted(
        o.price_microusd_per_hour for o in catalog.offers if o.shape == "gcp/tpu-v3-8" and o.price_model == "spot"
    )
    chip = spot[0] / 1e6 / 4
    line = row("gcp:us-x-a:tpu-v3-8:spot", f"{chip:.6f}", "spot", "tpu-v3-8")
    mine = extended(tmp_path, "", offers__gcp_csv=OFFERS_HEAD + line)
    (new,) = (p.message for p in found(mine, catalog) if p.reference == "flagged" and "us-x-a" in p.message)
    assert "gcp:us-x-a:tpu-v3-8:spot" in new
    assert "are flagged suspect_spot" in new


@pytest.mark.parametrize(
    ("text", "reference", "severity"),
    [
        (row("x", "700.0", "on_demand", "tpu-v6e-8"), "sentinel", "error"),
        (row("y", "41", "spot", "tpu-v6e-8") + EIGHT, "spot-above-on-demand", "error"),
        (row("y", "40", "spot", "tpu-v6e-8") + EIGHT, "spot-equals-on-demand", "warning"),
        (row("y", "9", "spot", "tpu-v6e-8") + row("x", "90", "on_demand", "tpu-v6e-8"), "spot-placeholder", "warning"),
        (OTHER + row("x", "41", "on_demand", "tpu-v6e-8"), "duplicate-offer", "warning"),
        (row("y", "199", "on_demand", "tpu-v6e-8"), "two-levels", "warning"),
        (OTHER.replace("2026-11-20", "2026-03-01"), "old-price", "warning"),
        (OTHER.replace(",seen,", ",date-unknown,"), "date-unknown", "warning"),
        (OTHER.replace("another catalog", ""), "no-source", "error"),
    ],
)  # fmt: skip
def test_fixture_catalogs_of_prices(
    catalog: Catalog, before: set[str], tmp_path: Path, text: str, reference: str, severity: str
) -> None:
    mine = extended(tmp_path, "", offers__gcp_csv=OFFERS_HEAD + text)
    new = [problem for problem in found(mine, catalog) if problem.message not in before]
    assert (reference, severity) in {(problem.reference, problem.severity) for problem in new}


def test_spot_is_held_against_the_discounted_price(catalog: Catalog, tmp_path: Path) -> None:
    """Cheaper on demand than spot is what a discount can do; without one the columns are swapped."""
    full, spot = (offers_of(catalog)[name].price_microusd_per_hour for name in (STEADY, SPOT))
    assert spot < full
    fraction = math.ceil(100 * (1 - spot / full)) + 1
    text = f"as_of: 2026-11-20\ndiscounts: [{{offer: '{STEADY}', fraction: {fraction} %}}]\n"
    (problem,) = [p for p in found(extended(tmp_path, text), catalog) if p.reference == "spot-above-on-demand"]
    assert problem.severity == "warning"
    assert "your own price" in problem.message


FAMILY = """schema: catalog/tpu/v1
defaults: {as_of: 2026-11-20, status: seen, source: another catalog, provider: acme}
families: [{device: tpu-v5p, name: "slice-{}", number_per_chip: 1, topologies: %s}]
"""


@pytest.mark.parametrize(("topology", "good"), [("2x2x2", True), ("4x4x8", True), ("3x5", False), ("2x4x6", False)])
def test_a_slice_that_is_not_rented(catalog: Catalog, tmp_path: Path, topology: str, good: bool) -> None:
    mine = extended(tmp_path, "", shapes__tpu_yaml=FAMILY % topology)
    errors = [problem for problem in found(mine, catalog) if problem.severity == "error"]
    assert {problem.reference for problem in errors} == (set() if good else {"bad-topology"})


def test_every_shipped_slice_is_one(catalog: Catalog) -> None:
    slices = [shape.torus for shape in catalog.shapes.values() if shape.kind == "slice"]
    assert len(slices) > 200
    assert all(map(is_slice, slices))
    assert not any(map(is_slice, [(), (4,), (1, 4), (64, 64), (3, 3), (4, 4, 6), (1, 1, 4), (2, 2, 2, 2)]))


def test_an_instance_of_tpus_and_one_with_less_memory(catalog: Catalog, tmp_path: Path) -> None:
    text = (
        "as_of: 2026-11-20\nshapes:\n"
        "  - {id: acme/pod, device: tpu-v5p, devices: 8, network_kind: dcn}\n"
        "  - {id: acme/old, device: a100-sxm-80gb, devices: 8, memory_per_device: 40 GiB}\n"
        "  - {id: acme/new, device: a100-sxm-40gb, devices: 8, memory_per_device: 80 GiB}\n"
    )
    new = {
        (p.reference, p.severity, p.message.split(":")[0].split(" has")[0])
        for p in found(extended(tmp_path, text), catalog)
    }
    assert {("bad-topology", "error", "acme/pod"), ("memory-label", "warning", "acme/old"),
            ("memory-label", "error", "acme/new")} <= new  # fmt: skip


Plant = Callable[[Catalog], Catalog]


def device(name: str, **cells: Any) -> Plant:
    return lambda c: dataclasses.replace(c, devices={**c.devices, name: dataclasses.replace(c.devices[name], **cells)})


NOT_NUMBERS: list[tuple[str, Plant]] = [
    ("tdp_w", device("a10", tdp_w=math.nan)),
    ("memory_bandwidth_bytes_per_s", device("a10", memory_bandwidth_bytes_per_s=math.inf)),
    ("host_link_bytes_per_s", device("a10", host_link_bytes_per_s=-1.0)),
    ("peak_flop_per_s.bf16", device("a10", peak_flop_per_s={"bf16": math.nan})),
]


@pytest.mark.parametrize(("name", "plant"), NOT_NUMBERS, ids=[name for name, _ in NOT_NUMBERS])
def test_numbers_that_are_none(catalog: Catalog, name: str, plant: Plant) -> None:
    messages = [p.message for p in check_catalog(plant(catalog)) if p.reference == "not-finite"]
    assert len(messages) == 1
    assert f"a10: {name} is" in messages[0]


def test_tiers_grids_and_links_are_looked_at(catalog: Catalog) -> None:
    grid, move = next(iter(catalog.grids)), next(iter(catalog.transfers))
    link = catalog.devices["h100-sxm-80gb"].scale_up
    assert link is not None
    broken = dataclasses.replace(
        catalog,
        grids={**catalog.grids, grid: dataclasses.replace(catalog.grids[grid], pue=math.inf)},
        transfers={**catalog.transfers, move: dataclasses.replace(catalog.transfers[move], tiers=((0.0, math.nan),))},
    )
    broken = device("h100-sxm-80gb", scale_up=dataclasses.replace(link, one_way_pair_bytes_per_s=math.nan))(broken)
    assert [p.reference for p in check_catalog(broken) if p.severity == "error"] == ["not-finite"] * 3


def test_every_fact_says_where_it_is_from_and_of_which_day(catalog: Catalog) -> None:
    facts = list(facts_of(catalog))
    assert len(facts) > 2000
    for _, owner, name, fact in facts:
        assert fact.source, (owner, name)
        assert date.fromisoformat(fact.as_of), (owner, name)
        assert fact.status in STATUSES, (owner, name)
    silent = device("a10", facts={})(catalog)
    new = [p.message for p in check_catalog(silent) if p.reference == "no-source"]
    assert any("a10: memory_bytes has no source" in message for message in new)
    assert any("a10: tdp_w has no source" in message for message in new)


DOUBLED = [
    ("devices: [{id: h100-sxm-80gb, power: {tdp: 1400 W}}]", "h100-sxm-80gb: tdp_w"),
    (
        "devices: [{id: h100-sxm-80gb, links: {scale_up: {one_way_all: 225 GB/s, one_way_pair: 225 GB/s}}}]",
        ": scale_up",
    ),
    ("shapes: [{id: aws/p5.48xlarge, network: 800 Gbit/s}]", "aws/p5.48xlarge: rate between shapes"),
    (f"offers: [{{offer: '{STEADY}', price_per_shape: $110.08/h}}]", f"{STEADY}: price"),
]


@pytest.mark.parametrize(("text", "words"), DOUBLED)
def test_a_factor_of_two_between_two_catalogs(catalog: Catalog, tmp_path: Path, text: str, words: str) -> None:
    mine = extended(tmp_path, f"as_of: 2026-11-20\n{text}\n")
    messages = [p.message for p in check_catalog(mine, catalog) if p.reference == "factor-of-two"]
    assert len(messages) == 1
    assert words in messages[0]


def test_the_day_decides_what_is_old(catalog: Catalog, tmp_path: Path) -> None:
    line = EIGHT
    text = HEAD + "name: mine\noffers: [{offer: '*', remove: true}]\n"
    mine = load_catalog(written(tmp_path, text, offers__gcp_csv=OFFERS_HEAD + line))
    for day, old in ((date(2026, 11, 21), False), (date(2027, 6, 1), True)):
        assert any(p.reference == "old-price" for p in check_catalog(mine, today=day)) == old
