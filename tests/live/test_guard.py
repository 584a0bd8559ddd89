"""Who is let in: the page itself, from its own address, with its token; the rest is refused in words."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from planner import api
from planner.cli.interrupts import on_time
from planner.live.answer import Views
from planner.live.desk import Desk
from planner.live.server import MOST_BYTES, App, Guard

TOKEN, HOST = "tokentoken", "127.0.0.1:9000"
ORIGIN = f"http://{HOST}"


@pytest.fixture(scope="module")
def app() -> App:
    session = api.session("gpt2-xl")
    views = Views(session.scenario, ["v100-sxm3-32gb"], "x.yaml")
    return App(Desk(session, on_time), views, Guard(9000, TOKEN), pytest.fail)


def answered(app: App, method: str, path: str, body: bytes = b"", **headers: str | list[str]) -> tuple[int, str, dict]:
    """Status, text and headers; a header given as None is left out."""
    given: dict[str, Any] = {"host": HOST}
    if method == "POST":
        given |= {"origin": ORIGIN, "content-type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [
        (name.encode(), one.encode("latin-1"))
        for name, value in given.items()
        if value is not None
        for one in (value if isinstance(value, list) else [value])
    ]
    sent: list[dict[str, Any]] = []
    parts = [body[at : at + 60_000] for at in range(0, len(body), 60_000)] or [b""]
    messages = [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": pairs}
    with ThreadPoolExecutor(1) as apart:  # a browser of another test may have a loop of its own in this thread
        apart.submit(asyncio.run, app(scope, receive, send)).result()
    text = b"".join(one.get("body", b"") for one in sent[1:]).decode()
    return sent[0]["status"], text, dict(sent[0]["headers"])


def test_the_page_and_its_files(app: App) -> None:
    for path, kind in (("", "text/html"), ("live.js", "text/javascript"), ("live.css", "text/css")):
        status, text, headers = answered(app, "GET", f"/{TOKEN}/{path}", sec_fetch_site="none")
        assert status == 200
        assert headers[b"content-type"].decode() == f"{kind}; charset=utf-8"
        assert "default-src 'none'" in headers[b"content-security-policy"].decode()
        assert headers[b"cache-control"] == b"no-store"
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
    page = answered(app, "GET", f"/{TOKEN}/")[1]
    assert " style=" not in page
    assert " onclick=" not in page


REFUSED = [
    ("GET", "/", {}, 404),
    ("GET", "/other/", {}, 404),
    ("GET", f"/{TOKEN}", {}, 404),
    ("GET", f"/{TOKEN}x/", {}, 404),
    ("GET", f"/{TOKEN.upper()}/", {}, 404),
    ("GET", f"//{TOKEN}/", {}, 404),
    ("GET", f"/{TOKEN}/../etc/passwd", {}, 404),
    ("GET", f"/{TOKEN}/answer.html", {}, 404),
    ("GET", f"/{TOKEN}/ask", {}, 405),
    ("PUT", f"/{TOKEN}/", {}, 405),
    ("POST", f"/{TOKEN}/", {}, 405),
    ("GET", f"/{TOKEN}/", {"host": "example.com"}, 421),
    ("GET", f"/{TOKEN}/", {"host": "127.0.0.1"}, 421),
    ("GET", f"/{TOKEN}/", {"host": "127.0.0.1:9001"}, 421),
    ("GET", f"/{TOKEN}/", {"host": "127.0.0.1:9000.example.com"}, 421),
    ("GET", f"/{TOKEN}/", {"host": None}, 421),
    ("GET", f"/{TOKEN}/", {"host": [HOST, "example.com"]}, 400),
    ("GET", f"/{TOKEN}/", {"origin": "http://example.com"}, 403),
    ("GET", f"/{TOKEN}/", {"origin": "null"}, 403),
    ("GET", f"/{TOKEN}/", {"sec_fetch_site": "cross-site"}, 403),
    ("GET", f"/{TOKEN}/", {"sec_fetch_site": "same-site"}, 403),
    ("POST", f"/{TOKEN}/ask", {"origin": None}, 403),
    ("POST", f"/{TOKEN}/ask", {"origin": "https://127.0.0.1:9000"}, 403),
    ("POST", f"/{TOKEN}/ask", {"origin": "http://localhost:9000"}, 403),
    ("POST", f"/{TOKEN}/ask", {"content_type": "text/plain"}, 415),
    ("POST", f"/{TOKEN}/ask", {"content_type": "application/x-www-form-urlencoded"}, 415),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), REFUSED)
def test_all_others_are_refused(app: App, method: str, path: str, headers: dict[str, Any], status: int) -> None:
    found, text, told = answered(app, method, path, b"{}", **headers)
    assert found == status
    assert len(text) < 120
    assert TOKEN not in text
    assert told[b"content-type"].startswith(b"text/plain")


BODIES = [
    (b"", 400), (b"{", 400), (b"[]", 400), (b"\xff\xfe", 400), (b'"a"', 400), (b"NaN", 400), (b"[" * 100_000, 400),
    (b"{}", 400), (b'{"changes": []}', 400), (b'{"changes": {"a": 1}}', 400), (b'{"changes": {"a": [1]}}', 400),
    (b'{"changes": {"a": {"b": "c"}}}', 400), (b'{"changes": {}, "before": 3}', 400),
    (b'{"changes": {"a": "' + b"x" * MOST_BYTES + b'"}}', 413),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status"), BODIES, ids=lambda value: str(value)[:40])
def test_bodies_that_are_no_question(app: App, body: bytes, status: int) -> None:
    assert answered(app, "POST", f"/{TOKEN}/ask", body)[0] == status


def test_names_to_save_under(app: App) -> None:
    for name in (None, 3, "x" * 101):
        body = json.dumps({"changes": {}, "name": name}).encode()
        assert answered(app, "POST", f"/{TOKEN}/save", body)[0] == 400


def test_who_hangs_up_drops_the_question(app: App) -> None:
    dropped = []
    app.desk.drop = dropped.append  # type: ignore[method-assign]
    answered(app, "POST", f"/{TOKEN}/ask", b'{"changes": {"price": "1%"}}')
    assert [one.changes for one in dropped] == [{"price": "1%"}]
