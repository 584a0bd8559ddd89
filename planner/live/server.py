"""The page on this machine's own address, for whoever knows its token: nothing else is let in, nothing else is sent.

Checked before anything is read: the Host (a name that was made to point here is refused), the token in the path, the
Origin and what the browser says of the site that asks, the method, the type and the size. A plain ASGI application of
a handful of paths needs no framework, and hears at once when a page hangs up, which is how a question is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from planner.errors import OutputError, PlanError
from planner.files import read_package_text
from planner.live.answer import Views
from planner.live.desk import Answer, Desk, Question
from planner.live.knobs import Changes, save
from planner.plan.model.frontier_document import Tradeoff

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Line = dict[str, Any]
ADDRESS, PORT = "127.0.0.1", 8421
MOST_BYTES, MOST_HEAD_BYTES = 256_000, 16_384  # of a body, and of the lines before it
BODY_S = 10.0  # for a body to arrive
MOST_AT_ONCE = 64
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_FILES = {"live.js": "text/javascript", "live.css": "text/css"}


class Refused(Exception):
    """A request that is not answered: its status, and why."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why
        super().__init__(why)


class HungUp(Exception):
    """The other side is gone."""


class Guard:
    """Who is let in.

    Parameters
    ----------
    port
        Where the page is.
    token
        What its address has to name.
    """

    def __init__(self, port: int, token: str) -> None:
        self.hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        self.token = token

    def path(self, scope: Scope) -> str:
        """What is asked for, behind the token.

        Raises
        ------
        Refused
            Not by this page, or not in the way that it asks.
        """
        if len(scope["path"]) + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD_BYTES:
            raise Refused(431, "this is more than the page ever sends")
        host = self._one(scope, b"host")
        if host not in self.hosts:
            raise Refused(421, "this page is at another address")
        first, slash, rest = str(scope["path"]).removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(first.encode(), self.token.encode()):
            raise Refused(404, "there is nothing here; the address that plan live printed is longer")
        origin, site = self._one(scope, b"origin"), self._one(scope, b"sec-fetch-site")
        posted = scope["method"] == "POST"
        if (origin or posted) and origin != f"http://{host}":
            raise Refused(403, "only the page itself may ask")
        if site not in ("", "same-origin", "none"):
            raise Refused(403, "only the page itself may ask")
        if posted and self._one(scope, b"content-type").partition(";")[0].strip() != "application/json":
            raise Refused(415, "questions are JSON")
        return rest

    def _one(self, scope: Scope, name: bytes) -> str:
        """A header that may stand there once; "" where it does not."""
        found = [value for key, value in scope["headers"] if key == name]
        if len(found) > 1:
            raise Refused(400, "a header stands there twice")
        return found[0].decode("latin-1") if found else ""


