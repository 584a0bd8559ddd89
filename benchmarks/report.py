"""Seconds that the page of a report takes beyond the solve, and its bytes, for every shipped scenario.

    python benchmarks/report.py [--plans DIR] [NAME ...]

Plans are read from DIR where they are there (as `plan solve --out DIR/NAME.plan.json` writes them), else solved first;
the solve is not counted. The bars are those of the project: 3 seconds and 1.5 MB for the largest.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from planner import api
from planner.report.html.pages import render_page
from planner.report.workbook import workbook

ROOT = Path(__file__).parents[1]
SECONDS, BYTES = 3.0, 1_500_000


def plan_of(name: str, plans: Path | None) -> dict[str, Any]:
    """A plan of a shipped scenario, read or solved."""
    saved = plans / f"{name}.plan.json" if plans else None
    if saved and saved.exists():
        plan: dict[str, Any] = json.loads(saved.read_text(encoding="utf-8"))
        return plan
    return api.solve(api.load_scenario(ROOT / "scenarios" / f"{name}.yaml")).document


def measured(name: str, plans: Path | None) -> tuple[float, float, int, float, int]:
    """CPU seconds of the report document (trade-offs, budget, trace), of the page, its bytes; the workbook's."""
    plan = plan_of(name, plans)
    scenario = api.load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    catalog = api.catalog_of(scenario)
    begun = time.process_time()
    report = api.report(plan, catalog, scenario=scenario)
    made = time.process_time()
    page = render_page(report).text.encode()
    drawn = time.process_time()
    book = workbook(report)
    return made - begun, drawn - made, len(page), time.process_time() - drawn, len(book)


def main() -> None:
    """Print a line a scenario, and whether the bars hold."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--plans", type=Path, metavar="DIR", help="folder of plan files")
    arguments.add_argument("names", nargs="*", metavar="NAME", help="scenarios; default: all that ship")
    given = arguments.parse_args()
    names = given.names or sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
    print(f"{'scenario':<16}{'document s':>12}{'page s':>9}{'page MB':>9}{'workbook s':>12}{'workbook kB':>13}")
    worst = 0.0, 0
    for name in names:
        document_s, page_s, size, book_s, book = measured(name, given.plans)
        print(
            f"{name:<16}{document_s:>12.2f}{page_s:>9.2f}{size / 1e6:>9.2f}{book_s:>12.2f}{book / 1e3:>13.0f}",
            flush=True,
        )
        worst = max(worst[0], document_s + page_s), max(worst[1], size)
    verdict = "hold" if worst[0] <= SECONDS and worst[1] <= BYTES else "do NOT hold"
    bars = f"the bars of {SECONDS:g} s and {BYTES / 1e6:g} MB {verdict}"
    print(f"most: {worst[0]:.2f} s of CPU and {worst[1] / 1e6:.2f} MB; {bars}")


if __name__ == "__main__":
    main()
