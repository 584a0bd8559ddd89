"""Names of a hostile catalog or price list reach the views of `plan catalog` as text and as nothing else."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import unicodedata
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt

from planner.catalog.check import check_catalog
from planner.catalog.diff import difference
from planner.catalog.importers.imported import Imported
from planner.catalog.model import Catalog, Provenance
from planner.report import catalog_view, problems
from planner.report import catalog_view as listing
from planner.report.catalog_changes import render_difference, render_frozen, render_imported
from tests.hostile_names import hostile_names
from tests.tiers import sampled

FORMS = ("table", "csv", "md", "json")
H100, P5, STEADY = "h100-sxm-80gb", "aws/p5.48xlarge", "aws:use1-az3:p5.48xlarge:on_demand"


@pytest.fixture(scope="module")
def small(catalog: Catalog) -> Catalog:
    """One device, shape and offer of the shipped catalog."""
    return dataclasses.replace(
        catalog,
        devices={H100: catalog.devices[H100]},
        shapes={P5: catalog.shapes[P5]},
        offers=tuple(offer for offer in catalog.offers if offer.id == STEADY),
        aliases={H100: H100},
        efficiencies={},
        training_families={},
    )


def named(catalog: Catalog, name: str) -> Catalog:
    """One device, shape and offer in which every text is that name."""
    fact = Provenance(source=name, as_of="2026-11-20", status="seen")
    device = catalog.devices[H100]
    link = device.scale_up
    assert link is not None
    device = dataclasses.replace(
        device, id=name, vendor=name, family=name, aliases=(name,), memory_label=name, frameworks=(name,), uses=(name,),
        refusals={name: name}, claims=(name,), notes=name, facts=dict.fromkeys([*device.facts, name], fact),
        scale_up=dataclasses.replace(link, name=name), peak_flop_per_s={"bf16": 1e15, name: 1e15},
    )  # fmt: skip
    shape = dataclasses.replace(
        catalog.shapes[P5], id=name, provider=name, name=name, device=name, network_kind=name, facts={name: fact}
    )
    offer = next(offer for offer in catalog.offers if offer.id == STEADY)
    offer = dataclasses.replace(
        offer, id=name, provider=name, region=name, zone=name, country=name, shape=name, note=name, provenance=fact
    )
    twin = dataclasses.replace(offer, id=f"{name}2", price_microusd_per_hour=offer.price_microusd_per_hour * 2)
    return dataclasses.replace(
        catalog, name=name, path=name, devices={name: device}, shapes={name: shape}, offers=(offer, twin),
        aliases={name.lower(): name}, grids={}, transfers={}, fabrics={}, own_prices=(name,),
    )  # fmt: skip


def views(catalog: Catalog, name: str) -> Iterator[tuple[str, str, str]]:
    """What each command prints, by command and format."""
    mine = named(catalog, name)
    rows = listing.offer_rows(mine, listing.Filter(suspect=True))
    sheets = [catalog_view.sheet(mine, key) for key in (name, f"{name}2")]
    sheets.append(catalog_view._device_sheet(mine, mine.devices[name]))
    found = check_catalog(mine, catalog, table=catalog.devices)
    there = difference(catalog, mine)
    dearer = dataclasses.replace(mine.offers[0], price_microusd_per_hour=1, quality="suspect", region=f"{name} ")
    changed = difference(mine, dataclasses.replace(mine, offers=(dearer,)))
    taken = Imported(file=name, provider=name, rows=1)
    taken.skip(1, name, name)
    for form in FORMS:
        yield "list", form, listing.render_offers(rows, form)
        for sheet in sheets:
            yield f"show {sheet['kind']}", form, catalog_view.render_sheet(sheet, form)
        yield "check", form, problems.findings(found, f"catalog {name}", form)
        for one in (there, changed):
            yield "diff", form, render_difference(one, (name, name), form, full=True)
        yield "import", form, render_imported([taken], form, written=name, full=True)
        yield "freeze", form, render_frozen(mine, name, form)


@pytest.mark.parametrize("index", sampled(range(200), 24))
def test_text_stays_text(small: Catalog, index: int) -> None:
    name = hostile_names()[index]
    for command, form, text in views(small, name):
        where = f"{command} -o {form}"
        if form == "json":
            json.loads(text)
            assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"], where
            continue
        strange = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
        assert not strange, where
        if form == "csv":
            assert_cells_are_text(text, where)
        elif form == "md":
            assert_inert(text, where)


def assert_cells_are_text(text: str, where: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1, where
    for cell in (cell for row in rows for cell in row if cell[:1] and cell[0] in "=+-@＝＋－＠\t\r\n"):
        float(cell)  # only a number may begin like a formula


def assert_inert(text: str, where: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in tokens} | {token.type for token in inner}
    active = {"link_open", "image", "html_inline", "s_open", "code_inline", "fence", "code_block", "blockquote_open",
              "ordered_list_open", "hr"}  # fmt: skip
    assert not kinds & active, where
    ours = {"</details>"}
    html = {token.content.strip() for token in tokens if token.type == "html_block"}
    assert {block for block in html if not block.startswith("<details><summary>")} <= ours, where
    assert "://" not in text, where
    assert "www." not in text.lower(), where
    assert "@" not in text, where
