"""Where the generator of pages lives, and what the pages are."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(DOCS / "generate"))
