"""Writes of billing: holds, settlements, prices and budgets. Sync; async code comes through `run_db`.

Holding and settling are one SQL function each (see `sql/`), so each is one statement and one commit.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from app.billing import pricing
from app.billing.checks import check_limit, check_rates, check_stored, check_terms
from app.billing.errors import (
    BudgetExhausted,
    BudgetMissing,
    PriceConflict,
    PriceMissing,
    ReservationConflict,
    ReservationMissing,
    SpendingPaused,
)
from app.billing.models import Budget, BudgetWindow, PriceComponent, PriceVersion
from app.billing.naming import covers_of
from app.billing.noting import noted
from app.billing.subjects import subject_of
from app.billing.types import (
    Attempt,
    EndState,
    Held,
    Hold,
    Period,
    Price,
    Rate,
    Scope,
    Settled,
    Settlement,
    Side,
    TierMode,
    Unit,
)
from app.billing.wire import (
    call,
    call_each,
    call_maybe,
    held_from,
    hold_payload,
    refused_from,
    settled_from,
    settlement_payload,
)
from app.common.clock import now
from app.common.errors import InvalidInput

DEFAULT_INSTALLATION_LIMIT = Decimal(100)
ALERT_RATIOS = (Decimal("0.5"), Decimal("0.8"), Decimal(1))
DEFAULT_ALLOWANCE = Decimal(10)
"""A month, in the installation's currency; what a new installation starts with."""


def reservation_hold(*, hold: Hold) -> Held:
    """Hold what the call may cost at most, in every window of the payer, in one statement.

    Idempotent by `hold.reservation_id`. Send `Held.output_tokens` upstream as the cap.
    Errors: BudgetExhausted, BudgetMissing, PriceMissing, SpendingPaused (nothing is held then); ReservationConflict.
    """
    answer = call(
        "billing_reserve",
        hold_payload(hold, currency=settings.CURRENCY, allow_unlimited=settings.ALLOW_UNLIMITED_SPEND),
    )
    if "refused" in answer:
        limit = refused_from(answer)[0]
        raise BudgetExhausted(limit, currency=settings.CURRENCY, covers=covers_of(limit.subject))
    if "paused" in answer:
        raise SpendingPaused(answer["paused"]["reason"])
    if "price_missing" in answer:
        raise PriceMissing(answer["price_missing"]["price_key"], answer["price_missing"]["component"])
    if "no_budget" in answer:
        raise BudgetMissing
    if "conflict" in answer:
        raise ReservationConflict
    return noted(held_from(answer))


def reservation_lower(*, reservation_id: UUID, price_keys: Sequence[str], input_tokens: int) -> bool:
    """Hold no more than the prompt as it was built can take; the cap stays. False: nothing was to be lowered.

    `price_keys` are the routes of the hold, without what was held besides.
    """
    payload = {"reservation_id": reservation_id, "price_keys": price_keys, "input_tokens": input_tokens}
    return call_maybe("billing_lower", payload) is not None


def reservation_settle(
    *,
    reservation_id: UUID,
    attempts: Sequence[Attempt],
    state: EndState | None = None,
    hold: Hold | None = None,
    by_sweeper: bool = False,
) -> Settled:
    """Book the attempts and end the reservation, durably, in one statement. A repeat returns what was booked first.

    `state` None: settled when a billed attempt used anything, else released. `hold` re-creates a reservation that a
    database crash forgot: give it whenever you have it. `by_sweeper`: an assumption about a process that seems dead;
    should it settle after all, its truth replaces the assumption by adjusting entries. Errors: ReservationMissing.
    """
    settlement = Settlement(reservation_id, tuple(attempts), state, hold, by_sweeper)
    return reservations_settle(settlements=[settlement])[0]


