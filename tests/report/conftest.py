"""Plans to report on, and goldens to hold views against."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Document = dict[str, Any]


def plan_named(name: str) -> Document:
    """A sample of tests/cli, or of this folder: portfolio is a calendar with contracts, blocks and copies of data."""
    own = HERE / "samples" / f"{name}.json"
    file = own if own.exists() else ROOT / "tests" / "cli" / "samples" / f"{name}.json"
    document: Document = json.loads(file.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="session")
def shipped() -> Catalog:
    return api.load_catalog()


@pytest.fixture
def sample() -> Any:
    return plan_named


@pytest.fixture
def golden() -> Any:
    """`golden(name, text)`: compare with golden/NAME; PLAN_UPDATE_GOLDEN=1 writes it anew."""

    def check(name: str, text: str) -> None:
        path = HERE / "golden" / name
        if os.environ.get("PLAN_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return check


@pytest.fixture(autouse=True)
def asked_again(listed_once: None) -> None:
    """Commands share the ways that they list."""
