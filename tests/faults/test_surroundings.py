"""What is around a run: no network, another locale, time zone, width or home directory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from planner import api

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "gpt2-xl.yaml"
SURROUNDINGS = (
    {"LC_ALL": "C", "TZ": "Pacific/Kiritimati", "COLUMNS": "20"},
    {"LC_ALL": "tr_TR.UTF-8", "TZ": "Etc/GMT+12", "COLUMNS": "400", "HOME": "/nonexistent"},
)


def solved(surroundings: dict[str, str], folder: Path) -> bytes:
    command = [sys.executable, "-m", "planner.cli.main", "solve", str(SCENARIO), "-o", "json", "--out", "-"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **surroundings}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True).stdout


def test_the_surroundings_are_not_in_a_plan(tmp_path: Path) -> None:
    first, *others = (solved(around, tmp_path) for around in SURROUNDINGS)
    assert first.startswith(b"{")
    assert others == [first] * len(others)


def test_nothing_is_sent_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way from the planner's process into the network is closed; its solver process is fed through pipes."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was asked for something")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("127.0.0.1", 9))
    assert api.solve(api.load_scenario(SCENARIO)).status == "optimal"
