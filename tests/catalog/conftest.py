from __future__ import annotations

import pytest

from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()
