"""One streamed call: read it, leave it, cancel it; afterwards there is exactly one record of it."""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from inference_client.adapters.base import Parser
from inference_client.adapters.failures import MAX_ERROR_BYTES, failure
from inference_client.answer import AnswerReader
from inference_client.connector import Sending
from inference_client.errors import BrokenStream, InferenceError, MalformedAnswer, TimedOut
from inference_client.outgoing import Outgoing
from inference_client.records import Progress, record_of
from inference_client.retry import Retry
from inference_client.servers import Server
from inference_client.transport import Reply, Transport, read_all
from inference_client.types import CallRecord, Event, Outcome, Usage

_ERROR_BODY_S = 10.0


class ChatCall:
    """An answer on its way. Nothing is sent before the first read.

        async with client.chat(server, request) as call:
            async for event in call: ...
        call.record

    Reading raises the errors of `errors.py`. Leaving the block early closes the connection where that stops
    the bill (`server.abort_stops_billing`); else it reads on, up to `timeouts.drain`, for the usage block.
    """

    def __init__(
        self,
        transport: Transport,
        server: Server,
        outgoing: Outgoing,
        parser: Parser,
        *,
        precount: int | None = None,
        retry: Retry | None = None,
    ) -> None:
        """`precount` is our own count of the input, a witness where a server's numbers are unclear."""
        self._retry = retry
        self._transport = transport
        self._server = server
        self._outgoing = outgoing
        self._parser = parser
        self._precount = precount
        self._loop = asyncio.get_running_loop()
        self._t0 = self._loop.time()
        self._progress = Progress(started_at=datetime.now(UTC))
        self._sending = Sending()
        self._post: asyncio.Task[Reply] | None = None
        self._reader: AnswerReader | None = None
        self._ready: deque[Event] = deque()
        self._refused: InferenceError | None = None
        """A refusal that came only after the reader had left."""
        self._record: CallRecord | None = None

    @property
    def record(self) -> CallRecord:
        """What the call was. Raises RuntimeError while it is still running."""
        if self._record is None:
            raise RuntimeError("The call is still running; its record exists once its block is left.")
        return self._record

    @property
    def usage(self) -> Usage:
        """What the server has told so far; may be asked at any moment."""
        return self._parser.usage(self._precount)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._record is not None:
            return
        limits = self._server.timeouts
        # A server that has said its last word generates nothing more; only its numbers are still to come.
        finished = self._parser.complete
        try:
            if finished:
                await self._drain(limits.grace)
            elif not self._server.abort_stops_billing:
                await self._drain(limits.drain)
        finally:
            self._end("completed" if finished else "stopped", self._refused)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._ready:
            self._ready.extend(await self.batch())
            if not self._ready:
                raise StopAsyncIteration
        return self._ready.popleft()

    async def batch(self) -> list[Event]:
        """The events of the next read, at least one; an empty list at the end of the answer.

        Cheaper than event by event when they come in bursts. Use one way or the other for one call.
        """
        if self._record is not None:
            return []
        try:
            if self._reader is None:
                self._reader = await self._open_patiently()
            events = await self._reader.next()
        except InferenceError as exc:
            self._end("failed", exc)
            raise
        if not events:
            self._end("completed")
        return events

    async def _open_patiently(self) -> AnswerReader:
        """`_open`, again where nothing was owed for the time before."""
        while True:
            try:
                return await self._open()
            except InferenceError as exc:
                wait = self._retry.delay(exc, self._progress.attempts) if self._retry else None
                if wait is None:
                    raise
            self._post = None
            self._sending = Sending()
            await asyncio.sleep(wait)

    async def _open(self) -> AnswerReader:
        """Send, wait for the headers; a refusal is read and raised."""
        limits = self._server.timeouts
        limit_s = min(limits.first_token, limits.total)
        try:
            async with asyncio.timeout(limit_s):
                reply = await self._send()
        except TimeoutError:
            raise TimedOut("headers", limit_s) from None
        self._progress.connected_s = self._loop.time() - self._t0
        if reply.status >= 300:
            raise await _refusal(reply)
        self._parser.on_headers(reply.headers)
        return AnswerReader(reply, self._parser, limits, self._t0)

    async def _send(self) -> Reply:
        self._progress.attempts += 1
        wire = await self._outgoing.ready(self._transport, self._server.timeouts.connect)
        sending = self._transport.send(
            wire.method,
            wire.url,
            headers=wire.headers,
            body=wire.body,
            connect_s=self._server.timeouts.connect,
            sending=self._sending,
        )
        if self._server.abort_stops_billing:
            return await sending
        # The bill runs on whether we listen or not, so leaving must not cancel the sending.
        self._post = self._loop.create_task(sending)
        return await asyncio.shield(self._post)

    async def _drain(self, limit_s: float) -> None:
        """Read on, delivering nothing, for the usage block; a failure changes only what is known."""
        with suppress(InferenceError, TimeoutError):
            if self._reader is None:
                if self._post is None:
                    return
                async with asyncio.timeout(limit_s):
                    reply = await self._post
                if reply.status >= 300:
                    self._refused = await _refusal(reply)
                    return
                self._reader = AnswerReader(reply, self._parser, self._server.timeouts, self._t0)
            self._reader.stop_by(limit_s)
            while await self._reader.next():
                pass

    def _end(self, outcome: Outcome, error: InferenceError | None = None) -> None:
        """Let go of the connection and write the record."""
        assert self._record is None
        progress, reader = self._progress, self._reader
        if self._post is not None and reader is None:
            _let_go(self._post)
        if reader is not None:
            reader.close()
            progress.output_chars = reader.chars
            if reader.first_token_at is not None:
                progress.first_token_s = reader.first_token_at - self._t0
        progress.total_s = self._loop.time() - self._t0
        progress.sent = self._sending.connected
        progress.dialled_s = self._sending.dialled_s
        self._record = record_of(outcome, self._parser, self.usage, progress, error)


def _let_go(post: asyncio.Task[Reply]) -> None:
    """Drop a request nobody waits for any more, and the reply that may just have come."""
    post.cancel()
    post.add_done_callback(_close_reply)


def _close_reply(post: asyncio.Task[Reply]) -> None:
    if not post.cancelled() and post.exception() is None:
        post.result().close()


async def _refusal(reply: Reply) -> InferenceError:
    """The error behind `reply`, which is read and closed."""
    try:
        if reply.status < 400:
            return MalformedAnswer(code="redirected", status=reply.status)
        async with asyncio.timeout(_ERROR_BODY_S):
            body = await read_all(reply, MAX_ERROR_BYTES)
    except (TimeoutError, BrokenStream):
        body = b""
    finally:
        reply.close()
    return failure(reply.status, reply.headers, body)
