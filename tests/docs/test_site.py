"""`make site`: the pages build without a warning, with every page in the contents and an API reference."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import planner

ROOT = Path(__file__).parents[2]
NEEDED = ("sphinx", "myst_parser", "furo")


@pytest.mark.campaign
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"no {', '.join(absent)} here: pip install -e '.[docs]'")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        str(tmp_path / "doctrees"),
    ]
    built = subprocess.run(
        [*command, "-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "site")],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    api = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert [name for name in planner.__all__ if name != "__version__" and f'id="planner.{name}"' not in api] == []
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.html")}
    assert pages <= made


def test_every_page_is_in_the_contents_or_below_one_that_is() -> None:
    text = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    named = [page for page in pages if page.parent.name not in ("model", "decisions") and page.name != "index.md"]
    assert [str(page) for page in named if f"{page.with_suffix('')}\n" not in text.replace('"""', "\n")] == []
