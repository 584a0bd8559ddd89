"""Catalogs, price files and frozen files with random damage: read, or refused with places; never a traceback."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.catalog.check import check_catalog
from planner.catalog.frozen import digest_of, frozen_text
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.catalog.own_prices import with_price_file
from planner.errors import PlanError, Problem
from tests.catalog.extending import written

EXTENDING = """schema: catalog/v1
extends: ../base.json
as_of: 2026-11-21
offers:
  - {offer: "aws:use1-az3:p5.48xlarge:*", price_per_shape: $15/h, source: "contract"}
  - {provider: aws, flag: suspect, because: sold out}
  - {provider: aws, price_model: block, remove: true}
discounts:
  - {provider: aws, device: h100-*, region: us-*, price_model: on_demand, fraction: 20 %}
devices:
  - {id: h100-sxm-80gb, power: {tdp: 650 W}, links: {scale_up: {one_way_all: 400 GB/s}}, source: "x"}
  - {id: a10, remove: true}
shapes:
  - {id: aws/p5.48xlarge, max_shapes_per_job: 16, network: 100 Gbit/s}
"""
PRICES = (
    "offer,price_usd_per_hour_per_shape,as_of\n"
    "aws:use1-az3:p5.48xlarge:on_demand,31.50,2026-11-18\n"
    "aws:use1-az3:p5.48xlarge:spot,12.50,2026-11-18\n"
)
SNIPPETS = (
    "[",
    "{",
    ": ",
    "-1",
    "null",
    "1e999",
    "1e5000",
    "nan",
    '"',
    "'",
    "&a ",
    "*a",
    "true",
    "0",
    "9" * 5000,
    "\n",
    "- ",
)


@pytest.fixture(scope="module")
def few(catalog: Catalog) -> Catalog:
    """Two devices, one shape and its offers."""
    shapes = {"aws/p5.48xlarge": catalog.shapes["aws/p5.48xlarge"]}
    small = dataclasses.replace(
        catalog,
        devices={name: catalog.devices[name] for name in ("a10", "h100-sxm-80gb")},
        shapes=shapes,
        offers=tuple(offer for offer in catalog.offers if offer.shape in shapes),
    )
    return dataclasses.replace(small, digest=digest_of(small))


def damaged(text: str, chance: random.Random) -> bytes:
    """A text with one or two bytes or pieces changed, taken out, put in or repeated."""
    data = bytearray(text.encode())
    for _ in range(chance.choice((1, 1, 1, 2))):
        at, kind = chance.randrange(len(data)), chance.randrange(4)
        if kind == 0:
            data[at] = chance.choice((*range(32, 127), chance.randrange(256)))
        elif kind == 1:
            del data[at : at + chance.randint(1, 12)]
        elif kind == 2:
            data[at:at] = chance.choice(SNIPPETS).encode()
        else:
            start = chance.randrange(len(data))
            data[at:at] = data[start : start + 20]
    return bytes(data)


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_told_or_harmless(few: Catalog, tmp_path: Path, seed: int) -> None:
    chance, outcomes = random.Random(seed), [0, 0]
    (tmp_path / "base.json").write_text(frozen_text(few), encoding="utf-8")
    folder = written(tmp_path / "mine", EXTENDING)
    assert with_price_file(load_catalog(folder), _file(tmp_path / "p.csv", PRICES.encode())).offers
    light = dataclasses.replace(few, training_families={}, serving=None)
    frozen = frozen_text(dataclasses.replace(light, digest=digest_of(light)))
    for _ in range(80):
        outcomes[_told(lambda: load_catalog(_file(folder / "catalog.yaml", damaged(EXTENDING, chance)).parent))] += 1
        outcomes[_told(lambda: with_price_file(few, _file(tmp_path / "p.csv", damaged(PRICES, chance))))] += 1
        outcomes[_told(lambda: load_catalog(_file(tmp_path / "x.json", damaged(frozen, chance))))] += 1
    assert min(outcomes) > 0


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _told(read: Callable[[], Catalog]) -> bool:
    """Whether reading ends with an error for people, in a place; everything else is a catalog that can be checked."""
    problems: tuple[Problem, ...] = ()
    try:
        check_catalog(read())
    except PlanError as error:
        problems = error.problems
    assert all(problem.places for problem in problems), problems
    return bool(problems)
