"""Loading a hardware folder: what is refused and where, and what the digest depends on."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.catalog.check import facts_of
from planner.catalog.load import find_device, find_shape, load_catalog
from planner.errors import InputError, Problem
from planner.files import data_folder

CATALOG = "schema: catalog/v1\nname: tiny\nas_of: 2026-11-21\n"
DEVICES = """schema: catalog/devices/v1
vendor: nvidia
defaults: {as_of: 2026-11-21, status: seen, source: a page, frameworks: [pytorch]}
devices:
  - id: card
    kind: gpu
    family: ampere
    aliases: [Card-24GB]
    memory: {label: 24 GB, capacity: 24 GiB, bandwidth: 900 GB/s}
    peak_dense: {fp16: 70 TFLOP/s, bf16: {value: 71 TFLOP/s, status: recalled, source: memory}}
    links:
      scale_up: {name: pcie, one_way_all: 32 GB/s, one_way_pair: 32 GB/s, pattern: pcie, max_devices: 8}
    power: {tdp: 350 W}
    inferred: [memory.capacity]
"""
SHAPES = "shape,kind,device,devices,as_of,status,source\nbox,instance,card,4,2026-11-21,seen,a page\n"
OFFERS = (
    "offer,provider,shape,region,price_model,price_usd_per_hour_per_shape,as_of,status,source\n"
    "acme:here:box:on_demand,acme,box,here,on_demand,1.25,2026-11-21,seen,a page\n"
    "acme:here:box:spot,acme,box,here,spot,0.5,2026-11-21,seen,a page\n"
)
RULE = """schema: catalog/rule/v1
defaults: {as_of: 2026-11-21, status: inferred}
families:
  ampere: {mfu: 40 %, source: a page}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("catalog.yaml", CATALOG),
        ("devices/own.yaml", DEVICES),
        ("shapes/acme.csv", SHAPES),
        ("offers/acme.csv", OFFERS),
        ("calibration/rule.yaml", RULE),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_small_catalog(folder: Path) -> None:
    catalog = load_catalog(folder)
    card = find_device(catalog, "CARD-24gb")
    assert card.memory_bytes == 24 * 2**30
    assert card.facts["memory_bytes"].status == "inferred"
    assert card.facts["peak_flop_per_s.bf16"].source == "memory"
    assert card.facts["peak_flop_per_s.bf16"].status == "recalled"
    assert card.facts["peak_flop_per_s.fp16"].source == "a page"
    assert [offer.price_microusd_per_hour for offer in catalog.offers] == [1_250_000, 500_000]
    assert find_shape(catalog, "acme/box").inter_node_bytes_per_s_per_device is None
    assert set(catalog.devices) == {"card"}  # nothing of the shipped catalog shines through


