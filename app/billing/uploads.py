"""What is stored, counted for the limits of whoever uploads."""

import hashlib
from functools import partial
from typing import BinaryIO
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Coalesce

from app.accounts.selectors import Caller, account_of, principal_of
from app.billing.errors import BudgetExhausted
from app.billing.storing import Stored, storage_admit, storage_limits
from app.billing.types import LimitState, Payer
from retrieval.models import Collection, Document


def upload_admit(*, caller: Caller, collection: Collection, content: BinaryIO, replaces: int = 0) -> None:
    """Let a file be kept, or refuse it by the limits of the collection's owner team and of the person.

    `replaces`: bytes of the version before. Errors: BudgetExhausted (402).
    """
    size = content.seek(0, 2)
    content.seek(0)
    payer = Payer(team_id=collection.team_id, account_id=caller.account_id, key_id=caller.key_id)
    adding = {"bytes": max(0, size - replaces), "pages": 0 if replaces else 1}
    try:
        storage_admit(payer=payer, adding=adding, stored=partial(_stored, caller, collection.team_id))
    except BudgetExhausted:
        # The same bytes again are no more than there is.
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
        content.seek(0)
        if not Document.objects.filter(collection=collection, sha256=sha256).exists():
            raise


def fetched_admit(document: Document, size: int) -> None:
    """The same for what a worker fetched for a document's row, in whose name it was asked. Errors: BudgetExhausted."""
    kind, _, identity = document.created_by.partition(":")
    account = account_of(UUID(identity)) if kind == "user" else None
    payer = Payer(team_id=document.team_id, account_id=account, key_id=None)
    # The row counts as a page already.
    stored = partial(_stored_of, document.created_by, document.team_id)
    storage_admit(payer=payer, adding={"bytes": size, "pages": 0}, stored=stored)


def stored_limits(caller: Caller, team_id: UUID, payer: Payer) -> list[LimitState]:
    """The caller's limits on what is stored, as they stand."""
    return storage_limits(payer, partial(_stored, caller, team_id))


def _stored(caller: Caller, team_id: UUID, subject: str) -> Stored:
    return _stored_of(principal_of(caller), team_id, subject)


def _stored_of(principal: str, team_id: UUID, subject: str) -> Stored:
    rows = Document.objects.all()
    if subject[0] in "ta":
        rows = rows.filter(team_id=team_id)
    if subject[0] in "ap":
        rows = rows.filter(created_by=principal)
    found = rows.aggregate(bytes=Sum("size"), pages=Sum(Coalesce("pages", 1)))
    return {unit: found[unit] or 0 for unit in ("bytes", "pages")}
