"""Limits on what is stored: bytes and pages, of a team, of a person in a team, of a person, of all.

Nothing is held or settled here: what is stored is counted where it is, so what was removed is free again at once.
A page is counted once a document was read; until then it counts as one.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

from django.conf import settings
from django.db import connection, transaction

from app.billing.errors import BudgetExhausted
from app.billing.models import BudgetWindow
from app.billing.naming import covers_of
from app.billing.selectors import limits_remaining
from app.billing.types import LimitState, Payer
from app.common.clock import now

Stored = Mapping[str, int]
"""{"bytes", "pages"}"""


def storage_admit(*, payer: Payer, adding: Stored, stored: Callable[[str], Stored]) -> None:
    """Let so much be added, or refuse it. Within the caller's transaction, which then adds it: uploads take turns.

    `stored` counts what a subject has (see `subjects`). Errors: BudgetExhausted saying by how much it does not fit.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT unnest((billing_windows(%s, %s, %s, NULL, 'storage', %s)).ids)",
            [payer.team_id, payer.account_id, payer.key_id, now()],
        )
        ids = [row[0] for row in cursor.fetchall()]
        windows = BudgetWindow.objects.select_for_update(no_key=True).filter(id__in=ids).order_by("id")
        for window in windows:
            # For alerts alone; what decides is counted anew each time.
            total = stored(window.subject)[window.unit] + adding[window.unit]
            BudgetWindow.objects.filter(id=window.id).update(spent=total)
        for limit in storage_limits(payer, stored):
            needed = Decimal(adding[limit.unit])
            if limit.hard and needed > limit.remaining:
                raise BudgetExhausted(
                    replace(limit, needed=needed), currency=settings.CURRENCY, covers=covers_of(limit.subject)
                )


def storage_limits(payer: Payer, stored: Callable[[str], Stored]) -> list[LimitState]:
    """The limits on what is stored, with what is stored now."""
    shown = []
    for limit in limits_remaining(payer, kind="storage"):
        has = Decimal(stored(limit.subject)[limit.unit])
        shown.append(replace(limit, spent=has, remaining=max(Decimal(0), limit.limit - has)))
    return shown
