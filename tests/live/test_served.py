"""`plan live` as it runs: answers, hostile requests over the wire, a second instance, an end that leaves nothing."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.conftest import Served, served
from tests.tiers import cases


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def answer_of(it: Served, **body: object) -> dict:
    """The answer itself, after the best plan so far where that is told."""
    return next(line for line in lines(it.ask("ask", body)[1]) if line.get("last"))


def test_a_question_is_answered_line_by_line(small: Served) -> None:
    status, text = small.ask("ask", {"changes": {"training.gpt2-xl.deadline": "60 days"}, "before": {}})
    assert status == 200
    *_, answer, traded = lines(text)  # on a busy machine the best plan so far comes before
    assert (answer["kind"], answer["last"], answer["proven"], answer["badge"]) == ("answer", True, True, "proven")
    assert answer["command"] == "plan solve gpt2-xl --set 'training.gpt2-xl.deadline=60 days'"
    assert answer["total"].startswith("$")
    assert "<svg" in answer["html"]
    assert traded["kind"] == "traded"
    assert "<svg" in traded["html"]


def test_what_cannot_be_read_is_told_in_the_words_of_the_command_line(small: Served) -> None:
    (line,) = lines(small.ask("ask", {"changes": {"training.gpt2-xl.deadline": "3 das"}})[1])
    assert line["kind"] == "refused"
    words = "'3 das' has an unknown unit; 'deadline' wants a time\nhint: units of time are"
    assert line["wrong"]["training.gpt2-xl.deadline"].startswith(words)


def test_changes_since_the_last_answer_and_the_start(small: Served) -> None:
    small.ask("ask", {"changes": {}})
    first = {"training.gpt2-xl.deadline": "30 days"}
    start = answer_of(small, changes=first, before={})["html"]
    assert "Since the start" in start
    assert "Since the last answer" not in start
    again = answer_of(small, changes={**first, "price": "+10%"}, before=first)["html"]
    assert "Since the last answer" in again
    assert re.search(r"\(\+10(\.0)? %\)", again)  # but for the last micro-dollar


def test_hostile_texts_stay_text(small: Served) -> None:
    hostile = "<img src=x onerror=alert(1)>\x1b[31m"
    for changes in ({"training.gpt2-xl.deadline": hostile}, {hostile: hostile}, {"title": hostile}):
        for line in lines(small.ask("ask", {"changes": changes})[1]):
            assert "<img" not in line.get("html", "")
            assert "\x1b" not in json.dumps(line, ensure_ascii=False)


def over_the_wire(it: Served, data: bytes) -> bytes:
    """What comes back before the other side hangs up, or says nothing more for a moment."""
    found = b""
    with socket.create_connection(("127.0.0.1", it.port), timeout=5) as wire:
        try:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            while part := wire.recv(65_536):
                found += part
        except OSError:
            pass
    return found


def requests(it: Served, choice: random.Random) -> bytes:
    """One that must be refused."""
    root, host = it.root.encode(), f"127.0.0.1:{it.port}".encode()
    noise = choice.randbytes(choice.randrange(1, 400))
    name = choice.choice([b"example.com", b"127.0.0.1:1", b"localhost", b"[::1]", noise.hex().encode()])
    kinds: list[Callable[[], bytes]] = [
        lambda: noise,
        lambda: b"GET " + root + b" HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n",
        lambda: b"GET " + root + b" HTTP/1.1\r\n\r\n",
        lambda: b"GET /" + noise.hex().encode() + b"/ HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n",
        lambda: b"GET " + root + b" HTTP/1.1\r\nHost: " + host + b"\r\nOrigin: http://" + name + b"\r\n"
        b"Connection: close\r\n\r\n",
        lambda: b"GET " + root + b"x" * choice.choice([1, 20_000, 70_000]) + b" HTTP/1.1\r\nHost: " + host
        + b"\r\nConnection: close\r\n\r\n",
        lambda: b"GET " + root + b" HTTP/1.1\r\nHost: " + host + b"\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        lambda: b"POST " + root + b"ask HTTP/1.1\r\nHost: " + host + b"\r\nContent-Type: application/json\r\n"
        b"Content-Length: 15\r\nConnection: close\r\n\r\n" + b'{"changes": {}}',
        lambda: posted(root, host, b"Content-Length: " + choice.choice([b"-1", b"x", b"9" * 30]) + b"\r\n", b""),
        lambda: posted(root, host, b"Content-Length: %d\r\n" % len(noise), noise),
        lambda: posted(root, host, b"Transfer-Encoding: chunked\r\n", b"ZZ\r\n" + noise),
        lambda: posted(root, host, b"Content-Length: 300000\r\n", b"[" * 300_000),
        lambda: b"\x00" * choice.randrange(1, 9) + b" / HTTP/9.9\r\n\r\n",
        lambda: b"GET http://" + name + b"/ HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n",
    ]  # fmt: skip
    return choice.choice(kinds)()


def posted(root: bytes, host: bytes, head: bytes, body: bytes) -> bytes:
    lines_ = [b"POST " + root + b"ask HTTP/1.1", b"Host: " + host, b"Origin: http://" + host]
    return b"\r\n".join([*lines_, b"Content-Type: application/json", b"Connection: close", head]) + b"\r\n" + body


def test_hostile_requests_are_refused_without_a_word_on_the_terminal(small: Served) -> None:
    before = (small.folder / "stderr").read_text()
    choice = random.Random(21)
    for _ in range(cases(60, 1_000)):
        asked = requests(small, choice)
        found = over_the_wire(small, asked)
        status = found.split(b" ")[1] if b" " in found else b""
        assert status in (b"", b"400", b"403", b"404", b"405", b"413", b"415", b"421", b"431"), (asked[:300], found)
        assert b"Traceback" not in found
    assert (small.folder / "stderr").read_text() == before
    assert answer_of(small, changes={})["proven"]


def test_a_second_one_takes_another_port_and_both_end_with_nothing_left(small: Served, tmp_path: Path) -> None:
    places = Path(tempfile.gettempdir())
    for number in (signal.SIGINT, signal.SIGTERM)[: cases(1, 2)]:
        with served(tmp_path, "gpt2-xl", "--set", "training.gpt2-xl.deadline=60 days") as other:
            assert other.port != small.port
            assert other.root != small.root
            answer = answer_of(other, changes={})
            assert answer["command"] == "plan solve gpt2-xl --set 'training.gpt2-xl.deadline=60 days'"
            mine = list(places.glob(f"plan-solver-{other.process.pid}-*"))
            os.kill(other.process.pid, number)
            assert other.process.wait(20) == 0
            assert not [path for path in mine if path.exists()]
            assert [path.name for path in tmp_path.iterdir()] == ["stderr"]
            assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_a_port_that_is_taken_is_said(small: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from planner.errors import OutputError
    from planner.live.server import bound

    with pytest.raises(OutputError, match=f"port {small.port} of this machine"):
        bound(small.port)
