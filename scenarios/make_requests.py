"""Writes requests.csv, the trace of trace.yaml: a day of coding agents that nobody had, the same bytes each time.

    python scenarios/make_requests.py [FILE]

The rate follows the hours of an office day; gaps are hyperexponential (squared variation 2: users come
in spells); prompts and answers are log-normal, with means of 16,000 and 600 tokens. Nothing is
measured: the figures are round ones.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

SEED = 20261102
REQUESTS = 2600
# relative load of the 24 hours
HOURS = (2, 1, 1, 1, 1, 2, 4, 7, 11, 14, 15, 14, 12, 13, 15, 15, 14, 12, 9, 8, 7, 6, 4, 3)
PROMPT, ANSWER = (16_000, 0.6), (600, 0.7)  # mean in tokens, spread of the logarithm
# gaps: a mixture of two exponentials with balanced means and a squared variation of 2
OFTEN = (1 + math.sqrt(1 / 3)) / 2


def gap(draw: random.Random) -> float:
    """A gap with mean 1."""
    share = OFTEN if draw.random() < OFTEN else 1 - OFTEN
    return -math.log(1 - draw.random()) / (2 * share)


def length(draw: random.Random, mean: float, sigma: float) -> int:
    """A log-normal length, at least 1; Box and Muller, as library versions draw normals differently."""
    normal = math.sqrt(-2 * math.log(1 - draw.random())) * math.cos(2 * math.pi * draw.random())
    return max(1, round(mean * math.exp(sigma * normal - sigma**2 / 2)))


def clock(operational: float) -> float:
    """Seconds of the day at which a share of its requests, 0 to 1, has come."""
    left = operational * sum(HOURS)
    for hour, load in enumerate(HOURS):
        if left <= load:
            return (hour + left / load) * 3600
        left -= load
    return 24 * 3600.0


def rows() -> list[str]:
    """The lines of the trace."""
    draw = random.Random(SEED)
    gaps = [gap(draw) for _ in range(REQUESTS + 1)]
    whole, passed, lines = sum(gaps), 0.0, ["timestamp,input_tokens,output_tokens"]
    for each in gaps[:-1]:
        passed += each
        seconds = clock(passed / whole)
        minute, hour = int(seconds // 60) % 60, int(seconds // 3600)
        stamp = f"2026-11-02T{hour:02}:{minute:02}:{math.floor(seconds % 60 * 10) / 10:04.1f}Z"
        lines.append(f"{stamp},{length(draw, *PROMPT)},{length(draw, *ANSWER)}")
    return lines


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("requests.csv")
    target.write_text("\n".join(rows()) + "\n", encoding="utf-8")
