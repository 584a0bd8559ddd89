"""The errors that the README quotes: chosen rows of docs/validation.md, as they stand there now."""

from __future__ import annotations

import re
from pathlib import Path

from markup import table

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- made by `make docs` from docs/validation.md -->", "<!-- until here -->"

_REACHED = {"yes": "reached", "NO": "**not reached**"}

# rows of the two tables of figures -> what the README calls them
QUOTED = {
    "band coverage without the source, pooled": "steps within the p10 to p90 band, source left out of the fit",
    "band coverage without the device, pooled": "steps within the p10 to p90 band, device left out of the fit",
    "A100 dense 16-bit, median": "step time, A100, 16 bits, source left out, median",
    "Hopper dense 16-bit, mean": "step time, Hopper, 16 bits, source left out, mean",
    "Hopper dense fp8, mean": "step time, Hopper, fp8, source left out, mean",
    "Blackwell dense 16-bit, mean": "step time, Blackwell, 16 bits, source left out, mean",
    "mixtures of experts, mean": "step time, mixtures of experts, source left out, mean",
    "TPU dense 16-bit, mean": "step time, TPU, 16 bits, source left out, mean",
    "LoRA, QLoRA and full fine-tuning, mean": "step time of fine-tuning, source left out, mean",
    "peak memory allocated, pre-training, mean": "peak memory of pre-training, allocated, mean",
    "peak memory of LoRA, QLoRA and full fine-tuning, mean": "peak memory of fine-tuning, mean",
    "whole runs, analytic tier, mean of \\|ln\\|": "device-hours of whole published runs, mean",
    "whole runs, rule tier, mean of \\|ln\\|": "the same by the rule of thumb, mean",
    "TPOT in its band, without the campaign": "serving: times per token within p10 to p90, campaign left out",
    "TTFT in its band, without the campaign": "serving: times to the first token within p10 to p90, campaign left out",
    "throughput in its band, without the campaign": "serving: throughputs within p10 to p90, campaign left out",
    "TPOT, closed loop, median": "serving: time per token, campaign left out, median",
    "TTFT, closed loop within memory, median": "serving: time to the first token, campaign left out, median",
    "throughput, offline tables, median": "serving: throughput, campaign left out, median",
}


def readme_part() -> dict[str, str]:
    """The README with its table of errors made anew."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"README.md has no part between {BEGIN} and {END}")
    return {"../README.md": f"{before}{BEGIN}\n\n{errors_table()}\n\n{END}{after}"}


def errors_table() -> str:
    """What was measured, on how many rows, beside the goal that was set."""
    found = _figures((ROOT / "docs" / "validation.md").read_text(encoding="utf-8"))
    missing = set(QUOTED) - set(found)
    if missing:
        raise ValueError(f"docs/validation.md has no row {sorted(missing)}")
    rows = []
    for name, words in QUOTED.items():
        number, measured, goal, reached = found[name]
        rows.append([words, number, measured, f"{goal}, {_REACHED.get(reached, reached)}"])
    return table(("", "Published rows", "Error", "Goal"), rows)


def _figures(text: str) -> dict[str, list[str]]:
    """Name of a figure -> number of rows, measured, goal, whether it is reached."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") >= 6]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
    return {row[0]: row[1:5] for row in reversed(cells)}
