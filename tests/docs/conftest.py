"""Where the generator of pages lives, and what the pages are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "generate"))


@pytest.fixture(autouse=True)
def asked_again(listed_once: None) -> None:
    """Commands share the ways that they list."""