# what, file, (old text, new text), reference, line of the complaint
FAULTS = [
    ("no unit", "devices/own.yaml", ("900 GB/s", "900"), "missing-unit", 9),
    ("no such unit", "devices/own.yaml", ("350 W", "350 horses"), "", 13),
    ("infinite", "devices/own.yaml", ("900 GB/s", ".inf"), "out-of-range", 9),
    ("unknown key", "devices/own.yaml", ("label:", "lable:"), "unknown-key", 9),
    ("unknown kind", "devices/own.yaml", ("kind: gpu", "kind: gpus"), "unknown-value", 6),
    ("unknown fact", "devices/own.yaml", ("[memory.capacity]", "[memory.capacty]"), "unknown-fact", 5),
    ("no memory", "devices/own.yaml", ("capacity: 24 GiB, ", ""), "missing-key", 9),
    ("bad status", "devices/own.yaml", ("status: recalled", "status: guessed"), "unknown-value", 10),
    ("no such day", "devices/own.yaml", ("as_of: 2026-11-21", "as_of: 2026-02-30"), "bad-date", 3),
    ("bad date", "devices/own.yaml", ("as_of: 2026-11-21", "as_of: yesterday"), "bad-date", 3),
    ("wrong schema", "devices/own.yaml", ("devices/v1", "devices/v9"), "wrong-schema", 1),
    ("two devices of one id", "devices/own.yaml", ("id: card", "id: card"), "", 0),
    ("extends nothing", "catalog.yaml", ("name: tiny", "name: tiny\nextends: nowhere"), "no-catalog", 3),
    ("other money", "catalog.yaml", ("name: tiny", "currency: EUR"), "unknown-value", 2),
    ("unknown device", "shapes/acme.csv", (",card,", ",crad,"), "unknown-device", 2),
    ("half a device", "shapes/acme.csv", (",4,", ",0.5,"), "bad-number", 2),
    ("too few cells", "shapes/acme.csv", (",a page", ""), "bad-row", 2),
    ("unknown column", "shapes/acme.csv", ("as_of", "date"), "", 1),
    ("unknown shape", "offers/acme.csv", (",box,here,spot", ",bux,here,spot"), "unknown-shape", 3),
    ("price of zero", "offers/acme.csv", ("1.25", "0"), "bad-price", 2),
    ("negative price", "offers/acme.csv", ("1.25", "-1"), "bad-price", 2),
    ("no price", "offers/acme.csv", ("1.25", ""), "bad-price", 2),
    ("price not a number", "offers/acme.csv", ("1.25", "nan"), "bad-price", 2),
    ("infinite price", "offers/acme.csv", ("1.25", "inf"), "bad-price", 2),
    ("price with a sign", "offers/acme.csv", ("1.25", "$1.25"), "bad-price", 2),
    ("price too fine", "offers/acme.csv", ("1.25", "1.2500001"), "bad-price", 2),
    ("unknown price model", "offers/acme.csv", (",spot,0.5", ",sopt,0.5"), "unknown-value", 3),
    ("offer twice", "offers/acme.csv", ("box:spot,", "box:on_demand,"), "duplicate-id", 3),
    ("share above one", "calibration/rule.yaml", ("40 %", "140 %"), "out-of-range", 4),
    ("no share for the family", "calibration/rule.yaml", ("ampere:", "volta:"), "unknown-family", 0),
    ("heir of nobody", "calibration/rule.yaml", ("mfu: 40 %, source: a page", "inherits: x, because: y"), "", 4),
]


