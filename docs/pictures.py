"""The README's pictures: the report of two shipped scenarios as chromium shows it, light and dark.

    python docs/pictures.py [--plans DIR]

writes docs/pictures/*.png and docs/pictures/gallery/*.svg. Plans are read from DIR (as `plan solve --out
DIR/NAME.plan.json` writes them) where they are there, else solved. Needs playwright (a test dependency) and a chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from planner import api
from planner.answers.plan_answer import Plan
from planner.report.html.pages import render_page

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, MOST_BYTES = 1200, 200_000
# name of the picture, scenario, what is shown: the top of the page, or one part of it
SHOWN = (
    ("report", "llama", None),
    ("memory", "llama", "#memory figure"),
    ("tradeoff", "llama", "#tradeoff figure"),
    ("schedule", "portfolio", "#timeline figure"),
    ("months", "portfolio", "#cost figure"),
)
GALLERY = PICTURES / "gallery"
# scenario and what is drawn of its plan, for docs/gallery.md
DRAWN = (
    ("llama", "deadline"),
    ("chat-fleet", "latency"),
    ("gpt2-xl", "memory"),
    ("old-cards", "schedule"),
    ("portfolio", "schedule"),
    ("tpu", "memory"),
)
TOP = 720  # of the page: the decision with its reasons and warnings [px]
AROUND = 18  # of a part, so that it does not stand at the edge [px]


def plan_of(name: str, plans: Path | None) -> dict[str, Any]:
    """The plan of a shipped scenario, read or solved."""
    saved = plans / f"{name}.plan.json" if plans else None
    if saved and saved.exists():
        plan: dict[str, Any] = json.loads(saved.read_text(encoding="utf-8"))
        return plan
    return api.solve(api.load_scenario(f"scenarios/{name}.yaml")).document


def pages_in(folder: Path, plans: Path | None) -> dict[str, Path]:
    """The reports as files."""
    pages = {}
    for name in dict.fromkeys(scenario for _, scenario, _ in SHOWN):
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(render_page(api.report(plan_of(name, plans))).text, encoding="utf-8")
    return pages


def draw(plans: Path | None) -> None:
    """The drawings of the gallery; no browser is needed for them."""
    GALLERY.mkdir(exist_ok=True)
    for name, plot in DRAWN:
        plan = Plan(document=plan_of(name, plans))  # type: ignore[arg-type]
        plan.plot(plot).write(GALLERY / f"{name}.svg")


def take(pages: dict[str, Path]) -> None:
    """Every picture in light and dark; none may be too large for a README."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    program = os.environ.get("PLAN_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, offline=True)
            for name, scenario, part in SHOWN:
                page = context.new_page()
                page.goto(pages[scenario].as_uri())
                path = PICTURES / f"{name}-{scheme}.png"
                page.screenshot(path=path, full_page=True, clip=clip_of(page, part))
                page.close()
                size = path.stat().st_size
                print(f"{path.relative_to(ROOT)}  {size / 1000:.0f} kB")
                assert size <= MOST_BYTES, f"{path} is larger than {MOST_BYTES} bytes"
        browser.close()


def clip_of(page: Any, part: str | None) -> dict[str, float]:
    """What is shown, on the whole page."""
    if part is None:
        return {"x": 0, "y": 0, "width": WIDTH, "height": TOP}
    box = page.locator(part).first.bounding_box()
    inside = {"width": box["width"] + 2 * AROUND, "height": box["height"] + 2 * AROUND}
    return {"x": box["x"] - AROUND, "y": box["y"] - AROUND, **inside}


def main() -> None:
    """Make them all."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plans", type=Path, metavar="DIR", help="folder of plan files")
    given = arguments.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        draw(given.plans)
        take(pages_in(Path(folder), given.plans))


if __name__ == "__main__":
    main()
