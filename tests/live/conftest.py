"""A desk with questions put to it, and the page served by a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from planner.errors import PlanError
from planner.live.desk import Answer

ROOT = Path(__file__).parents[2]
START_S = 60


@dataclass
class Heard:
    """A listener that keeps what it is told, and calls back."""

    answers: list[Answer] = field(default_factory=list)
    mended_: list[Answer] = field(default_factory=list)
    traded_: list[Any] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    ends: int = 0
    then: Callable[[], None] = lambda: None

    def answered(self, answer: Answer) -> None:
        self.answers.append(answer)

    def traded(self, answer: Answer, tradeoffs: list[Any]) -> None:
        self.traded_ = tradeoffs

    def mended(self, answer: Answer) -> None:
        self.mended_.append(answer)

    def refused(self, error: PlanError) -> None:
        self.errors.append(error)

    def failed(self, error: Exception) -> None:
        self.errors.append(error)

    def done(self) -> None:
        self.ends += 1
        self.then()


@dataclass
class Served:
    """A `plan live` that runs."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def port(self) -> int:
        return int(self.address.split("/")[2].split(":")[1])

    @property
    def origin(self) -> str:
        return self.address.rsplit("/", 2)[0]

    @property
    def root(self) -> str:
        """The path of the page."""
        return self.address.removeprefix(self.origin)

    def ask(self, path: str, body: Any) -> tuple[int, str]:
        """As the page asks."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        headers = {"Origin": self.origin, "Content-Type": "application/json"}
        connection.request("POST", self.root + path, json.dumps(body), headers)
        response = connection.getresponse()
        found = response.status, response.read().decode()
        connection.close()
        return found


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[live]'")
    command = [sys.executable, "-m", "planner.cli.main", "live", *arguments]
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), (folder / "stderr").read_text()
        yield Served(process, address, folder)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(START_S)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A page of a scenario that is answered at once."""
    with served(tmp_path_factory.mktemp("live"), "gpt2-xl") as it:
        yield it
