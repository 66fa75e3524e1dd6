"""Progress of documents as events: short looks at the rows, with no thread and no connection held in between."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from app.accounts.selectors import Caller, caller_now, viewer_of
from app.api.document_shapes import DocumentOutput, document_shown
from app.api.documents import documents_shown
from app.api.stream.http import Request, Responder, as_uuid
from app.api.stream.sending import frames_send
from app.api.stream.turns import last_event
from app.chat.runs import runs
from app.common.clock import now
from app.common.db import run_db
from retrieval.errors import NotFound
from retrieval.models import WORKING, Status
from retrieval.selectors import document_get, documents_changed, documents_removed

BUSY_SECONDS, QUIET_SECONDS = 1.0, 3.0
"""Between two looks while something is read, and while nothing is."""
_OVERLAP = timedelta(seconds=5)
"""How far a worker's clock and a commit under way may be behind. What a stream has told it does not tell again."""
_UNFINISHED = frozenset({Status.QUEUED.value, *(status.value for status in WORKING)})


async def document_events(request: Request, respond: Responder, caller: Caller, document: str) -> None:
    """`GET documents/{id}/events/`: the document now and at each change, until it is ready, failed or cancelled."""
    document_id = as_uuid(document, "document")
    caller.require_scope("read")
    await run_db(_one, caller, document_id)
    await frames_send(request, respond, caller, _document(caller, document_id))


async def collection_events(request: Request, respond: Responder, caller: Caller, collection: str) -> None:
    """`GET collections/{id}/events/`: what is being read, and each document that changes or is removed, for as long as
    one listens.

    Numbers of events are moments, so `Last-Event-ID` (or `?after=`) brings what changed since, from whichever process.
    The first event only says from which moment on.
    """
    collection_id = as_uuid(collection, "collection")
    caller.require_scope("read")
    began = now()
    heard = last_event(request)
    # A page lists what there is and listens then: what happened in between is told.
    since = began - _OVERLAP
    if 0 < heard < began.timestamp() * 1000:
        since = datetime.fromtimestamp(heard / 1000, UTC) - _OVERLAP
    await run_db(_changed, caller, collection_id, since)
    await frames_send(request, respond, caller, _collection(caller, collection_id, since))


async def _document(caller: Caller, document_id: UUID) -> AsyncGenerator[bytes, None]:
    told: Mapping[str, Any] | None = None
    while not runs().draining:
        at = now()
        try:
            shown = await run_db(_one, caller, document_id)
        except NotFound:
            yield _frame(at, "removed", {"id": str(document_id)})
            return
        if shown != told:
            yield _frame(at, "document", shown)
            told = shown
        if shown["status"] not in _UNFINISHED:
            yield _frame(at, "done", {"status": shown["status"]})
            return
        await asyncio.sleep(BUSY_SECONDS)


async def _collection(caller: Caller, collection_id: UUID, since: datetime) -> AsyncGenerator[bytes, None]:
    told: Mapping[str, dict[str, Any]] = {}
    gone: set[str] = set()
    yield _frame(now(), "following", {"id": str(collection_id)})
    while not runs().draining:
        at = now()
        # Named, because the end of one may come later than the overlap reaches.
        unfinished = [key for key, item in told.items() if item["status"] in _UNFINISHED]
        shown, removed = await run_db(_changed, caller, collection_id, since, unfinished)
        removed |= {key for key in unfinished if key not in shown}
        frames = [_frame(at, "document", item) for key, item in shown.items() if told.get(key) != item]
        frames += [_frame(at, "removed", {"id": key}) for key in sorted(removed - gone)]
        # What has ended and fell out of the overlap is not looked at any more.
        told, gone = shown, removed
        if frames:
            yield b"".join(frames)
        since = at - _OVERLAP
        busy = any(item["status"] in _UNFINISHED for item in told.values())
        await asyncio.sleep(BUSY_SECONDS if busy else QUIET_SECONDS)


def _one(caller: Caller, document_id: UUID) -> dict[str, Any]:
    return document_shown(document_get(viewer_of(caller_now(caller)), document_id))


def _changed(
    caller: Caller, collection_id: UUID, since: datetime, named: Iterable[str] = ()
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """What changed, and the ids of what was removed."""
    found = documents_changed(viewer_of(caller_now(caller)), collection_id, since, named)
    shown = {str(row.pk): dict(DocumentOutput(row).data) for row in documents_shown(found)}
    return shown, {str(key) for key in documents_removed(collection_id, since)}


def _frame(at: datetime, name: str, data: Mapping[str, Any]) -> bytes:
    number = int(at.timestamp() * 1000)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), orjson.dumps(data))
