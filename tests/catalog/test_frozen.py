"""A frozen catalog is the folder it came from: same digest, same text again, same plan. And it is not trusted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from planner.catalog.frozen import digest_of, frozen_text, read_frozen
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.errors import InputError
from planner.plan.document import digest_of as plan_digest
from tests.catalog.extending import HEAD, extended, offers_of, written
from tests.tiers import settings


@pytest.fixture(scope="module")
def file(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frozen") / "shipped.json"
    path.write_text(frozen_text(catalog), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few entries of each kind, frozen: quick to tamper with."""
    shapes = {name: shape for name, shape in catalog.shapes.items() if name in ("aws/p5.48xlarge", "lambda/gpu_1x_a10")}
    few = dataclasses.replace(
        catalog,
        devices={name: catalog.devices[name] for name in ("a10", "h100-sxm-80gb")},
        shapes=shapes,
        offers=tuple(offer for offer in catalog.offers if offer.shape in shapes),
        training_families={},
        serving=None,
    )
    path = tmp_path_factory.mktemp("small") / "small.json"
    path.write_text(frozen_text(dataclasses.replace(few, digest=digest_of(few))), encoding="utf-8")
    assert load_catalog(path).offers
    return path


def test_the_shipped_catalog_comes_back_whole(catalog: Catalog, file: Path) -> None:
    back = load_catalog(file)
    assert back.digest == catalog.digest
    assert (frozen_text(back) == file.read_text(encoding="utf-8")) is True
    parts = ("devices", "shapes", "offers", "aliases", "serving")
    assert all(getattr(back, name) == getattr(catalog, name) for name in parts)
    assert json.loads(file.read_text(encoding="utf-8"))["sha256"] == catalog.digest


def test_a_plan_of_the_frozen_catalog_is_the_plan_of_the_folder(catalog: Catalog, file: Path) -> None:
    from planner import api

    scenario = api.load_scenario(Path(__file__).parents[2] / "scenarios" / "gpt2-xl.yaml")
    plans = [api.solve(scenario, one).document for one in (catalog, load_catalog(file))]
    assert plans[1]["provenance"]["catalog"].pop("hardware") == str(file)  # which catalog was named, and no more
    assert plan_digest(plans[0]) == plan_digest(plans[1])


def quoted(text: str) -> str:
    """As YAML and JSON both read it."""
    return json.dumps(text, ensure_ascii=False)


texts = st.text("aZ09 é日🙂=|<>\"'\\:#-{}[],&*!%@`$", min_size=1, max_size=20)


@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    microusd=st.integers(1, 10**12),
    fraction=st.integers(0, 99),
    source=texts,
    tdp=st.floats(1.0, 1e5),
    flag=st.sampled_from(["suspect", "none"]),
)
def test_extended_catalogs_come_back_whole(
    tmp_path: Path, microusd: int, fraction: int, source: str, tdp: float, flag: str
) -> None:
    dollars = f"{microusd // 10**6}.{microusd % 10**6:06}"
    mine = extended(
        tmp_path / "mine",
        "as_of: 2026-11-20\n"
        f"offers: [{{provider: aws, price_model: spot, price_per_shape: ${dollars}/h, source: {quoted(source)}}},\n"
        f"         {{provider: gcp, flag: {flag}, because: {quoted(source)}}}]\n"
        f"discounts: [{{device: a100-*, fraction: {fraction} %}}]\n"
        f"devices: [{{id: h100-sxm-80gb, power: {{tdp: {tdp!r} W}}}}]\n",
    )
    (tmp_path / "frozen.json").write_text(frozen_text(mine), encoding="utf-8")
    back = load_catalog(tmp_path / "frozen.json")
    assert back.digest == mine.digest
    assert (frozen_text(back) == frozen_text(mine)) is True  # a megabyte that nobody wants to see compared


def test_the_text_does_not_depend_on_how_the_folder_is_written(tmp_path: Path) -> None:
    text = "name: one\nas_of: 2026-11-20\n"
    cheap = "offers: [{provider: lambda, price_per_device: $1/h}, {provider: nebius, price_per_device: $2/h}]\n"
    other = "offers: [{provider: nebius, price_per_device: $2/h}, {provider: lambda, price_per_device: $1/h}]\n"
    one, two = extended(tmp_path / "one", text + cheap), extended(tmp_path / "two", text + "# a remark\n" + other)
    assert one.digest == two.digest
    assert frozen_text(one) == frozen_text(two)