@pytest.mark.parametrize(("what", "file", "change", "reference", "line"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_faults(folder: Path, what: str, file: str, change: tuple[str, str], reference: str, line: int) -> None:
    text = (folder / file).read_text(encoding="utf-8")
    assert change[0] in text
    changed = text.replace(*change, 1)
    if what == "two devices of one id":
        changed, reference = text + DEVICES.partition("devices:\n")[2], "duplicate-id"
    (folder / file).write_text(changed, encoding="utf-8")
    problems = refused(folder)
    assert not reference or reference in {problem.reference for problem in problems}
    place = next(p for p in problems if not reference or p.reference == reference).places[0]
    assert (place.line, Path(place.file).name) == (line, Path(file).name)


TRANSFER_FAULTS = [
    ("acme,egress,0,0.1", "acme,postage,0,0.1", "unknown-value"),
    ("acme,egress,0,0.1", "acme,egress,5,0.1", "bad-number"),
    ("acme,egress,9,0.05", "acme,egress,0,0.05", "bad-number"),
    ("acme,egress,9,0.05", "acme,egress,9,-1", "bad-number"),
    ("acme,egress,9,0.05", "acme,egress,9,", "bad-number"),
]


@pytest.mark.parametrize(("before", "after", "reference"), TRANSFER_FAULTS)
def test_faults_of_transfers(folder: Path, before: str, after: str, reference: str) -> None:
    rest = ",2026-11-21,seen,a page\n"
    head = "provider,kind,above_gb,usd_per_gb,as_of,status,source\n"
    text = head + "acme,egress,0,0.1" + rest + "acme,egress,9,0.05" + rest
    (folder / "transfer.csv").write_text(text, encoding="utf-8")
    assert load_catalog(folder).transfers["acme", "egress"].tiers == ((0.0, 0.1), (9.0, 0.05))
    (folder / "transfer.csv").write_text(text.replace(before, after), encoding="utf-8")
    problems = refused(folder)
    assert reference in {problem.reference for problem in problems}
    assert {Path(problem.places[0].file).name for problem in problems} == {"transfer.csv"}


def refused(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        load_catalog(folder)
    assert caught.value.exit_code == 3
    assert all(problem.places for problem in caught.value.problems)
    return caught.value.problems


def test_all_mistakes_at_once(folder: Path) -> None:
    (folder / "offers/acme.csv").write_text(OFFERS.replace("1.25", "0").replace("0.5", "-1"), encoding="utf-8")
    (folder / "devices/own.yaml").write_text(DEVICES.replace("900 GB/s", "900"), encoding="utf-8")
    assert [problem.reference for problem in refused(folder)] == ["missing-unit", "bad-price", "bad-price"]


def test_a_network_nobody_described(folder: Path) -> None:
    text = SHAPES.replace("source\n", "source,network_kind\n").replace("a page\n", "a page,token-ring\n")
    (folder / "shapes/acme.csv").write_text(text, encoding="utf-8")
    assert [problem.reference for problem in refused(folder)] == ["unknown-fabric"]


def test_what_a_network_sustains_is_a_share(folder: Path) -> None:
    head = "schema: catalog/fabrics/v1\ndefaults: {source: a page, as_of: 2026-11-21, status: seen}\nfabrics:\n"
    for share, reference in (("0.5", ""), ("100 %", ""), ("0", "out-of-range"), ("150 %", "out-of-range")):
        line = f"  - {{id: wire, title: Wire, rdma: 'no', sustained_share: {share}}}\n"
        (folder / "fabrics.yaml").write_text(head + line, encoding="utf-8")
        if not reference:
            assert load_catalog(folder).fabrics["wire"].sustained_share == (0.5 if share == "0.5" else 1.0)
            continue
        (problem,) = refused(folder)
        assert (problem.reference, problem.places[0].line) == (reference, 4)


def test_a_folder_that_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path)
    assert caught.value.problems[0].reference == "file-not-found"


def test_unknown_names_are_answered_with_near_ones(folder: Path) -> None:
    catalog = load_catalog(folder)
    with pytest.raises(InputError, match="unknown-device") as caught:
        find_device(catalog, "crad")
    assert "card" in caught.value.problems[0].hint
    with pytest.raises(InputError, match="unknown-shape"):
        find_shape(catalog, "acme/bax")


# The digest is of the content, not of how it is written down.
def crlf(folder: Path) -> None:
    for path in folder.rglob("*.*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def comments(folder: Path) -> None:
    path = folder / "devices/own.yaml"
    path.write_text("# a remark\n" + path.read_text(encoding="utf-8") + "\n# another\n", encoding="utf-8")


def other_order(folder: Path) -> None:
    head, *rows = OFFERS.splitlines()
    (folder / "offers/acme.csv").write_text("\n".join([head, *reversed(rows)]), encoding="utf-8")


def other_columns(folder: Path) -> None:
    rows = list(csv.reader(OFFERS.splitlines()))
    with (folder / "offers/acme.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([row[::-1] for row in rows])


def other_file(folder: Path) -> None:
    (folder / "offers/acme.csv").rename(folder / "offers/prices.csv")


def other_units(folder: Path) -> None:
    path = folder / "devices/own.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("900 GB/s", "0.9 TB/s"), encoding="utf-8")


def other_place(folder: Path) -> None:
    shutil.copytree(folder, folder / "copy", ignore=shutil.ignore_patterns("copy"))


@pytest.mark.parametrize("rewrite", [crlf, comments, other_order, other_columns, other_file, other_units])
def test_digest_ignores_the_writing(folder: Path, rewrite: Callable[[Path], None]) -> None:
    before = load_catalog(folder).digest
    rewrite(folder)
    assert load_catalog(folder).digest == before


def test_digest_ignores_the_place(folder: Path) -> None:
    before = load_catalog(folder).digest
    other_place(folder)
    assert load_catalog(folder / "copy").digest == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("offers/acme.csv", "1.25", "1.250001"),
        ("offers/acme.csv", "2026-11-21", "2026-11-20"),
        ("offers/acme.csv", "a page", "another page"),
        ("devices/own.yaml", "70 TFLOP/s", "70.1 TFLOP/s"),
        ("devices/own.yaml", "status: recalled", "status: seen"),
        ("shapes/acme.csv", ",4,", ",8,"),
        ("calibration/rule.yaml", "40 %", "41 %"),
    ],
)
def test_digest_sees_every_fact(folder: Path, file: str, old: str, new: str) -> None:
    before = load_catalog(folder).digest
    text = (folder / file).read_text(encoding="utf-8")
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert load_catalog(folder).digest != before


def test_the_shipped_catalog_loads_from_a_copy_with_the_same_digest(tmp_path: Path) -> None:
    shutil.copytree(data_folder("hardware"), tmp_path / "copy")
    assert load_catalog(tmp_path / "copy").digest == load_catalog().digest


def test_what_a_network_sustains_has_a_source_of_its_own() -> None:
    (found,) = [fact for _, _, name, fact in facts_of(load_catalog(None)) if name == "sustained_share"]
    assert (found.status, "nccl" in found.source) == ("inferred", True)
