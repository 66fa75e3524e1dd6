"""Everything of one person as files: JSON that a program reads, and the originals they put in."""

import json
import re
import shutil
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder

from app.accounts.models import ApiKey, Membership, User, principals_of
from app.audit.services import Verb, audit
from app.billing.leaving import entries_of
from app.chat.models import Conversation, SentPassage, Turn
from app.common.errors import InvalidInput
from app.ops.private import documents_of, turns_of
from retrieval.models import Document, DocumentText
from retrieval.selectors import collections_readable
from retrieval.storage import blob_file
from retrieval.stores import Gone
from retrieval.types import Viewer

_TURN = (
    "id", "parent_id", "question", "answer", "reasoning", "state", "finish_reason", "model", "level", "notices",
    "quotes", "usage", "feedback", "started_at", "ended_at",
)  # fmt: skip
_PASSAGE = ("number", "document_id", "title", "heading", "page", "text", "cited", "erased_at", "receipt")
_KEY = (
    "id", "name", "prefix", "team_id", "scopes", "models_allowed", "networks", "budget", "created_at", "expires_at",
    "last_used_at", "revoked_at",
)  # fmt: skip
_DOCUMENT = (
    "id", "collection_id", "name", "title", "sha256", "size", "mime", "source_url", "status", "pages", "language",
    "created_at",
)  # fmt: skip

_PUT_IN = ("id", "collection_id", "created_at")
"""What is told of a document that they put in and may not read any more: it may be somebody else's version by now."""


def collections_told(user: User) -> frozenset[UUID]:
    """Collections of which an export would hold text: of passages and documents, as far as they may be read now."""
    sent = SentPassage.objects.filter(turn__in=turns_of(user)).values_list("collection_id", flat=True)
    asked = {*sent.distinct(), *documents_of(user).values_list("collection_id", flat=True)}
    return readable_of(user, asked)


def readable_of(user: User, collections: Iterable[UUID]) -> frozenset[UUID]:
    """Those of these collections that the person may read now."""
    teams = list(Membership.objects.filter(user=user).values_list("team_id", flat=True))
    readable = collections_readable(Viewer(principals_of(user.pk, teams)))
    return frozenset(readable.filter(pk__in=collections).values_list("pk", flat=True))


def person_export(*, user: User, folder: Path, told: AbstractSet[UUID] | None = None) -> dict[str, int]:
    """Write chats, documents, keys (without secrets) and usage into an empty folder. Returns how many of each.

    `told`: of which collections there may be text, else what `collections_told` says. Of others only what the person
    knew when they put a document in, and how many passages are left out.
    Errors: InvalidInput when there is something in the folder already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not an empty folder. Name a new one; nothing was written.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    told = collections_told(user) if told is None else told
    _write(folder / "person.json", _person(user))
    counts = {
        "conversations": _conversations(user, folder / "conversations", told),
        "documents": _documents(user, folder / "documents", told),
        "keys": _write_all(
            folder / "keys.json", ApiKey.objects.filter(user=user).order_by("id").values(*_KEY)
        ),
        "usage_entries": _write_all(folder / "usage.json", entries_of(user.account_id)),
    }
    counts["turns"] = Turn.objects.filter(conversation__owner=user).count() + _write_all(
        folder / "api-turns.json",
        (_turn(turn, told) for turn in Turn.objects.filter(asked_by=user, conversation=None).order_by("id")),
    )
    _write(folder / "counts.json", counts)
    audit(Verb.EXPORT, object_kind="person", object_id=user.account_id)
    return counts


def _person(user: User) -> dict[str, Any]:
    teams = Membership.objects.filter(user=user).select_related("team").order_by("id")
    return {
        "email": user.email,
        "name": user.name,
        "created_at": user.created_at,
        "account_id": user.account_id,
        "teams": [{"id": m.team_id, "name": m.team.name, "role": m.role} for m in teams],
    }


def _conversations(user: User, folder: Path, told: AbstractSet[UUID]) -> int:
    """A file each, with every branch and the passages that were sent."""
    count = 0
    for row in Conversation.objects.filter(owner=user).order_by("id").iterator():
        turns = row.turns.order_by("id").prefetch_related("passages")
        head = {
            name: getattr(row, name) for name in ("id", "title", "model", "level", "created_at", "updated_at")
        }
        _write(folder / f"{row.pk}.json", head | {"turns": [_turn(turn, told) for turn in turns]})
        count += 1
    return count


def _turn(turn: Turn, told: AbstractSet[UUID]) -> dict[str, Any]:
    passages = sorted(turn.passages.all(), key=lambda passage: passage.number)
    kept = [passage for passage in passages if passage.collection_id in told]
    numbers = {passage.number for passage in kept}
    return {name: getattr(turn, name) for name in _TURN} | {
        # A quote is the passage's own words.
        "quotes": [quote for quote in turn.quotes if quote.get("n") in numbers],
        "sources": [{name: getattr(passage, name) for name in _PASSAGE} for passage in kept],
        "hidden_passages": len(passages) - len(kept),
    }


def _documents(user: User, folder: Path, told: AbstractSet[UUID]) -> int:
    """What they put in, wherever it lies, with what is known about it; original and text of what they may read now."""
    count = 0
    for row in documents_of(user).order_by("id").iterator():
        own, readable = folder / str(row.pk), row.collection_id in told
        texts = DocumentText.objects.filter(document=row, version=row.serving_version).order_by("page")
        about = {name: getattr(row, name) for name in (_DOCUMENT if readable else _PUT_IN)}
        _write(
            own / "document.json", about | {"text": list(texts.values("page", "text")) if readable else None}
        )
        if readable:
            _original(row, own)
        count += 1
    return count


def _original(row: Document, own: Path) -> None:
    # The name is the person's own words; only what a file system takes everywhere is kept of it.
    name = re.sub(r"[^\w.\- ]", "_", row.name).strip(". ")[-120:] or "original"
    with suppress(Gone), blob_file(row.serving_sha256 or row.sha256) as path:
        shutil.copyfile(path, own / f"original-{name}")


def _write_all(path: Path, rows: Iterable[Any]) -> int:
    found = list(rows)
    _write(path, found)
    return len(found)


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(
        json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
