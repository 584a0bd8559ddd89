"""Server and desk in one process: what is asked in one thread is answered in the other, until a page hangs up."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.cli.interrupts import on_time
from planner.live.answer import Views
from planner.live.desk import Answer, Desk
from planner.live.server import ADDRESS, App, Guard, bound, listening

pytestmark = pytest.mark.usefixtures("extra")
DEADLINE = "training.gpt2-xl.deadline"
Asked = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def extra() -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[live]'")


def talked(desk: Desk, talk: Callable[[Asked, Callable[[], HTTPConnection]], None]) -> list[Exception]:
    """Have a page talk to a desk, then end it; what the server calls bugs."""
    place, bugs, failed = bound(None), list[Exception](), list[BaseException]()
    port = place.getsockname()[1]
    app = App(desk, Views(desk.start.scenario, ["v100-sxm3-32gb"], "x.yaml"), Guard(port, "token"), bugs.append)

    def connected() -> HTTPConnection:
        return HTTPConnection(ADDRESS, port, timeout=60)

    def asked(path: str, **body: Any) -> list[dict[str, Any]]:
        headers = {"Origin": f"http://{ADDRESS}:{port}", "Content-Type": "application/json"}
        connection = connected()
        connection.request("POST", f"/token/{path}", json.dumps(body), headers)
        text = connection.getresponse().read().decode()
        connection.close()
        return [json.loads(line) for line in text.splitlines()]

    def page() -> None:
        try:
            talk(asked, connected)
        except BaseException as error:
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    with place, listening(app, place):
        threading.Thread(target=page, daemon=True).start()
        desk.run()
    if failed:
        raise failed[0]
    return bugs


def test_answers_refusals_and_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heard: dict[str, list[dict[str, Any]]] = {}

    def talk(asked: Asked, connected: Callable[[], HTTPConnection]) -> None:
        heard["start"] = asked("ask", changes={})
        heard["first"] = asked("ask", changes={DEADLINE: "30 days"}, before={})
        heard["second"] = asked("ask", changes={DEADLINE: "30 days", "price": "+10%"}, before={DEADLINE: "30 days"})
        heard["lost"] = asked("ask", changes={"price": "+10%"}, before={"price": "cheap"})
        heard["wrong"] = asked("ask", changes={DEADLINE: "soon"}, before={})
        heard["saved"] = asked("save", changes={DEADLINE: "30 days"}, name="mine")
        heard["again"] = asked("save", changes={DEADLINE: "30 days"}, name="mine")

    assert talked(Desk(api.session("gpt2-xl"), on_time), talk) == []
    assert [line["kind"] for line in heard["start"]][-2:] == ["answer", "traded"]
    answers = {name: [line for line in lines if line.get("last")] for name, lines in heard.items()}
    assert "Since" not in answers["start"][0]["html"]
    assert "Since the start" in answers["first"][0]["html"]
    assert "Since the last answer" in answers["second"][0]["html"]
    assert "Since the last answer" not in answers["lost"][0]["html"]
    assert list(heard["wrong"][0]["wrong"]) == [DEADLINE]
    assert heard["saved"] == [{"kind": "saved", "text": "wrote mine.yaml: plan solve mine.yaml"}]
    assert heard["again"][0]["kind"] == "refused"


def test_a_page_that_hangs_up_gives_up_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(api.session("gpt2-xl"), on_time)
    begun, real, heard = threading.Event(), desk._tradeoffs, list[dict[str, Any]]()

    def once_endless(*given: Any) -> Any:
        if begun.is_set():
            return real(*given)
        begun.set()
        while True:
            threading.Event().wait(0.01)

    monkeypatch.setattr(desk, "_tradeoffs", once_endless)

    def talk(asked: Asked, connected: Callable[[], HTTPConnection]) -> None:
        connection = connected()
        headers = {"Origin": f"http://{ADDRESS}:{connection.port}", "Content-Type": "application/json"}
        connection.request("POST", "/token/ask", '{"changes": {}}', headers)
        assert begun.wait(30)
        connection.close()
        assert connection.sock is None
        heard.extend(asked("ask", changes={DEADLINE: "30 days"}))

    assert talked(desk, talk) == []
    assert [line["kind"] for line in heard][-2:] == ["answer", "traded"]


def test_bugs_are_told_here_and_there(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, heard = Desk(api.session("gpt2-xl"), on_time), list[dict[str, Any]]()
    monkeypatch.setattr(desk, "_answered", lambda *_: 1 / 0)
    monkeypatch.setattr(Answer, "proven", property(lambda self: 1 / 0))
    bugs = talked(desk, lambda asked, _: heard.extend(asked("ask", changes={})))
    assert [type(one) for one in bugs] == [ZeroDivisionError]
    assert heard == [{"kind": "failed", "text": "This is a bug in plan; the terminal says more."}]
