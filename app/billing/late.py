"""What is booked without a call: the truth about a call that came later, and the hours of our own servers."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from uuid import UUID

from django.conf import settings
from django.db import connection

from app.billing.types import Buckets, Entry
from app.billing.wire import call
from app.common.clock import now
from app.common.errors import Conflict, InvalidInput, NotFound


class EntryMissing(NotFound):
    """There is no such charge of a call. Only a call's own charge can be adjusted."""


class EntryReplaced(Conflict):
    """This charge was taken back in full by a later one; adjust that one."""


class AdjustmentConflict(Conflict):
    """This key was already used to adjust another charge. Send a new key."""


def entry_adjust(  # noqa: PLR0913 - one keyword for each fact
    *,
    entry_id: UUID,
    buckets: Buckets,
    reason: str,
    actor: str,
    dedupe_key: str,
    units: Mapping[str, int] | None = None,
    estimated: bool = False,
) -> Entry | None:
    """Book what a call truly used, learnt after its charge: an entry with the difference, at the charge's own versions.

    `buckets` and `units` are the whole truth, not the difference. `dedupe_key` names the source's own record, such as a
    provider's generation id; again, it gives back the first. None: what is booked is true already.
    Errors: EntryMissing, EntryReplaced, AdjustmentConflict, InvalidInput (no key or reason).
    """
    if not (dedupe_key.strip() and reason.strip()):
        raise InvalidInput("An adjustment needs the key of where the truth comes from, and a reason.")
    used = {**buckets.quantities(), **{name: count for name, count in (units or {}).items() if count}}
    answer = call(
        "billing_adjust",
        {
            "entry_id": entry_id,
            "quantities": used,
            "estimated": estimated,
            "reason": reason,
            "actor": actor,
            "dedupe_key": _short(dedupe_key),
        },
    )
    if "same" in answer:
        return None
    for name, error in _REFUSALS.items():
        if name in answer:
            raise error
    price, cost = (None if answer[side] is None else Decimal(answer[side]) for side in ("price", "cost"))
    return Entry(
        id=UUID(answer["id"]), attempt=answer["attempt"], kind=answer["kind"], price=price, cost=cost
    )


def _short(key: str) -> str:
    """A key that leaves room for what an entry that takes this one back adds to it; two long ones stay two."""
    return key if len(key) <= _KEY_LONGEST else sha256(key.encode()).hexdigest()


_KEY_LONGEST = 180
_REFUSALS = {"missing": EntryMissing, "reversed": EntryReplaced, "conflict": AdjustmentConflict}


def provisioned_book(*, at: datetime | None = None) -> int:
    """Book every full hour of our own servers that has ended, once; hours missed meanwhile too. Returns how many.

    Of hours that ended long enough ago it is also summed up how long the servers worked.
    """
    until = at or now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_provision(%s, %s)", [settings.CURRENCY, until])
        count: int = cursor.fetchone()[0]
        cursor.execute("SELECT billing_busy_sum(%s, %s)", [until, _HOURS])
    return count


_HOURS = 10_000
"""Hours summed up by one call: more than a year of one server."""
