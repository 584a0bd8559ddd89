"""Price lists of other tools: the sixteen traps of SkyPilot's files on rows of our own, and gpuhunt's rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.catalog.importers.imported import Imported, extending_text, merged
from planner.catalog.importers.tool_lists import read_folder, read_skypilot
from planner.catalog.load import load_catalog
from planner.catalog.offers import PRICE
from planner.catalog.refresh import overlay_text, refreshed
from planner.errors import InputError

CATALOG = load_catalog()
HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
SCENARIOS = Path(__file__).parents[2] / "scenarios"
SAMPLES = Path(__file__).parents[3] / "shared" / "data" / "skypilot"


def imported(tmp_path: Path, provider: str, *rows: str, head: str = HEAD, end: str = "\n") -> Imported:
    folder = tmp_path / provider
    folder.mkdir(exist_ok=True)
    file = folder / "vms.csv"
    file.write_bytes(end.join([head, *rows, ""]).encode())
    found = read_skypilot(file, CATALOG, source="a list", as_of="2026-11-21")
    assert found.rows == len(rows) == found.taken + len(found.skipped)
    return found


def prices(found: Imported) -> dict[str, str]:
    return {name: row[PRICE] for name, row in found.offers.items()}


def reason(found: Imported) -> str:
    (skip,) = found.skipped
    return skip.reason


def test_columns_in_any_order_and_others_between(tmp_path: Path) -> None:  # trap 1
    head = "Price,StorageGiB,Region,InstanceType,GpuInfo,SpotPrice,AcceleratorCount,AcceleratorName"
    found = imported(tmp_path, "hyperbolic", "1.29,800,default,1x-H100-75-722,,,1,H100", head=head)
    assert prices(found) == {"hyperbolic:default:1x-H100-75-722:on_demand": "1.29"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_end_in_both_ways(tmp_path: Path, end: str) -> None:  # trap 2
    found = imported(tmp_path, "hyperbolic", "1x-H100-75-722,H100,1,75,722,,1.29,,default,", end=end)
    assert len(found.offers) == 1


SPELLINGS = [
    "\"{'Gpus': [{'Name': 'H100', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 81559}}]}\"",
    '"{""Gpus"": [{""Name"": ""H100"", ""Count"": 1}]}"',
    "\"{'Gpus': [{'Name': 'H100', 'Manufacturer': null}]}\"",
    "H100",
    "\"{'gpus': [{'name': 'H100'}]}\"",
    "",
    "\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 80}}], 'TotalGpuMemoryInMiB': 6\"",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_said_of_accelerators_is_not_read(tmp_path: Path, spelling: str) -> None:  # traps 3 and 5
    found = imported(tmp_path, "hyperbolic", f"1x-H100-75-722,H100,1,75,722,{spelling},1.29,,default,")
    assert len(found.offers) == 1


@pytest.mark.parametrize(("count", "kept"), [("1", True), ("1.0", True), ("", True), ("many", True), ("8", False)])
def test_counts_are_read_as_numbers_and_held_against_the_shape(tmp_path: Path, count: str, kept: bool) -> None:  # 4
    found = imported(tmp_path, "hyperbolic", f"1x-H100-75-722,H100,{count},75,722,,1.29,,default,")
    assert bool(found.offers) == kept
    assert kept or reason(found) == "the row has 8 accelerators, the shape 1"


def test_hosts_come_from_the_shape(tmp_path: Path) -> None:  # trap 6
    found = imported(tmp_path, "hyperbolic", "1x-H100-75-722,H100,1,1,3,,1.29,,default,")
    (offer,) = found.offers.values()
    assert CATALOG.shapes[f"hyperbolic/{offer['shape']}"].host_memory_bytes == 722 * 2**30


@pytest.mark.parametrize(
    ("row", "models"),
    [("1.29,", ["on_demand"]), (",0.9", ["spot"]), ("0,0.0", []), (",", []), ("nan,", []), ("null,", [])],
)
def test_no_price_is_not_offered(tmp_path: Path, row: str, models: list[str]) -> None:  # trap 7
    found = imported(tmp_path, "hyperbolic", f"1x-H100-75-722,H100,1,75,722,,{row},default,")
    assert [offer["price_model"] for offer in found.offers.values()] == models
    assert models or reason(found) == "no price: not offered"


NO_NUMBER = ['"1,234.50",', '"23,92",', "$23.92,", "-1,", "ask,", "1e999,", ",-2", "1.29,1 USD"]


@pytest.mark.parametrize("row", NO_NUMBER)
def test_a_price_that_is_no_number_is_told_and_its_offer_is_not_gone(tmp_path: Path, row: str) -> None:
    """Not even under a catalog of the list alone; what the list does not hold is."""
    other, mine = "gpu_8x_h100_sxm5,H100,8,,,,23.92,,us-west-2,", f"gpu_8x_h100_sxm5,H100,8,,,,{row},us-east-1,"
    found = imported(tmp_path, "lambda", other, mine)
    assert [skip.reason for skip in found.skipped] == ["no number for a price"]
    for text in (
        extending_text([found], CATALOG, "mine"),
        overlay_text(refreshed([found], CATALOG), "mine", whole=True),
    ):
        assert "gpu_8x_v100" in text  # others are gone
        folder = tmp_path / "mine"
        (folder / "offers").mkdir(parents=True, exist_ok=True)
        (folder / "offers" / "lambda.csv").write_text(merged([found])["lambda"])
        (folder / "catalog.yaml").write_text(text)
        left = {offer.id for offer in load_catalog(folder).offers if offer.provider == "lambda"}
        assert {name for name in left if name.endswith(":on_demand")} == {
            f"lambda:{region}:gpu_8x_h100_sxm5:on_demand" for region in ("us-east-1", "us-west-2")
        }


@pytest.mark.parametrize(
    ("row", "qualities"),
    [
        ("2,2", {"on_demand": "", "spot": "suspect_spot"}),  # 8
        ("2,0.2", {"on_demand": "", "spot": "suspect_spot"}),  # 8
        ("3.44,6.88", {"on_demand": "suspect", "spot": "suspect"}),  # 9
        ("2,1", {"on_demand": "", "spot": ""}),
    ],
)
def test_odd_pairs_of_prices_are_flagged(tmp_path: Path, row: str, qualities: dict[str, str]) -> None:
    found = imported(tmp_path, "hyperbolic", f"1x-H100-75-722,H100,1,75,722,,{row},default,")
    assert {offer["price_model"]: offer["quality"] for offer in found.offers.values()} == qualities


def test_google_adds_the_host_save_for_the_b200(tmp_path: Path) -> None:  # trap 10
    found = imported(
        tmp_path,
        "gcp",
        "a2-highgpu-1g,,,12,85,,0.81406,0.31824,europe-west4,europe-west4-a",
        ",A100,1,,,,1.61365,1.1691,europe-west4,europe-west4-a",
        ",B200,8,,,,90.216,32.6064,us-east1,us-east1-b",
        ",A100,2,,,,3,2,europe-west4,europe-west4-a",
    )
    assert prices(found) == {
        "gcp:europe-west4-a:a2-highgpu-1g:on_demand": "2.42771",
        "gcp:europe-west4-a:a2-highgpu-1g:spot": "1.48734",
        "gcp:us-east1-b:a4-highgpu-8g:on_demand": "90.216",
        "gcp:us-east1-b:a4-highgpu-8g:spot": "32.6064",
    }
    assert reason(found) == "an accelerator without a machine in its zone"


def test_a_sentinel_is_flagged_and_a_repeated_row_listed(tmp_path: Path) -> None:  # trap 11
    row = ",tpu-v6e-8,1,,,,700.0,700.0,us-east5,us-east5-a"
    found = imported(tmp_path, "gcp", row, row)
    assert {offer["quality"] for offer in found.offers.values()} == {"sentinel"}
    assert reason(found) == "the same row again"


def test_two_price_levels_of_one_machine(tmp_path: Path) -> None:  # trap 12
    found = imported(
        tmp_path,
        "gcp",
        ",B200,8,,,,90.216,32.6064,us-east1,us-east1-b",
        ",B200,8,,,,64.44,32.6064,us-east4,us-east4-b",
    )
    assert {offer["zone"]: offer["quality"] for offer in found.offers.values()} == {
        "us-east1-b": "",
        "us-east4-b": "suspect",
    }


def test_floors_of_an_auction_are_no_prices(tmp_path: Path) -> None:  # trap 13
    found = imported(tmp_path, "mithril", "h100-80gb.sxm.8x,H100,8,168,1814,,8.0,8.0,us-central2-a,")
    ((model, quality),) = [(offer["price_model"], offer["quality"]) for offer in found.offers.values()]
    assert (model, quality) == ("auction", "suspect")


def test_the_name_of_a_slice_says_how_many_chips(tmp_path: Path) -> None:  # trap 14
    found = imported(
        tmp_path,
        "gcp",
        ",tpu-v5p-8,1,,,,16.8,,us-east5,us-east5-a",
        ",tpu-v5litepod-8,1,,,,9.6,,us-east5,us-east5-a",
        ",tpu-v5p-9,1,,,,1,,us-east5,us-east5-a",
    )
    assert [CATALOG.shapes[f"gcp/{offer['shape']}"].devices for offer in found.offers.values()] == [4, 8]
    assert reason(found) == "no such slice is known"


def test_a_machine_without_an_accelerator_name(tmp_path: Path) -> None:  # trap 15
    name = next(shape.name for shape in CATALOG.shapes.values() if shape.provider == "aws" and "trn2" in shape.name)
    found = imported(tmp_path, "aws", f"{name},,,192,2048,,,3.5,us-east-2,use2-az3")
    assert [offer["price_model"] for offer in found.offers.values()] == ["spot"]


def test_a_price_is_kept_for_every_region_that_lists_it(tmp_path: Path) -> None:  # trap 16
    rows = [f"gpu_1x_a10,A10,1,30,200,,1.29,,{region}," for region in ("us-east-1", "asia-south-1")]
    assert len(imported(tmp_path, "lambda", *rows).offers) == 2


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("cpu_4x_general,,,4,16,,0.2,,us-east-1,", "no accelerator"),
        ("gpu_9x_z100,Z100,9,4,16,,0.2,,us-east-1,", "no shape of this machine"),
        ("gpu_1x_a10,H100,1,4,16,,0.2,,us-east-1,", "the row sells H100, the shape holds a10"),
    ],
)
def test_nothing_is_guessed(tmp_path: Path, row: str, why: str) -> None:
    assert reason(imported(tmp_path, "lambda", row)) == why


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column InstanceType"):
        imported(tmp_path, "lambda", "1,2", head="a,b")


def test_spot_above_on_demand_at_google(tmp_path: Path) -> None:  # trap 12, its first half
    found = imported(
        tmp_path,
        "gcp",
        "a2-ultragpu-1g,,,12,170,,0.5,0.1,us-central1,us-central1-a",
        ",A100-80GB,1,,,,1.3462,1.864,us-central1,us-central1-a",
    )
    assert prices(found) == {
        "gcp:us-central1-a:a2-ultragpu-1g:on_demand": "1.8462",
        "gcp:us-central1-a:a2-ultragpu-1g:spot": "1.964",
    }
    assert {offer["quality"] for offer in found.offers.values()} == {"suspect"}


def test_two_host_memories_of_one_machine_are_one_offer(tmp_path: Path) -> None:  # trap 6, its second half
    rows = [f"n3-H100-SXM5x8,H100,8,192,{memory},,19.2,,CANADA-1," for memory in (1800, 960)]
    found = imported(tmp_path, "hyperstack", *rows)
    assert len(found.offers) == 1
    assert reason(found) == "the same row again"


def test_every_trap_has_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    marks = re.findall(r"# (?:traps? )?([0-9]+)(?: and ([0-9]+))?(?:,|$)", text, flags=re.MULTILINE)
    assert {int(number) for pair in marks for number in pair if number} >= set(range(1, 17))


def test_places_get_the_country_that_other_offers_have(tmp_path: Path) -> None:
    found = imported(tmp_path, "verda", "8B200.240V,B200,8,240,1400,,31,13.69,FIN-03,")
    assert {offer["country"] for offer in found.offers.values()} == {"FI"}


def test_prices_without_a_date_are_of_an_unknown_one(tmp_path: Path) -> None:
    file = tmp_path / "lambda" / "vms.csv"
    file.parent.mkdir()
    file.write_text(f"{HEAD}\ngpu_1x_a10,A10,1,30,200,,1.29,,us-east-1,\n", encoding="utf-8")
    (offer,) = read_skypilot(file, CATALOG, copied="2026-11-20").offers.values()
    assert (offer["status"], offer["as_of"]) == ("date-unknown", "2026-11-20")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    from planner.catalog.offers import read_offers
    from planner.catalog.reading import Problems

    found = imported(tmp_path, "gcp", ",B200,8,,,,90.216,32.6064,us-east1,us-east1-b")
    ((provider, text),) = merged([found]).items()
    file = tmp_path / f"{provider}.csv"
    file.write_text(text)
    problems = Problems()
    offers = read_offers(file, CATALOG.shapes, set(), problems)
    assert [offer.price_microusd_per_hour for offer in offers] == [90_216_000, 32_606_400]
    assert not len(problems)


def test_gpuhunt_has_a_row_for_every_price(tmp_path: Path) -> None:
    rows = [
        "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,gpu_vendor,spot,disk_size",
        "gpu_1x_a10,us-east-1,1.29,30,200,1,A10,24,nvidia,False,",
        "gpu_1x_a10,us-east-1,0.60,30,200,1,A10,24,nvidia,True,",
        "gpu_1x_a10,us-east-1,0,30,200,1,A10,24,nvidia,True,",
        "gpu_1x_a10,us-east-2,1.29,30,200,1,,24,nvidia,False,",
        "cpu_4x,us-east-1,0.2,4,16,0,,,,False,",
    ]
    (tmp_path / "lambdalabs.csv").write_text("\n".join(rows) + "\n")
    (found,) = read_folder(tmp_path, CATALOG)
    assert prices(found) == {"lambda:us-east-1:gpu_1x_a10:on_demand": "1.29", "lambda:us-east-1:gpu_1x_a10:spot": "0.6"}
    why = [skip.reason for skip in found.skipped]
    assert why == ["no price: not offered", "accelerators without a name", "no accelerator"]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")
def test_every_row_of_the_samples_is_taken_or_listed() -> None:
    known = {
        (offer.provider, offer.zone or offer.region, offer.shape, offer.price_model): offer for offer in CATALOG.offers
    }
    agreed = 0
    for file in sorted(SAMPLES.glob("*/*/vms.csv")):
        found = read_skypilot(file, CATALOG)
        assert found.rows == found.taken + len(found.skipped)
        for row in found.offers.values():
            assert float(row[PRICE]) > 0
            assert row[PRICE] != "700" or row["quality"] == "sentinel"
            key = (found.provider, row["zone"] or row["region"], f"{found.provider}/{row['shape']}", row["price_model"])
            copied = key in known and "skypilot" in known[key].provenance.source  # else a newer list took its place
            if copied and not row["quality"] and known[key].quality != "stale":
                assert round(float(row[PRICE]) * 1e6) == known[key].price_microusd_per_hour
                agreed += 1
    assert agreed > 300


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")
def test_a_plan_on_the_samples_takes_no_price_that_is_none(tmp_path: Path) -> None:
    """Every sample as a catalog of its own: no price of zero, and no sentinel or flagged price is chosen."""
    from planner import api

    # of two versions of a provider's list the newer one
    files = {file.parent.name: file for file in sorted(SAMPLES.glob("*/*/vms.csv"))}
    found = [read_skypilot(file, CATALOG, copied="2026-11-21") for file in files.values()]
    (tmp_path / "offers").mkdir()
    for provider, text in merged(found).items():
        (tmp_path / "offers" / f"{provider}.csv").write_text(text, encoding="utf-8")
    theirs = {name.partition(":")[0] for one in found for name in one.offers}
    gone = sorted({offer.provider for offer in CATALOG.offers} - theirs)  # no list has them
    lines = [f"  - {{provider: {name}, remove: true}}\n" for name in gone]
    text = extending_text(found, CATALOG, "samples") + "".join(lines)
    (tmp_path / "catalog.yaml").write_text(text, encoding="utf-8")
    catalog = load_catalog(tmp_path)
    offers = {offer.id: offer for offer in catalog.offers}
    assert min(offer.price_microusd_per_hour for offer in catalog.offers) > 0
    assert {offer.quality for offer in catalog.offers} > {"", "sentinel", "suspect"}
    imported_ids = {name for one in found for name in one.offers}
    assert {offer.id for offer in catalog.offers if offer.price_model in ("on_demand", "spot")} <= imported_ids
    settings = ["hardware.pricing=[on_demand, spot]", "hardware.spot.interruptions=0.05/h", "hardware.owned=[]"]
    scenario = api.load_scenario(SCENARIOS / "gpt2-xl.yaml", settings=settings)
    plan = api.solve(scenario, catalog).document
    rows = [row for workload in plan["workloads"] for row in workload["allocations"]]
    assert plan["status"] == "optimal"
    assert rows
    for row in rows:
        assert row["offer"] in imported_ids
        assert (offers[row["offer"]].quality, row["price_microusd_per_hour"] > 0) == ("", True)
