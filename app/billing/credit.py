"""Prepaid credit of a team: given, corrected, lapsed. A team that was ever given some can spend no more than is left.

Nothing is edited: each movement is a row and a ledger entry of its own.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection

from app.billing.models import BudgetWindow, CreditMovement
from app.billing.types.words import is_exact
from app.billing.wire import call
from app.common.clock import now
from app.common.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditLot:
    """One grant as it stands."""

    grant_id: int
    given: Decimal
    """With its corrections."""
    remaining: Decimal
    """Neither spent nor lapsed; running calls may hold some of it."""
    expires_at: datetime | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """A team's prepaid credit, in the installation's currency."""

    remaining: Decimal
    """Given, less what lapsed, is spent and is held; below 0 when more was used than held."""
    lots: tuple[CreditLot, ...]


class GrantMissing(NotFound):
    """This team has no such grant."""


def credit_grant(
    *,
    team_id: UUID,
    amount: Decimal,
    source: str,
    granted_by: str,
    expires_at: datetime | None = None,
    dedupe_key: str = "",
) -> int:
    """Give a team credit and return the grant's id; `dedupe_key` again gives back the first.

    `source` says where the money comes from; what is unspent at `expires_at` lapses.
    Errors: InvalidInput for an amount that is not more than 0, or an end in the past.
    """
    _check(amount)
    if amount <= 0:
        raise InvalidInput("Credit is an amount above 0; to take some back, correct the grant.")
    if expires_at is not None and expires_at <= now():
        raise InvalidInput("Credit cannot lapse in the past; name a later time, or none.")
    return _move(
        team_id=team_id,
        kind="grant",
        amount=amount,
        expires_at=expires_at and expires_at.isoformat(),
        source=source,
        actor=granted_by,
        dedupe_key=dedupe_key,
    )


def credit_correct(
    *, team_id: UUID, grant_id: int, amount: Decimal, reason: str, corrected_by: str, dedupe_key: str = ""
) -> int:
    """Add to a grant, or take from it (a negative amount), by a row of its own; returns the row's id.

    Errors: InvalidInput (0, no reason, more than was given), GrantMissing.
    """
    _check(amount)
    if amount == 0 or not reason.strip():
        raise InvalidInput("A correction needs an amount other than 0, and a reason.")
    return _move(
        team_id=team_id,
        kind="correction",
        grant_id=grant_id,
        amount=amount,
        reason=reason,
        actor=corrected_by,
        dedupe_key=dedupe_key,
    )


def credits_lapse() -> int:
    """Take back what has lapsed, of every team. Returns how many grants."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT billing_credit_sweep()")
        count: int = cursor.fetchone()[0]
    return count


def credit_of(team_id: UUID) -> Credit | None:
    """What a team has left, the grant that is spent first coming first; None when it was never given any."""
    window = BudgetWindow.objects.filter(subject=f"c:{team_id}").first()
    if window is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH waiting AS (
              SELECT coalesce(sum(spent), 0) AS spent, coalesce(sum(amount), 0) AS held
              FROM billing_reservationline WHERE window_id = %s AND state = 1
            )
            SELECT waiting.spent, waiting.held, l.grant_id, l.remaining, m.expires_at, m.source,
              m.amount + coalesce((SELECT sum(c.amount) FROM billing_creditmovement c
                WHERE c.grant_id = m.id AND c.kind = 'correction'), 0) AS given
            FROM waiting, billing_credit_lots(%s, %s + waiting.spent) l
            JOIN billing_creditmovement m ON m.id = l.grant_id ORDER BY l.expires_at, l.grant_id
            """,
            [window.id, team_id, window.spent],
        )
        rows = cursor.fetchall()
    spent, held = window.spent + rows[0][0], window.held - rows[0][1]
    return Credit(
        remaining=window.limit_snapshot - spent - held,
        lots=tuple(
            CreditLot(grant_id=row[2], remaining=row[3], expires_at=row[4], source=row[5], given=row[6])
            for row in rows
        ),
    )


def _check(amount: Decimal) -> None:
    if not is_exact(amount) or abs(amount) >= 10**13 or amount != round(amount, 15):
        raise InvalidInput("An amount of credit is an exact number with at most 15 decimals.")


def _move(**values: object) -> int:
    """Errors: GrantMissing, InvalidInput."""
    plain = {"source": "", "reason": "", "currency": settings.CURRENCY}
    answer = call("billing_credit_move", plain | values)
    if "unknown" in answer:
        raise GrantMissing
    if "negative" in answer:
        raise InvalidInput(
            f"That would take back more than was given: this grant is {Decimal(answer['negative']):f} "
            f"{settings.CURRENCY} with its corrections. Take back at most that."
        )
    row: int = answer["id"]
    return row


def movements_of(team_id: UUID) -> list[CreditMovement]:
    """Every movement of a team, newest first."""
    return list(CreditMovement.objects.filter(team_id=team_id).order_by("-id"))