def reservations_settle(*, settlements: Sequence[Settlement]) -> list[Settled]:
    """End several reservations in one statement and one commit: all or, when the database refuses one, none.

    Errors: ReservationMissing for one that is not there and comes without its hold; the others are booked then.
    """
    answers = call_each(
        "billing_settle", [settlement_payload(s, currency=settings.CURRENCY) for s in settlements]
    )
    if any("missing" in answer for answer in answers):
        raise ReservationMissing
    return [settled_from(answer) for answer in answers]


def reservation_release(*, reservation_id: UUID, attempts: Sequence[Attempt] = ()) -> Settled:
    """End the reservation without charging the payer; `attempts` are kept, and their cost is booked.

    Errors: ReservationMissing.
    """
    return reservation_settle(reservation_id=reservation_id, attempts=attempts, state="released")


def reservation_heartbeat(
    *,
    reservation_id: UUID,
    ttl_seconds: int = 900,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> bool:
    """Say that one call still runs; see `reservations_heartbeat`. False: the reservation has ended."""
    seen = {reservation_id: (input_tokens, output_tokens)}
    return reservations_heartbeat(seen=seen, ttl_seconds=ttl_seconds) == {reservation_id}


def reservations_heartbeat(
    *, seen: Mapping[UUID, tuple[int | None, int | None]], ttl_seconds: int = 900
) -> set[UUID]:
    """Say that calls still run, and how many input and output tokens each has seen so far (None: not known).

    What was seen is what the sweeper bills, as an estimate, when the process dies. Returns those still held.
    """
    ids = sorted(seen)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE billing_reservation r SET heartbeat_at = now(), expires_at = now() + %s * interval '1 second',
              seen_input_tokens = greatest(r.seen_input_tokens, x.input_tokens),
              seen_output_tokens = greatest(r.seen_output_tokens, x.output_tokens)
            FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[]) AS x(id, input_tokens, output_tokens)
            WHERE r.id = x.id AND r.state = 'held'
            RETURNING r.id
            """,
            [ttl_seconds, ids, [seen[i][0] for i in ids], [seen[i][1] for i in ids]],
        )
        return {row[0] for row in cursor.fetchall()}


def reservations_sweep(*, limit: int = 500) -> list[UUID]:
    """End the holds of processes that died; what was seen of an answer is billed as an estimate. Returns their ids."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT unnest(billing_sweep(%s))", [limit])
        return [row[0] for row in cursor.fetchall()]


def price_set(  # noqa: PLR0913 - one keyword for each column
    *,
    price_key: str,
    rates: Sequence[Rate],
    approved_by: str,
    source: str = "staff",
    side: Side = "price",
    team_id: UUID | None = None,
    mode: str = "standard",
    effective_from: datetime | None = None,
    currency: str | None = None,
    tier_mode: TierMode = "whole_request",
) -> Price:
    """Set a price from now (or later) on; the version in force is closed at that instant.

    Cache and reasoning rates that are left out are written out as the same as input and output. `currency` is the
    installation's unless it is a cost; one in another currency counts once there is an exchange rate.
    Errors: InvalidInput (no rate, one twice, one without a base…), PriceConflict (a past instant, a later version).
    """
    check_rates(rates)
    currency = currency or settings.CURRENCY
    check_terms(price_key, side, currency, team_id, rates)
    written = pricing.complete(rates)
    same = PriceVersion.objects.filter(price_key=price_key, side=side, team_id=team_id, mode=mode)
    with transaction.atomic():
        present = turn_take(f"price:{price_key}")
        start = effective_from or present
        if start < present:
            raise PriceConflict(
                "A price can only be set from now on: calls already made keep the price they had."
            )
        if same.filter(effective_from__gte=start).exists():
            raise PriceConflict("A later version of this price exists already; it has to take effect first.")
        same.filter(effective_to__isnull=True).update(effective_to=start)
        version = PriceVersion.objects.create(
            price_key=price_key,
            side=side,
            team_id=team_id,
            mode=mode,
            currency=currency,
            effective_from=start,
            tier_mode=tier_mode,
            dearest=[tier.as_json() for tier in pricing.dearest(written, tier_mode)],
            source=source,
            approved_by=approved_by,
        )
        _components_create(version, written)
    return Price(
        version_id=version.id,
        price_key=price_key,
        currency=version.currency,
        effective_from=start,
        effective_to=None,
        rates=written,
        mode=mode,
        side=side,
        team_id=team_id,
        tier_mode=tier_mode,
    )


