"""`plan live` before it serves anything: without its extra, with a port that is taken, a wrong scenario."""

from __future__ import annotations

import importlib.util

import pytest

from planner.live.desk import Desk
from planner.live.server import bound
from tests.cli.conftest import Run


def test_without_the_extra_a_line_says_how_to_install_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    answer = run("live", "gpt2-xl")
    assert answer.code == 2
    assert answer.err == (
        "error[not-installed] plan live needs uvicorn, which is not installed\n"
        "hint: pip install 'llm-capacity-planner[live]'\n"
    )


@pytest.fixture
def extra() -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[live]'")


@pytest.mark.usefixtures("extra")
def test_a_port_that_is_taken(run: Run) -> None:
    place = bound(None)
    port = place.getsockname()[1]
    answer = run("live", "gpt2-xl", "--port", str(port))
    place.close()
    assert answer.code == 8
    assert f"port {port} of this machine cannot be listened at" in answer.err


@pytest.mark.usefixtures("extra")
def test_a_wrong_scenario_is_said_and_nothing_is_served(run: Run) -> None:
    answer = run("live", "gpt2-xl", "--set", "training.gpt2-xl.deadline=soon")
    assert answer.code == 3
    assert answer.out == ""


@pytest.mark.usefixtures("extra")
def test_the_address_alone_stands_on_stdout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Desk, "run", lambda self: None)
    addresses = [run("live", "gpt2-xl", "-q").out for _ in range(2)]
    for address in addresses:
        scheme, _, host, token, rest = address.strip().split("/")
        assert (scheme, host.split(":")[0], rest) == ("http:", "127.0.0.1", "")
        assert len(token) == 32
    assert len(set(addresses)) == 2
