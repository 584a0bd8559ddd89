"""Sliders of the live page, moved at random in a real browser: how long answers take, and whether they hold."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from planner import api
from planner.live.answer import total_of
from planner.report import plan_formats
from planner.report import screen_words as said

LONGEST_MS = 120_000  # that an answer may take
# what is called current is of the controls as they are: looked at whenever the page changes what it says of itself
WATCH = """() => {
  const answer = document.getElementById("answer");
  window.stale = [];
  const of = () => JSON.stringify([...new URLSearchParams(location.hash.slice(1))].sort()
    .map(([path, value]) => [path, path === "hardware.deny" ? JSON.parse(value) : value]));
  window.look = () => {
    if (answer.dataset.now === "current" && answer.dataset.of !== of()) window.stale.push([answer.dataset.of, of()]);
  };
  new MutationObserver(window.look).observe(answer, {attributes: true, subtree: true, childList: true});
}"""
MOVE = """(slider, share) => {
  const steps = Math.round((slider.max - slider.min) / slider.step);
  slider.value = Number(slider.min) + Math.round(share * steps) * Number(slider.step);
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  window.look();
}"""
SHOWN = """() => ({
  took_ms: Number(document.getElementById("answer").dataset.took),
  proven: document.getElementById("answer").dataset.proven,
  command: document.getElementById("command").textContent, total: document.getElementById("total").textContent,
  decision: document.querySelector("#told .decision").textContent,
  cards: [...document.querySelectorAll("#answer .cards li")].map((one) => one.textContent.replace(/\\s+/g, " ").trim()),
})"""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One answer as the page shows it."""

    took_ms: float  # from the change of the slider
    cpu_ms: float  # of the process that serves, in that time
    proven: str
    command: str
    total: str
    decision: str
    cards: list[str]


def settle(page: Any) -> None:
    """Wait for the answer to what is asked."""
    page.wait_for_selector("#answer[data-now=current]", timeout=LONGEST_MS)


def moves(page: Any, count: int, seed: int, cpu_s: Callable[[], float] = time.process_time) -> Iterator[Shown]:
    """Answers after so many moves; before each some others that are not waited for."""
    choice = random.Random(seed)
    sliders = page.locator("#knobs input[type=range]")
    for _ in range(count):
        for _ in range(choice.choice([0, 0, 1, 3])):
            sliders.nth(choice.randrange(sliders.count())).evaluate(MOVE, choice.random())
            page.wait_for_timeout(choice.choice([0, 20, 200, 500]))
        before, began_s = page.url, cpu_s()
        while page.url == before:
            sliders.nth(choice.randrange(sliders.count())).evaluate(MOVE, choice.random())
        settle(page)
        yield Shown(cpu_ms=1e3 * (cpu_s() - began_s), **page.evaluate(SHOWN))


def stale(page: Any) -> list[Any]:
    """What was called current and was not."""
    found: list[Any] = page.evaluate("window.stale")
    return found


def settings(shown: Shown) -> tuple[str, ...]:
    """The --set texts of an answer."""
    words = shlex.split(shown.command)
    return tuple(words[at + 1] for at, word in enumerate(words) if word == "--set")


def differences(shown: Shown) -> list[str]:
    """Where an answer that is called proven is not that of `plan solve` with the same options, each solved anew."""
    document = api.solve(api.load_scenario(shlex.split(shown.command)[2], settings=settings(shown))).document
    cards = [
        " ".join(filter(None, [cells[0], cells[3], f"{cells[1]} · {cells[2]}" if cells[2] else cells[1], *lines]))
        for cells, lines in plan_formats.workload_cards(document).rows
    ]
    pairs = {
        "status": (
            shown.proven == "yes",
            document["certificate"] is not None and document["summary"]["gap"] in (0, None),
        ),
        "total": (shown.total, total_of(document)),
        "decision": (shown.decision, said.decided(document)),
        "cards": (shown.cards, [" ".join(card.split()) for card in cards]),
    }
    return [f"{shown.command}: {name} {one} is {other}" for name, (one, other) in pairs.items() if one != other]
