"""What billing has of one person: their entries for their own file, and the words to forget when they go.

Entries stay when somebody is erased. They name an opaque account, which then points at nobody.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from app.billing.models import LedgerEntry, LimitRequest
from app.common.money import money


def entries_of(account_id: UUID) -> Iterator[dict[str, Any]]:
    """Every ledger entry of a person, oldest first."""
    for row in LedgerEntry.objects.filter(account_id=account_id).order_by("id").iterator():
        yield {
            "effective_at": row.effective_at.isoformat(),
            "kind": row.kind,
            "call_kind": row.call_kind,
            "model": row.model,
            "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens,
            "price": money(row.price, row.currency),
            "estimated": row.estimated,
            "team_id": row.team_id,
            "key_id": row.key_id,
        }


def words_forget(account_id: UUID) -> int:
    """Blank what a person wrote when asking for a higher limit. Returns how many notes."""
    return LimitRequest.objects.filter(account_id=account_id).exclude(note="").update(note="")
