"""Price lists as offers that a catalog takes (tests/cli solves with them); other lists show what they hold."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.own_prices import with_price_file
from planner.errors import InputError
from planner.reading.kinds import Asked, Reading, read
from planner.reading.piece_writing import write_piece
from planner.reading.source import Source
from tests.reading.market_writers import (
    asset_prices,
    azure,
    device_prices,
    gpuhunt,
    model_prices,
    pairs,
    part_prices,
    shop_prices,
    sky_accelerators,
    sky_nodes,
    sky_prices,
    sky_quantities,
    skypilot,
)

DAY = "2027-02-03"  # of no price that ships


def reading_of(folder: Path, content: str, name: str = "file", asked: Asked | None = None) -> Reading:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return read(Source(path), asked or Asked(today=DAY))


def figures(reading: Reading) -> dict[str, Any]:
    return {each.label: each.value for each in reading.look}


def skips(reading: Reading) -> dict[str, int]:
    return {why: count for why, (count, _) in reading.skipped.reasons.items()}


def prices_of(reading: Reading, folder: Path) -> dict[str, int]:
    """Micro-dollars an hour by offer, as the solver has them under the file that is written."""
    write_piece(reading, str(folder / "prices.csv"))
    catalog = with_price_file(load_catalog(), folder / "prices.csv")
    return {offer.id: offer.price_microusd_per_hour for offer in catalog.offers if offer.provenance.as_of == DAY}


def test_a_list_is_of_the_provider_whose_machines_it_names(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, skypilot())
    assert (reading.taken, skips(reading)) == (2, {"no shape of this machine": 1, "no accelerator": 1})
    assert reading.understood["provider"] == "lambda"
    found = figures(reading)
    assert (found["a10 on demand, cheapest"], found["h100-sxm-80gb on demand, cheapest"]) == (0.5, 2.0)
    assert prices_of(reading, tmp_path) == {
        "lambda:us-east-1:gpu_1x_a10:on_demand": 500_000, "lambda:us-east-1:gpu_8x_h100_sxm5:on_demand": 16_000_000,
    }  # fmt: skip


def test_the_folder_tells_whose_a_list_is_where_its_machines_do_not(tmp_path: Path) -> None:
    row = ("new_machine", "A10", 1.0, 1.0, 1.0, 0.5, "us-east-1", "", "")
    with pytest.raises(InputError, match="no price of") as caught:
        reading_of(tmp_path, skypilot(row), "lambda/vms.csv")
    assert "no shape of this machine" in caught.value.problems[0].hint


def test_a_list_of_nobody_shows_what_devices_cost(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, gpuhunt())
    assert (reading.taken, skips(reading), reading.pieces) == (2, {"no accelerator": 1}, [])
    assert (figures(reading)["l4 on demand, cheapest"], figures(reading)["l4 spot, cheapest"]) == (2.5, 1.0)
    assert any("plan catalog refresh FILE --provider NAME" in note for note in reading.notes)


def test_terms_that_nobody_said_are_asked_not_guessed(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, pairs())
    assert reading.taken == 2
    assert skips(reading) == {"no shape of this machine": 1, "no price: not offered": 1}
    assert figures(reading)["h100-sxm-80gb terms not said, cheapest"] == 5.0
    assert not reading.pieces
    assert any("--price-model" in note for note in reading.notes)


def test_another_currency_is_refused_with_a_way_out(tmp_path: Path) -> None:
    assert figures(reading_of(tmp_path, azure()))["h100-sxm-80gb on demand, cheapest"] == 9.5 / 8
    with pytest.raises(InputError, match="its prices are in EUR") as caught:
        reading_of(tmp_path, azure("EUR"))
    assert "--rate EUR=1.08" in caught.value.problems[0].hint


def test_devices_by_cloud_become_an_overlay_of_what_is_sold(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, device_prices())
    assert (reading.taken, skips(reading)) == (2, {"no price of an hour": 1})
    assert figures(reading)["H100 (h100-sxm-80gb), aws"] == 0.25
    assert figures(reading)["New (not in the catalog), any cloud"] == 1.0
    write_piece(reading, str(tmp_path / "own" / "catalog.yaml"))
    catalog = load_catalog(tmp_path / "own")
    changed = [offer for offer in catalog.offers if offer.provenance.source == "file file"]
    assert changed
    for offer in changed:
        assert offer.price_microusd_per_hour == 250_000 * catalog.shapes[offer.shape].devices
        assert (offer.provider, offer.price_model, offer.provenance.as_of) == ("aws", "on_demand", DAY)


def test_names_of_a_shop_say_device_and_terms(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, shop_prices())
    assert (reading.taken, skips(reading)) == (4, {"no device: a fee": 1, "no price: not offered": 1})
    assert reading.pieces[0].text.splitlines()[1:] == [
        "a100-sxm-40gb,on demand,3.0,3.0,1", "a100-sxm-80gb,on demand,5.0,5.0,1", "l4,for 1 year,0.4,0.4,1",
        "l4,spot,0.2,0.2,1",
    ]  # fmt: skip


def test_tokens_cost_by_the_million(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, model_prices())
    assert (reading.taken, sum(skips(reading).values())) == (2, 3)
    assert "a negative price, or one above a dollar a token" in skips(reading)
    rows = [line.split(",") for line in reading.pieces[0].text.splitlines()[1:]]
    assert [(row[0], Decimal(row[3]), Decimal(row[4])) for row in rows] == [
        ("large", Decimal("2.5"), Decimal(10)), ("small", Decimal("0.15"), Decimal("0.6")),
    ]  # fmt: skip


def test_prices_of_ones_own(tmp_path: Path) -> None:
    assets = reading_of(tmp_path, asset_prices())
    assert (assets.taken, skips(assets), figures(assets)["gpu a100"]) == (2, {"no price": 1}, 1.25)
    parts = reading_of(tmp_path, part_prices())
    assert parts.taken == 4
    assert (figures(parts)["device"], figures(parts)["core"]) == (0.95, 0.03)
    assert skips(parts) == {"not a price that is known": 2, "no price, or a negative one": 1}


def test_what_sky_prints_of_quantities_prices_and_nodes(tmp_path: Path) -> None:
    quantities = reading_of(tmp_path, sky_quantities())
    assert (quantities.taken, figures(quantities)["H100 (h100-sxm-80gb)"]) == (3, "1, 2, 4, 8")
    assert "not in the catalog: NoSuchGPU" in quantities.notes

    prices = reading_of(tmp_path, sky_prices())
    assert (prices.taken, skips(prices)) == (4, {"no price of a count of accelerators": 1})
    assert figures(prices)["h100-sxm-80gb on demand, dearest"] == 5.0  # 20 of 8 is shown, though nobody sells it
    assert prices_of(prices, tmp_path) == {
        "lambda:us-east-1:gpu_8x_h100_sxm5:on_demand": 16_000_000, "aws:us-east-1:p5.48xlarge:on_demand": 40_000_000,
        "aws:us-east-1:p5.48xlarge:spot": 12_500_000,
    }  # fmt: skip

    nodes = reading_of(tmp_path, sky_nodes())
    assert (nodes.taken, skips(nodes)) == (3, {"no count of accelerators": 1})
    (piece,) = nodes.pieces
    assert piece.fragment["hardware"]["owned"] == [{"shape": "onprem/l4-x4", "count": 2, "price": "$0/h"}]


def test_who_offers_what(tmp_path: Path) -> None:
    found = figures(reading_of(tmp_path, sky_accelerators()))
    assert found == {"H100 (h100-sxm-80gb)": 2, "NoSuchGPU (not in the catalog)": 1}


def test_what_sky_calls_an_a100_has_40_gb_and_kept_nodes_are_counted(tmp_path: Path) -> None:
    text = (
        "GPU   QTY_PER_NODE  TOTAL_GPUS  TOTAL_FREE_GPUS\n"
        "A100  1, 2, 4, 8    16          8\n\n"
        "CONTEXT  NODE    vCPU             GPU        GPU UTILIZATION  NODE STATUS\n"
        "prod     node-a  100 of 192 free  A100       0 of 8 free      Healthy\n"
        "prod     node-b  192 of 192 free  A100-80GB  8 of 8 free      Healthy\n"
        "prod     node-c  192 of 192 free  A100-80GB  8 of 8 free      Cordoned\n"
    )
    path = tmp_path / "sky.txt"
    path.write_text(text)
    reading = read(Source(path))
    assert next((each.label, each.value) for each in reading.look) == ("A100 (a100-sxm-40gb)", "1, 2, 4, 8")
    entries = next(piece.fragment["hardware"]["owned"] for piece in reading.pieces if piece.fragment)
    assert {each["shape"] for each in entries} == {"onprem/dgx-a100-40gb", "onprem/dgx-a100-80gb"}
    assert reading.skipped.reasons == {"cordoned or not ready": (1, 7)}


def test_a_router_s_models_by_the_token(tmp_path: Path) -> None:
    models = [{"id": name, "context_length": 8, "pricing": pricing} for name, pricing in (
        ("a/m", {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000125"}),
        ("a/free", {"prompt": "0", "completion": "0"}), ("r/auto", {"prompt": "-1", "completion": "-1"}),
        ("r/pictures", {"image": "1"}), ("b/n", {"prompt": "-0.5", "completion": "1e-6"}),
    )]  # fmt: skip
    reading = reading_of(tmp_path, json.dumps({"data": models}))
    assert (reading.kind, reading.taken) == ("router-prices", 2)
    assert skips(reading) == {"a price that depends on the model that is chosen": 1, "no price by the token": 1,
                              "a negative price, or one above a dollar a token": 1}  # fmt: skip
    first, second = (row.split(",") for row in reading.pieces[0].text.splitlines()[1:])
    assert first == ["a/free", "a", "chat", "0", "0", "", "", ""]
    assert (second[:3], [float(cell) for cell in second[3:6]]) == (["a/m", "a", "chat"], [2.5, 10, 1.25])


def test_blanks_behind_names_of_columns_change_nothing(tmp_path: Path) -> None:
    """A column named "spot " was passed over: prices of spot stood as prices on demand."""
    rows = ("x1,there,1.0,1,L4,24.0,True", "x1,there,2.5,1,L4,24.0,False")
    head = "instance_name,location,price,gpu_count,gpu_name,gpu_memory,spot"
    for end in ("", "  "):
        path = tmp_path / "list.csv"
        path.write_text("".join(f"{line}{end}\n" for line in (head, *rows)))
        found = {each.label: each.value for each in read(Source(path)).look}
        assert (found["l4 on demand, cheapest"], found["l4 spot, cheapest"]) == (2.5, 1.0)