class App:
    """The application: the page, its two files, questions, and saving."""

    def __init__(self, desk: Desk, views: Views, guard: Guard, on_bug: Callable[[Exception], None]) -> None:
        self.desk, self.views, self.guard, self.on_bug = desk, views, guard, on_bug
        self._bodies = {name: read_package_text(f"live/{name}") for name in _FILES}
        self._bodies["live.css"] = views.style + self._bodies["live.css"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except Refused as refused:
            await _reply(send, refused.status, "text/plain", refused.why + "\n")
        except HungUp:
            pass
        except Exception as error:
            self.on_bug(error)
            await _reply(send, 500, "text/plain", "a bug in plan; the terminal says more\n")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = self.guard.path(scope), scope["method"]
        asked = {"ask": self._ask, "save": self._save}
        if path not in asked and path not in ("", *_FILES):
            raise Refused(404, "there is nothing here")
        if method != ("POST" if path in asked else "GET"):
            raise Refused(405, "this is not how the page asks")
        if path in asked:
            await asked[path](await _body(scope, receive), receive, send)
        elif path:
            await _reply(send, 200, _FILES[path], self._bodies[path])
        else:
            await _reply(send, 200, "text/html", self.views.page())

    async def _ask(self, body: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """A line of JSON for each thing that is told, until all is told or the page hangs up."""
        changes, before = _changes(body.get("changes")), body.get("before")
        listener = _Waiting(self.views, changes, self.desk, None if before is None else _changes(before), self.on_bug)
        question = Question(changes=changes, listener=listener)
        self.desk.put(question)
        await _begin(send, 200, "application/x-ndjson")
        try:
            async for line in _until_hung_up(listener.lines, receive):
                await send({"type": "http.response.body", "body": _json(line) + b"\n", "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.desk.drop(question)

    async def _save(self, body: Mapping[str, Any], receive: Receive, send: Send) -> None:
        name = body.get("name")
        if not isinstance(name, str) or len(name) > 100:
            raise Refused(400, "a scenario is saved under a name")
        try:
            told = save(self.desk.start.scenario, _changes(body.get("changes")), name)
            line: Line = {"kind": "saved", "text": told}
        except PlanError as error:
            line = {"kind": "refused", "text": str(error)}
        await _reply(send, 200, "application/json", _json(line))


class _Waiting:
    """A listener whose lines are taken in the thread of the server."""

    def __init__(
        self,
        views: Views,
        changes: Changes,
        desk: Desk,
        before: Changes | None,
        on_bug: Callable[[Exception], None],
    ) -> None:
        self.views, self.changes, self.desk, self.before, self.on_bug = views, changes, desk, before, on_bug
        self.lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def answered(self, answer: Answer) -> None:
        """The best plan so far, or the answer."""
        self._say(self.views.answer(answer, self.desk, self.before))

    def traded(self, answer: Answer, tradeoffs: list[Tradeoff]) -> None:
        """Cost against finish."""
        self._say({"kind": "traded", "html": self.views.traded(answer, tradeoffs)})

    def mended(self, answer: Answer) -> None:
        """That there is no plan again, with ways out."""
        self._say({**self.views.answer(answer, self.desk, self.before), "kind": "mended"})

    def refused(self, error: PlanError) -> None:
        """What the command line would say."""
        self._say(self.views.refused(error, self.changes))

    def failed(self, error: Exception) -> None:
        """A bug."""
        self.on_bug(error)
        self._say({"kind": "failed", "text": "This is a bug in plan; the terminal says more."})

    def done(self) -> None:
        """Nothing follows."""
        self._say(None)

    def _say(self, line: Line | None) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self.lines.put_nowait, line)


async def _until_hung_up(lines: asyncio.Queue[Line | None], receive: Receive) -> AsyncIterator[Line]:
    """Lines until there are no more, or nobody reads them."""
    gone = asyncio.ensure_future(_hung_up(receive))
    try:
        while True:
            line = asyncio.ensure_future(lines.get())
            await asyncio.wait({line, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                line.cancel()
                raise HungUp
            told = line.result()
            if told is None:
                return
            yield told
    finally:
        gone.cancel()


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(scope: Scope, receive: Receive) -> Mapping[str, Any]:
    """The body as a mapping.

    Raises
    ------
    Refused
        It is too large or too slow, or none.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HungUp
                data += message.get("body", b"")
                if len(data) > MOST_BYTES:
                    raise Refused(413, "this is more than the page ever asks")
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise Refused(408, "the question did not arrive") from None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused(400, "questions are JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "a question is a mapping")
    return body


def _changes(given: object) -> Changes:
    """Paths with texts or lists of names; how many and how long is looked at where they are read."""
    if not isinstance(given, dict) or not all(map(_is_value, given.values())):
        raise Refused(400, "changes are paths with texts")
    return given


def _is_value(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _json(line: Line) -> bytes:
    return json.dumps(line, allow_nan=False).encode()


async def _reply(send: Send, status: int, kind: str, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with contextlib.suppress(OSError, RuntimeError):  # hung up, or begun already
        await _begin(send, status, kind, {"content-length": str(len(data))})
        await send({"type": "http.response.body", "body": data})


async def _begin(send: Send, status: int, kind: str, more: Mapping[str, str] | None = None) -> None:
    headers = {**_HEADERS, "content-type": f"{kind}; charset=utf-8", **(more or {})}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def bound(port: int | None) -> socket.socket:
    """A place to listen at: the port, or without one the usual one, or any that is free.

    Raises
    ------
    OutputError
        The port that was asked for is taken.
    """
    for number in (port,) if port else (PORT, 0):
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((ADDRESS, number or 0))
            place.listen(MOST_AT_ONCE)
            return place
        except OSError:
            place.close()
    hint = "leave --port out: a free one is found"
    raise OutputError.of("port-taken", f"port {port} of this machine cannot be listened at", hint=hint)


@contextlib.contextmanager
def listening(app: App, place: socket.socket) -> Iterator[None]:
    """The server in a thread of its own, for as long as the block runs."""
    import uvicorn

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=100,  # what goes wrong is told by the application; there is no other log
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MOST_AT_ONCE,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        thread.join(3.0)
