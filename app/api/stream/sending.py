"""Frames of a turn on their way to one reader: kept warm, cut when the reader may not go on, never without an end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson

from app.accounts.selectors import Caller
from app.accounts.standing import standing_of
from app.api.stream.http import Request, Responder
from app.chat.runs import runs
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
    frames: AsyncIterator[bytes],
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


async def _copy(respond: Responder, frames: AsyncIterator[bytes], leaving: asyncio.Future[None]) -> bool:
    """Copy frames to a reader until they end or `leaving` does, which is cancelled then. Whether the end was sent."""
    waiting = asyncio.ensure_future(_next(frames))
    whole, clock = False, asyncio.get_running_loop().time
    due = clock() + HEARTBEAT_SECONDS
    try:
        while not leaving.done():
            either: set[asyncio.Future[Any]] = {waiting, leaving}
            await asyncio.wait(either, timeout=max(0.0, due - clock()), return_when=asyncio.FIRST_COMPLETED)
            frame = b""
            if waiting.done():
                if (told := waiting.result()) is None:
                    break
                frame = told
                waiting = asyncio.ensure_future(_next(frames))
            # Empty frames say that somebody looked; a proxy hears nothing of them.
            if frame or clock() >= due:
                await respond.write(frame or _COMMENT)
                whole = whole or any(end in frame for end in _ENDS)
                due = clock() + HEARTBEAT_SECONDS
    finally:
        # A reader of another process's turn holds a connection to the broker, which must not outlive it.
        pending: set[asyncio.Future[Any]] = {waiting, leaving}
        for future in pending:
            future.cancel()
        await asyncio.wait(pending)
    return whole


async def _next(frames: AsyncIterator[bytes]) -> bytes | None:
    return await anext(frames, None)