def test_a_frozen_file_can_be_extended(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_text(frozen_text(catalog), encoding="utf-8")
    text = (
        "schema: catalog/v1\nextends: ../base.json\nas_of: 2026-11-20\ndiscounts: [{provider: aws, fraction: 10 %}]\n"
    )
    mine = load_catalog(written(tmp_path / "mine", text))
    same = extended(tmp_path / "other", "name: mine\nas_of: 2026-11-20\ndiscounts: [{provider: aws, fraction: 10 %}]\n")
    assert mine.digest == same.digest


def test_prices_of_a_day(catalog: Catalog, file: Path) -> None:
    early = load_catalog(file, prices_until="2026-10-01")
    assert 0 < len(early.offers) < len(catalog.offers)
    assert {offer.provenance.as_of <= "2026-10-01" for offer in early.offers} == {True}
    with pytest.raises(InputError, match="no-prices"):
        load_catalog(file, prices_until="2000-01-01")


def _entry(document: dict[str, Any], *path: str | int) -> Any:
    for key in path:
        document = document[key]  # type: ignore[index]
    return document


Change = Callable[[dict[str, Any]], object]
TAMPERED: list[tuple[str, Change, str, str]] = [
    ("a price", lambda d: d["offers"][7].update(price_microusd_per_hour=1), "changed-catalog", ""),
    ("free", lambda d: d["offers"][7].update(price_microusd_per_hour=0), "bad-price", "offers"),
    ("no whole price", lambda d: d["offers"][7].update(price_microusd_per_hour=1.5), "wrong-type", "offers"),
    ("a text for a price", lambda d: d["offers"][7].update(price_microusd_per_hour="1"), "wrong-type", "offers"),
    ("nobody's shape", lambda d: d["offers"][7].update(shape="aws/p9"), "unknown-shape", "offers"),
    ("a strange flag", lambda d: d["offers"][7].update(quality="good"), "unknown-value", "offers"),
    ("twice", lambda d: d["offers"].insert(8, d["offers"][7]), "duplicate-id", "offers"),
    ("no offers", lambda d: d.pop("offers"), "wrong-type", ""),
    ("no day", lambda d: d["offers"][0]["provenance"].update(as_of="2024-12,01"), "bad-date", ""),
    ("a day too late", lambda d: d["devices"]["a10"]["facts"]["tdp_w"].update(as_of="2026-02-30"), "bad-date", "a10"),
    ("a guess", lambda d: d["devices"]["a10"]["facts"]["tdp_w"].update(status="guessed"), "unknown-value", "a10"),
    ("no date at all", lambda d: d.update(as_of="soon"), "bad-date", ""),
    ("a strange key", lambda d: d.update(x=1), "wrong-type", ""),
    ("another name", lambda d: d.update(name="another"), "changed-catalog", ""),
    ("half a device", lambda d: d["devices"]["a10"].pop("kind"), "wrong-type", "a10"),
    ("no memory", lambda d: d["devices"]["a10"].update(memory_bytes=0), "out-of-range", "a10"),
    ("a renamed device", lambda d: d["devices"]["a10"].update(id="a11"), "duplicate-id", "a10"),
    ("a taken alias", lambda d: d["devices"]["a10"].update(aliases=["H100"]), "duplicate-alias", ""),
    ("a list for a device", lambda d: d["devices"].update(a10=[]), "wrong-type", "a10"),
    (
        "nobody's device",
        lambda d: d["shapes"]["aws/p5.48xlarge"].update(device="h9"),
        "unknown-device",
        "aws/p5.48xlarge",
    ),
    ("no devices", lambda d: d["shapes"]["aws/p5.48xlarge"].update(devices=0), "out-of-range", "aws/p5.48xlarge"),
    (
        "a yes for a count",
        lambda d: d["shapes"]["aws/p5.48xlarge"].update(devices=True),
        "wrong-type",
        "aws/p5.48xlarge",
    ),
    ("no pair", lambda d: d["grids"].append([["aws"], {}]), "wrong-type", ""),
]


@pytest.mark.parametrize(("what", "change", "reference", "entry"), TAMPERED, ids=[row[0] for row in TAMPERED])
def test_what_was_changed_is_refused(
    small: Path, tmp_path: Path, what: str, change: Change, reference: str, entry: str
) -> None:
    document = json.loads(small.read_text(encoding="utf-8"))
    change(document)
    sealed = _resealed(document)
    (tmp_path / "x.json").write_text(sealed, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_catalog(tmp_path / "x.json")
    problem = caught.value.problems[0]
    assert problem.reference == reference
    place = problem.places[0]
    if entry:  # the line on which it begins
        line = sealed.splitlines()[place.line - 1]
        assert f'"{entry}"' in line if entry != "offers" else line.startswith('{"confirmed_on"')


def _resealed(document: dict[str, Any]) -> str:
    """As the writer lays it out: an entry a line."""
    parts = []
    for key, value in document.items():
        rows: list[str] = []
        if isinstance(value, dict):
            rows = [f"{json.dumps(name)}: {json.dumps(item)}" for name, item in value.items()]
        elif isinstance(value, list):
            rows = [json.dumps(item, sort_keys=True) for item in value]
        ends = "{}" if isinstance(value, dict) else "[]"
        text = f"{ends[0]}\n" + ",\n".join(rows) + f"\n{ends[1]}" if rows else json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("", "bad-json"),
        ("offer,price\n", "bad-json"),
        ("[]", "wrong-schema"),
        ("{}", "wrong-schema"),
        ('{"schema": "plan/result/v1"}', "wrong-schema"),
        ('{"schema": NaN}', "bad-json"),
        ("[" * 100_000, "bad-json"),
        ('{"schema": "catalog/frozen/v1"}', "wrong-type"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, reference: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_frozen(tmp_path / "x.json")
    assert [problem.reference for problem in caught.value.problems] == [reference]
    assert caught.value.problems[0].places


def test_numbers_that_are_none(small: Path, tmp_path: Path) -> None:
    text = small.read_text(encoding="utf-8").replace('"tdp_w": 700.0', '"tdp_w": 1e999', 1)
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="wrong-type"):
        read_frozen(tmp_path / "x.json")


def test_the_catalog_yaml_stands_for_its_folder(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine", HEAD)
    assert load_catalog(folder / "catalog.yaml").digest == load_catalog(folder).digest
    assert offers_of(load_catalog(folder))
