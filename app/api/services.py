"""Idempotency of POSTs: claim a key, finish it with the answer, prune it a day later."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from app.accounts.selectors import Caller
from app.api.errors import error_body
from app.api.models import IdempotencyKey
from app.common.clock import now
from app.common.errors import InvalidInput, NotFound

KEPT = timedelta(hours=24)
ABANDONED = timedelta(minutes=2)
"""A claim that names no resource and has no answer after this belongs to a request that died."""
MAX_KEY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known of an idempotency key once it is claimed."""

    is_new: bool
    """True: do the work, then call `idempotency_finish`."""
    status: int | None = None
    """HTTP status of the stored answer; None while the first request runs."""
    response: Any = None
    resource_id: UUID | None = None

    @property
    def is_running(self) -> bool:
        """The first request with this key has not answered yet."""
        return not self.is_new and self.status is None


def idempotency_owner(caller: Caller) -> str:
    """Whose keys these are."""
    return f"key:{caller.key_id}" if caller.key_id else f"user:{caller.user_id}"


def fingerprint_of(*parts: bytes | str) -> str:
    """SHA-256 over parts of a request; each is framed by its length, so that no two lists of parts collide."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()


def idempotency_claim(*, owner: str, key: str, fingerprint: str, resource_id: UUID | None = None) -> Claim:
    """Take the key for this request, or learn what an earlier request with it made.

    Inside a transaction a second claim waits for the first one's end. Errors: InvalidInput
    (`idempotency_key_reused` when the fingerprint differs; a key that is too long).
    """
    if not key or len(key) > MAX_KEY_LENGTH:
        raise InvalidInput(
            f"An Idempotency-Key has 1 to {MAX_KEY_LENGTH} characters.", detail={"field": "Idempotency-Key"}
        )
    fresh = {"fingerprint": fingerprint, "resource_id": resource_id}
    row, created = IdempotencyKey.objects.get_or_create(owner=owner, key=key, defaults=fresh)
    if created or _taken_over(row, fresh):
        return Claim(is_new=True, resource_id=resource_id)
    if row.fingerprint != fingerprint:
        raise InvalidInput(
            "This Idempotency-Key was sent before with another body. Send a new key with a new request.",
            code="idempotency_key_reused",
        )
    return Claim(is_new=False, status=row.status, response=row.response, resource_id=row.resource_id)


def _taken_over(row: IdempotencyKey, fresh: dict[str, Any]) -> bool:
    """Whether an expired or abandoned row is ours now. Of two that try, one changes the row."""
    instant = now()
    is_over = Q(created_at__lt=instant - KEPT) | Q(
        created_at__lt=instant - ABANDONED, status=None, resource_id=None, fingerprint=fresh["fingerprint"]
    )
    taken = IdempotencyKey.objects.filter(is_over, id=row.id)
    return bool(taken.update(created_at=instant, status=None, response=None, **fresh))


def idempotency_finish(
    *, owner: str, key: str, status: int, response: Any = None, resource_id: UUID | None = None
) -> None:
    """Keep the answer for whoever repeats the request."""
    changes: dict[str, Any] = {"status": status, "response": response}
    if resource_id is not None:
        changes["resource_id"] = resource_id
    IdempotencyKey.objects.filter(owner=owner, key=key).update(**changes)


def idempotency_release(*, owner: str, key: str) -> None:
    """Forget a claim whose request made nothing, so that the same key may try again."""
    IdempotencyKey.objects.filter(owner=owner, key=key, status=None).delete()


def idempotency_erase(identity: UUID) -> None:
    """Forget the kept answers that show something erased, or a document of it: who repeats a request hears that."""
    _, body, _ = error_body(NotFound("What this request made was erased."), "")
    shown = Q(response__body__id=str(identity)) | Q(response__body__collection_id=str(identity))
    IdempotencyKey.objects.filter(shown).update(status=404, response={"headers": {}, "body": body})


def idempotency_prune() -> int:
    """Remove keys older than a day. Returns how many."""
    return IdempotencyKey.objects.filter(created_at__lt=now() - KEPT).delete()[0]
