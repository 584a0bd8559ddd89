"""A catalog that extends another: what it says counts, everything else stays, every change keeps source and date."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from planner.catalog.diff import difference
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.errors import InputError, Problem
from tests.catalog.extending import HEAD, extended, offers_of, written

BLOCK, STEADY = "aws:us-east-2:p5.48xlarge:block", "aws:use1-az3:p5.48xlarge:on_demand"
OFFERS_HEAD = "offer,provider,shape,region,zone,price_model,price_usd_per_hour_per_shape,as_of,status,source\n"


def refused(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        load_catalog(folder)
    assert all(problem.places for problem in caught.value.problems)
    return caught.value.problems


def test_nothing_said_is_nothing_changed(catalog: Catalog, tmp_path: Path) -> None:
    same = extended(tmp_path, "name: shipped\n")
    assert same.digest == catalog.digest
    assert difference(catalog, same).empty


def test_one_negotiated_price_takes_three_lines(catalog: Catalog, tmp_path: Path) -> None:
    text = (
        "offers: [{provider: aws, device: h100-sxm, price_model: on_demand, "
        "price_per_device: $2.10/h, as_of: 2026-11-20}]"
    )
    mine = extended(tmp_path / "ours", text)
    found, before = difference(catalog, mine), offers_of(catalog)
    assert {change.id for change in found.prices} == {
        name
        for name, offer in before.items()
        if (offer.provider, offer.price_model) == ("aws", "on_demand")
        and catalog.shapes[offer.shape].device == "h100-sxm-80gb"
    }
    assert {change.id: change.new for change in found.prices} == pytest.approx(
        {change.id: catalog.shapes[before[change.id].shape].devices * 2.10 for change in found.prices}
    )
    assert not found.changes
    fact = offers_of(mine)[STEADY].provenance
    assert (fact.source, fact.as_of, fact.status) == ("ours/catalog.yaml", "2026-11-20", "user")
    assert mine.digest != catalog.digest


def test_a_price_per_shape_its_source_and_an_own_flag(tmp_path: Path) -> None:
    mine = extended(
        tmp_path,
        "as_of: 2026-11-19\n"
        "offers:\n"
        f"  - {{offer: '{STEADY}', price_per_shape: $31/h, source: contract 4711}}\n"
        "  - {offer: 'lambda:*', flag: suspect, because: sold out for months}\n"
        "  - {provider: mithril, flag: none}\n",
    )
    offers = offers_of(mine)
    fact = offers[STEADY].provenance
    assert (offers[STEADY].price_microusd_per_hour, fact.source, fact.as_of) == (
        31_000_000,
        "contract 4711",
        "2026-11-19",
    )
    assert {o.quality for o in mine.offers if o.provider == "lambda"} == {"suspect"}
    assert {o.note for o in mine.offers if o.provider == "lambda"} == {"sold out for months"}
    assert {o.quality for o in mine.offers if o.provider == "mithril"} == {""}


def test_a_flagged_price_that_was_negotiated_is_doubtful_no_more(catalog: Catalog, tmp_path: Path) -> None:
    flagged = next(offer for offer in catalog.offers if offer.quality == "suspect")
    mine = extended(tmp_path, f"as_of: 2026-11-20\noffers: [{{offer: '{flagged.id}', price_per_shape: $3/h}}]\n")
    assert offers_of(mine)[flagged.id].quality == ""


def test_discounts_leave_what_was_negotiated_and_the_first_counts(catalog: Catalog, tmp_path: Path) -> None:
    mine = extended(
        tmp_path / "ours",
        "as_of: 2026-11-20\n"
        f"offers: [{{offer: '{STEADY}', price_per_shape: $31/h}}]\n"
        "discounts:\n"
        "  - {provider: aws, device: h100-*, region: us-*, price_model: on_demand, fraction: 20 %}\n"
        "  - {provider: aws, price_model: on_demand, fraction: 10 %}\n",
    )
    before, after = offers_of(catalog), offers_of(mine)
    assert after[STEADY].price_microusd_per_hour == 31_000_000
    checked = set()
    for name, offer in before.items():
        left = Fraction(after[name].price_microusd_per_hour, offer.price_microusd_per_hour)
        american = offer.country == "US" and catalog.shapes[offer.shape].device.startswith("h100-")
        if name == STEADY:
            continue
        if offer.provider == "aws" and offer.price_model == "on_demand":
            # rounded to a whole micro-dollar
            assert abs(left - (Fraction(8, 10) if american else Fraction(9, 10))) < Fraction(1, 100_000)
            assert after[name].provenance.source.startswith(
                f"{offer.provenance.source}, less {20 if american else 10} %"
            )
            assert after[name].provenance.source.endswith("(ours/catalog.yaml, 2026-11-20)")
            # the list price is as old as it was, and as well known
            assert after[name].provenance.as_of == offer.provenance.as_of
            assert after[name].provenance.status == offer.provenance.status
            checked.add(american)
        else:
            assert after[name] == offer
    assert checked == {True, False}


def test_single_facts_of_a_device_and_a_shape(catalog: Catalog, tmp_path: Path) -> None:
    mine = extended(
        tmp_path / "ours",
        "as_of: 2026-11-20\n"
        "devices: [{id: h100-sxm-80gb, power: {tdp: 650 W}, source: our racks}]\n"
        "shapes: [{id: aws/p5.48xlarge, network: 100 Gbit/s, max_shapes_per_job: 16}]\n",
        devices__mine_yaml="schema: catalog/devices/v1\ndevices:\n"
        "  - {id: a100-sxm-80gb, links: {scale_up: {one_way_all: 290 GB/s}}, peak_dense: {int8: 600 TOP/s}}\n",
    )
    changes = {(change.id, change.field): (change.old, change.new) for change in difference(catalog, mine).changes}
    assert changes == {
        ("h100-sxm-80gb", "tdp_w"): (700.0, 650.0),
        ("a100-sxm-80gb", "scale_up.one_way_bytes_per_s"): (300e9, 290e9),
        ("a100-sxm-80gb", "peak_flop_per_s.int8"): (624e12, 600e12),
        ("aws/p5.48xlarge", "inter_node_bytes_per_s_per_device"): (50e9, 12.5e9),
        ("aws/p5.48xlarge", "max_shapes_per_job"): (None, 16),
    }
    h100, a100 = mine.devices["h100-sxm-80gb"].facts, mine.devices["a100-sxm-80gb"].facts
    assert (h100["tdp_w"].source, h100["tdp_w"].as_of, h100["tdp_w"].status) == ("our racks", "2026-11-20", "user")
    assert a100["scale_up.one_way"].source == "ours/devices/mine.yaml"
    assert h100["memory_bytes"] == catalog.devices["h100-sxm-80gb"].facts["memory_bytes"]
    assert a100["scale_up.one_way_pair"] == catalog.devices["a100-sxm-80gb"].facts["scale_up.one_way_pair"]
    assert mine.shapes["aws/p5.48xlarge"].facts["max_shapes_per_job"].status == "user"


def test_what_is_added_and_what_is_taken_out(catalog: Catalog, tmp_path: Path) -> None:
    mine = extended(
        tmp_path,
        "as_of: 2026-11-20\n"
        "shapes: [{id: acme/box, device: h100-sxm-80gb, devices: 8, network: 400 Gbit/s, network_kind: infiniband}]\n"
        "devices: [{id: k80-12gb, remove: true}]\n"
        "offers: [{provider: lambda, remove: true}]\n",
        offers__acme_csv=OFFERS_HEAD
        + "acme:here:box:on_demand,acme,box,here,,on_demand,14.5,2026-11-20,user,a letter\n",
    )
    found = difference(catalog, mine)
    assert found.added == {"device": (), "shape": ("acme/box",), "offer": ("acme:here:box:on_demand",)}
    assert found.removed["device"] == ("k80-12gb",)
    assert {catalog.shapes[name].device for name in found.removed["shape"]} == {"k80-12gb"}
    gone = {offer.id for offer in catalog.offers if offer.provider == "lambda" or offer.shape in found.removed["shape"]}
    assert set(found.removed["offer"]) == gone
    assert mine.shapes["acme/box"].scale_up_devices == 8
    assert not found.changes
    assert not found.prices


def test_a_row_of_the_same_id_takes_the_place_of_the_one_below(tmp_path: Path) -> None:
    row = f"{STEADY},aws,p5.48xlarge,us-east-1,use1-az3,on_demand,40,2020-01-01,seen,a page\n"
    mine = extended(tmp_path, "", offers__aws_csv=OFFERS_HEAD + row)
    assert offers_of(mine)[STEADY].price_microusd_per_hour == 40_000_000  # nearer to the user, whatever its date


def test_a_chain_and_a_neighbour(tmp_path: Path) -> None:
    written(
        tmp_path / "company", HEAD + f"as_of: 2026-11-01\noffers: [{{offer: '{STEADY}', price_per_shape: $31/h}}]\n"
    )
    written(
        tmp_path / "team",
        "schema: catalog/v1\nextends: ../company\nas_of: 2026-11-20\n"
        f"discounts: [{{offer: '{STEADY}', fraction: 50 %}}]\n",
    )
    offer = offers_of(load_catalog(tmp_path / "team"))[STEADY]
    assert offer.price_microusd_per_hour == 15_500_000
    assert offer.provenance.source == "company/catalog.yaml, less 50 % (team/catalog.yaml, 2026-11-20)"
    inner = written(tmp_path / "team" / "inner", "schema: catalog/v1\nextends: ../../company\n")
    assert refused(inner)[0].reference == "unsafe-path"  # further away than beside it


def test_constants_and_tables_come_with_the_base(catalog: Catalog, tmp_path: Path) -> None:
    grid = "provider,region,gco2_per_kwh,pue,as_of,status,source\naws,us-east-1,300,1.1,2026-11-20,user,a bill\n"
    mine = extended(tmp_path, "", grids_csv=grid)
    assert mine.grids["aws", "us-east-1"].gco2_per_kwh == 300
    assert len(mine.grids) == len(catalog.grids)
    assert mine.serving == catalog.serving
    assert mine.efficiencies == catalog.efficiencies
    assert mine.transfers == catalog.transfers


# what, text after the schema line, reference, line and column of the complaint
FAULTS = [
    ("nowhere", "extends: nowhere\n", "no-catalog", 2, 10),
    ("absolute", "extends: /etc\n", "unsafe-path", 2, 10),
    ("home", "extends: ~/x\n", "unsafe-path", 2, 10),
    ("above", "extends: ../../x\n", "unsafe-path", 2, 10),
    ("a list", "extends: [default]\n", "wrong-type", 2, 10),
    ("itself", "extends: ../mine\n", "circular-extends", 2, 10),
    ("no date", "extends: default\noffers: [{offer: 'aws:*', price_per_shape: $1/h}]\n", "missing-date", 3, 10),
    ("no day", "extends: default\nas_of: 2026-02-30\n", "bad-date", 3, 8),
    ("two deeds", "offers: [{offer: 'aws:*', price_per_shape: $1/h, flag: suspect}]\n", "missing-key", 4, 10),
    ("no deed", "offers: [{offer: 'aws:*'}]\n", "missing-key", 4, 10),
    ("no pattern", "offers: [{price_per_shape: $1/h}]\n", "missing-key", 4, 10),
    ("no such offer", "offers: [{offer: 'aws:*:p9:*', price_per_shape: $1/h}]\n", "no-match", 4, 10),
    ("no such discount", "discounts: [{provider: acme, fraction: 5 %}]\n", "no-match", 4, 13),
    ("all of it", "discounts: [{provider: aws, fraction: 100 %}]\n", "out-of-range", 4, 39),
    ("no fraction", "discounts: [{provider: aws}]\n", "missing-key", 4, 13),
    ("free", "offers: [{offer: 'aws:*', price_per_shape: $0/h}]\n", "bad-price", 4, 44),
    ("no unit", "offers: [{offer: 'aws:*', price_per_device: 3}]\n", "missing-unit", 4, 45),
    ("euros", "offers: [{offer: 'aws:*', price_per_device: EUR 3/h}]\n", "", 4, 45),
    ("infinite", "offers: [{offer: 'aws:*', price_per_device: .inf}]\n", "", 4, 45),
    ("unknown key", "offers: [{offer: 'aws:*', prise: $3/h, flag: suspect}]\n", "unknown-key", 4, 27),
    ("unknown model", "offers: [{price_model: cheap, flag: suspect}]\n", "unknown-value", 4, 24),
    ("unknown flag", "offers: [{provider: aws, flag: odd}]\n", "unknown-value", 4, 32),
    ("remove no", "offers: [{provider: aws, remove: 1}]\n", "wrong-type", 4, 34),
    ("no device to remove", "devices: [{id: h900, remove: true}]\n", "unknown-device", 4, 11),
    ("no shape to remove", "shapes: [{id: aws/p9, remove: true}]\n", "unknown-shape", 4, 10),
    ("a new device half said", "devices: [{id: h900, power: {tdp: 1 kW}}]\n", "missing-key", 4, 11),
    ("a shape of no device", "shapes: [{id: acme/b, device: h900, devices: 8}]\n", "unknown-device", 4, 31),
    ("a shape of a list", "shapes: [{id: acme/b, device: [h100-sxm-80gb], devices: 8}]\n", "unknown-device", 4, 31),
    ("a shape without a name", "shapes: [{id: box, device: h100-sxm-80gb, devices: 8}]\n", "unsafe-name", 4, 10),
    ("a fact without a unit", "devices: [{id: h100-sxm-80gb, power: {tdp: 650}}]\n", "missing-unit", 4, 44),
]


@pytest.mark.parametrize(("what", "text", "reference", "line", "column"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_faults(tmp_path: Path, what: str, text: str, reference: str, line: int, column: int) -> None:
    head = "schema: catalog/v1\n" + ("" if "extends" in text else "extends: default\nas_of: 2026-11-20\n")
    problems = refused(written(tmp_path / "mine", head + text))
    found = next(problem for problem in problems if not reference or problem.reference == reference)
    place = found.places[0]
    assert (Path(place.file).name, place.line, place.column) == ("catalog.yaml", line, column)


def test_euros_in_a_catalog_are_not_sent_to_the_scenario(tmp_path: Path) -> None:
    """Its rates count for its own amounts alone: whoever wrote them there was told so again."""
    offers = "offers: [{offer: 'aws:*', price_per_device: 3 EUR/h}]"
    (problem,) = refused(
        written(tmp_path / "a", f"schema: catalog/v1\nextends: default\nas_of: 2026-11-20\n{offers}\n")
    )
    assert (problem.reference, problem.hint) == ("mixed-currency", "write it in dollars, as $2.49/h")


def test_a_circle_and_a_chain_without_end(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        written(tmp_path / one, f"schema: catalog/v1\nextends: ../{other}\n")
    (problem,) = refused(tmp_path / "a")
    assert problem.reference == "circular-extends"
    assert "a -> b -> c -> a" in problem.message
    assert Path(problem.places[0].file) == (tmp_path / "c/catalog.yaml").resolve()
    for number in range(12):
        written(tmp_path / f"n{number}", f"schema: catalog/v1\nextends: ../n{number + 1}\n")
    assert [problem.reference for problem in refused(tmp_path / "n0")] == ["too-deep"]


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", HEAD)
    inside = written(tmp_path / "deep" / "mine", "schema: catalog/v1\nextends: base\n")
    (inside / "base").symlink_to(outside)
    assert [problem.reference for problem in refused(inside)] == ["unsafe-path"]


def test_all_mistakes_of_a_file_at_once(tmp_path: Path) -> None:
    text = "as_of: 2026-11-20\noffers: [{offer: 'x:*', flag: suspect}]\ndiscounts: [{provider: y, fraction: 5 %}]\n"
    assert [problem.reference for problem in refused(written(tmp_path, HEAD + text))] == ["no-match", "no-match"]
