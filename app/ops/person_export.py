"""Everything of one person as files: JSON that a program reads, and the originals they put in."""

import json
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from app.accounts.models import ApiKey, Membership, User
from app.audit.services import Verb, audit
from app.billing.leaving import entries_of
from app.chat.models import Conversation, Turn
from app.common.errors import InvalidInput
from app.ops.private import documents_of
from retrieval.models import Document, DocumentText
from retrieval.storage import blob_file
from retrieval.stores import Gone

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


def person_export(*, user: User, folder: Path) -> dict[str, int]:
    """Write chats, documents, keys (without secrets) and usage into an empty folder. Returns how many of each.

    Errors: InvalidInput when there is something in the folder already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not an empty folder. Name a new one; nothing was written.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(folder / "person.json", _person(user))
    counts = {
        "conversations": _conversations(user, folder / "conversations"),
        "documents": _documents(user, folder / "documents"),
        "keys": _write_all(
            folder / "keys.json", ApiKey.objects.filter(user=user).order_by("id").values(*_KEY)
        ),
        "usage_entries": _write_all(folder / "usage.json", entries_of(user.account_id)),
    }
    counts["turns"] = Turn.objects.filter(conversation__owner=user).count() + _write_all(
        folder / "api-turns.json",
        (_turn(turn) for turn in Turn.objects.filter(asked_by=user, conversation=None).order_by("id")),
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


def _conversations(user: User, folder: Path) -> int:
    """A file each, with every branch and the passages that were sent."""
    count = 0
    for row in Conversation.objects.filter(owner=user).order_by("id").iterator():
        turns = row.turns.order_by("id").prefetch_related("passages")
        head = {
            name: getattr(row, name) for name in ("id", "title", "model", "level", "created_at", "updated_at")
        }
        _write(folder / f"{row.pk}.json", head | {"turns": [_turn(turn) for turn in turns]})
        count += 1
    return count


def _turn(turn: Turn) -> dict[str, Any]:
    passages = sorted(turn.passages.all(), key=lambda passage: passage.number)
    return {name: getattr(turn, name) for name in _TURN} | {
        "sources": [{name: getattr(passage, name) for name in _PASSAGE} for passage in passages]
    }


def _documents(user: User, folder: Path) -> int:
    """What they put in, wherever it lies: the original, what was read of it, and what is known about it."""
    count = 0
    for row in documents_of(user).order_by("id").iterator():
        own = folder / str(row.pk)
        texts = DocumentText.objects.filter(document=row, version=row.serving_version).order_by("page")
        about = {name: getattr(row, name) for name in _DOCUMENT}
        _write(own / "document.json", about | {"text": list(texts.values("page", "text"))})
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
