"""A request and its answer on the bare ASGI interface: what the stream routes need and no more."""

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import orjson
from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope

from app.common.errors import AppError, InvalidInput, TooLarge
from app.common.logs import arrived_var

MAX_BODY_BYTES = 20_000_000
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class MethodNotAllowed(AppError):
    """This route does not take this method."""

    code, status = "method_not_allowed", 405


class ClientGone(Exception):
    """The caller closed the connection before the request was read."""


class Request:
    """One HTTP request. `body` and `json` may be awaited once each call, in any order."""

    def __init__(self, scope: HTTPScope, receive: ASGIReceiveCallable, request_id: str) -> None:
        self.scope = scope
        self.receive = receive
        self.id = request_id
        self.method = scope["method"]
        self.path = scope["path"]
        self.headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        self._body: bytes | None = None

    @property
    def query(self) -> dict[str, str]:
        """Query parameters, the last of each name."""
        return {k: v[-1] for k, v in parse_qs(self.scope["query_string"].decode("latin-1")).items()}

    async def body(self) -> bytes:
        """The whole body. Errors: TooLarge naming the limit, ClientGone."""
        if self._body is None:
            parts: list[bytes] = []
            size = 0
            while True:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                if message["type"] != "http.request":
                    continue
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY_BYTES:
                    raise TooLarge(
                        f"The request is larger than {MAX_BODY_BYTES:,} bytes. Upload long texts as documents.",
                        detail={"limit_bytes": MAX_BODY_BYTES},
                    )
                if not message.get("more_body", False):
                    break
            self._body = b"".join(parts)
        return self._body

    async def json(self) -> dict[str, Any]:
        """The body as a JSON object. Errors: InvalidInput saying what is wrong with it."""
        raw = await self.body()
        try:
            value = orjson.loads(raw or b"{}")
        except orjson.JSONDecodeError as exc:
            raise InvalidInput(f"The body is not valid JSON: {exc}.") from exc
        if not isinstance(value, dict):
            raise InvalidInput("The body must be a JSON object.")
        return value

    async def gone(self) -> None:
        """Return when the caller has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


class Responder:
    """The answer. Every answer carries the request's id and the security headers."""

    def __init__(self, send: ASGISendCallable, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0
        """As it was sent; 0 before that."""
        self.started = False
        self.streaming = False
        """Whether a stream has begun and not ended."""
        self.timing: dict[str, float] = {}
        """Milliseconds by stage, as far as they are known when the answer begins."""
        self.extra: dict[str, str] = {}
        """Headers that this answer carries whatever it turns out to be."""

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.started, self.status = True, status
        rows = [*_HEADERS, (b"x-request-id", self._request_id.encode()), (b"server-timing", self._timing())]
        rows += [
            (k.lower().encode("latin-1"), v.encode("latin-1"))
            for k, v in (self.extra | dict(headers)).items()
        ]
        await self._send(
            {"type": "http.response.start", "status": status, "headers": rows, "trailers": False}
        )

    def _timing(self) -> bytes:
        """`Server-Timing`: the stages that are known, and how long it took until this answer began."""
        arrived = arrived_var.get()
        since = {} if arrived is None else {"total": (time.perf_counter() - arrived) * 1e3}
        return ", ".join(f"{name};dur={ms:.1f}" for name, ms in (self.timing | since).items()).encode()

    async def json(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer at once with JSON."""
        raw = orjson.dumps(body)
        await self._start(
            status, {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})}
        )
        await self._send({"type": "http.response.body", "body": raw, "more_body": False})

    async def stream(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a text/event-stream that no proxy should hold back."""
        self.streaming = True
        await self._start(
            200,
            {
                "content-type": "text/event-stream; charset=utf-8",
                "x-accel-buffering": "no",
                **(headers or {}),
            },
        )

    async def write(self, data: bytes) -> None:
        """Send a piece of the stream."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream."""
        self.streaming = False
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def as_uuid(value: object, field: str) -> UUID:
    """An id sent by a client. Errors: InvalidInput naming the field."""
    if isinstance(value, str) and _UUID.fullmatch(value):
        return UUID(value)
    raise InvalidInput(f"`{field}` is not an id.", detail={"fields": {field: ["not an id"]}})


def typed(body: Mapping[str, Any], field: str, kind: type | tuple[type, ...], words: str) -> Any:
    """A field of the expected kind, or None when it is absent or null. Errors: InvalidInput naming it."""
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidInput(f"`{field}` must be {words}.", detail={"fields": {field: [f"must be {words}"]}})
    return value
