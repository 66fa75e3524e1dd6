"""Frames of a turn on their way to one reader: kept warm, cut when the reader may not go on, never without an end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson

from app.accounts.selectors import Caller
from app.accounts.standing import standing_of
from app.api.stream.http import Request, Responder
from app.chat.runs import Stopped, StopSignal, runs
from app.chat.showing import NOT_ANY_MORE

HEARTBEAT_SECONDS = 15.0
_LAST_WORDS_SECONDS = 0.3
_COMMENT = b": still here\n\n"
_ENDS = (b"event: done\n", b"event: error\n")


def error_frame(error: dict[str, Any]) -> bytes:
    """The last event of a reader whose stream ends before its turn does. It has no number: it is none of the turn's."""
    return b"event: error\ndata: %s\n\n" % orjson.dumps(error)


async def frames_send(
    request: Request,
    respond: Responder,
    caller: Caller,
    frames: AsyncGenerator[bytes, None],
    headers: dict[str, str] | None = None,
) -> None:
    """Send frames, with a comment in every quiet quarter of a minute. The turn goes on when the reader leaves."""
    await respond.stream(headers)
    leaving = asyncio.ensure_future(request.gone())
    fallen = False

    def cut() -> None:
        # A turn of the same caller is ended in the same moment; its last event should still be read.
        nonlocal fallen
        fallen = True
        asyncio.get_running_loop().call_later(_LAST_WORDS_SECONDS, leaving.cancel)

    with runs().watch.over(standing_of(caller), cut):
        whole = await _copy(respond, frames, leaving)
    if fallen and not whole:
        await respond.write(error_frame(NOT_ANY_MORE.as_event()))
    await respond.end()


async def _copy(
    respond: Responder, frames: AsyncGenerator[bytes, None], leaving: asyncio.Future[None]
) -> bool:
    """Copy frames to a reader until they end or `leaving` does, which is cancelled then. Whether the end was sent."""
    left, warmth = StopSignal(), _Warmth(respond)
    leaving.add_done_callback(lambda _: left.stop("stopped"))
    warm = asyncio.ensure_future(warmth.keep())
    whole = False
    try:
        # A reader of another process's turn holds a connection to the broker, which must not outlive it.
        async with left, aclosing(frames):
            async for frame in frames:
                # Empty frames say that somebody looked; a proxy hears nothing of them.
                if frame:
                    warmth.sent()
                    await respond.write(frame)
                    whole = whole or any(end in frame for end in _ENDS)
    except Stopped:
        pass
    finally:
        warm.cancel()
        leaving.cancel()
        await asyncio.wait({warm, leaving})
    return whole


class _Warmth:
    """The comments of a quiet stream."""

    def __init__(self, respond: Responder) -> None:
        self._respond = respond
        self._clock = asyncio.get_running_loop().time
        self.sent()

    def sent(self) -> None:
        """Something was written now."""
        self._due = self._clock() + HEARTBEAT_SECONDS

    async def keep(self) -> None:
        """Write one whenever it is due, until cancelled."""
        while True:
            await asyncio.sleep(max(0.0, self._due - self._clock()))
            if self._clock() >= self._due:
                self.sent()
                await self._respond.write(_COMMENT)