def _components_create(version: PriceVersion, rates: Sequence[Rate]) -> None:
    PriceComponent.objects.bulk_create(
        PriceComponent(
            version=version,
            component=rate.component,
            min_prompt_tokens=rate.min_prompt_tokens,
            per_units=rate.per_units,
            price=rate.price,
        )
        for rate in rates
    )


def budget_set(  # noqa: PLR0913 - one keyword for each column
    *,
    scope: Scope,
    unit: Unit,
    limit: Decimal | int,
    period: Period,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    key_id: UUID | None = None,
    price_key: str = "",
    name: str = "",
    zone: str | None = None,
    hard: bool = True,
    alert_ratios: Sequence[Decimal] = ALERT_RATIOS,
    set_by: str = "",
    ceiling: Decimal | int | None = None,
) -> UUID:
    """Set a limit and return the budget's id; the same subject, unit, model and period again changes it at once.

    An id left out makes it the default of every team, person or key without an own one (allowance: of every person
    in every team, or of every person in `team_id`). A limit counts what is held after it was set; changed in
    mid-window it keeps what was spent and what was added for that window alone. Another zone starts new windows.
    `ceiling`: how high the team's owner may go; None leaves it. Errors: InvalidInput.
    """
    zone = zone or settings.INSTALLATION_ZONE
    check_limit(limit, unit, zone)
    check_stored(scope, unit, period, price_key)
    try:
        subject = subject_of(scope, team_id=team_id, account_id=account_id, key_id=key_id)
    except ValueError as exc:
        raise InvalidInput(str(exc)) from exc
    values = {
        "limit": limit,
        "name": name,
        "hard": hard,
        "alert_ratios": [f"{ratio:f}" for ratio in alert_ratios],
        "set_by": set_by,
        **({} if ceiling is None else {"ceiling": ceiling}),
    }
    same = Budget.objects.filter(subject=subject, unit=unit, price_key=price_key, period=period, active=True)
    with transaction.atomic():
        turn_take(f"budget:{subject}")
        budget = same.filter(zone=zone).first()
        if budget is None:
            same.update(active=False)
            return Budget.objects.create(
                scope=scope,
                subject=subject,
                unit=unit,
                price_key=price_key,
                period=period,
                zone=zone,
                **values,
            ).id
        Budget.objects.filter(id=budget.id).update(**values)
        BudgetWindow.objects.filter(budget=budget, ends_at__gt=now()).update(
            limit_snapshot=F("raised") + limit
        )
    return budget.id


def budget_remove(*, budget_id: UUID) -> None:
    """Stop checking a limit. Its windows stay, because reservations name them."""
    Budget.objects.filter(id=budget_id).update(active=False)


def bootstrap_defaults() -> None:
    """Create the installation budget and the default member allowance unless there ever were any. Safe to repeat.

    A migration creates them too; this is for a database that was emptied.
    """
    defaults: tuple[tuple[Scope, str, str, Decimal], ...] = (
        ("installation", "i", "this installation", DEFAULT_INSTALLATION_LIMIT),
        ("allowance", "a:*:*", "your allowance", DEFAULT_ALLOWANCE),
    )
    for scope, subject, name, limit in defaults:
        if not Budget.objects.filter(subject=subject, unit="money").exists():
            budget_set(scope=scope, unit="money", limit=limit, period="month", name=name, set_by="setup")


def turn_take(name: str) -> datetime:
    """Take turns with other writers of the same thing until the transaction ends; returns the database's time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant
