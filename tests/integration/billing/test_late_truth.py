"""Processes die, holds expire, the truth comes late: what was used is booked once all the same."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection

from app.billing.choosing import Room, fits
from app.billing.errors import ReservationMissing
from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.billing.services import (
    budget_set,
    price_set,
    reservation_heartbeat,
    reservation_hold,
    reservation_settle,
    reservations_heartbeat,
    reservations_sweep,
)
from app.billing.types import Hold, Payer, Rate
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, MakeHold, Spent, used

pytestmark = pytest.mark.django_db
D = Decimal


def expire(item: Hold) -> None:
    Reservation.objects.filter(id=item.reservation_id).update(expires_at="2020-01-01T00:00:00Z")


def test_a_charge_after_the_hold_expired_is_booked_and_flagged(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="requests", limit=5, period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    expire(item)
    assert reservations_sweep() == [item.reservation_id]
    assert spent("installation") == (D(0), D(0))

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    again = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])

    assert (settled.state, settled.late, settled.price) == ("expired", True, D("0.002"))
    assert again.replayed
    assert spent("installation") == (D("0.002"), D(0))
    assert spent("team", "requests") == (1, 0)
    assert ledger_verify().differences == ()


def test_an_estimate_about_a_process_that_only_seemed_dead_gives_way_to_its_truth(
    roomy: UUID, hold: MakeHold, spent: Spent
) -> None:
    """Both speak of the call's first attempt."""
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(estimated=True)], by_sweeper=True)
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(output=100)])
    assert (settled.price, settled.late) == (D("0.0012"), True)
    assert [(e.kind, e.attempt) for e in settled.entries] == [("charge", 0), ("adjust", 0), ("charge", 1)]
    assert spent("installation") == (D("0.0012"), D(0))
    assert ledger_verify().differences == ()


def test_a_call_whose_estimate_gave_way_is_one_call_to_choose_by(roomy: UUID, hold: MakeHold) -> None:
    item = hold(deployment_id=uuid7())
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(estimated=True)], by_sweeper=True)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(output=100)])
    room = Room(deployment_id=uuid7(), window=100_000, most_output=100_000)
    (found,) = fits(now() - timedelta(days=1), [room])
    assert (found.calls, found.fitting, found.output_tokens, found.price) == (1, 1, 100, D("0.0012"))


def test_a_hold_that_a_crash_forgot_is_booked_all_the_same(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="money", limit=0, period="month", team_id=payer.team_id)
    item = hold()
    with pytest.raises(ReservationMissing):
        reservation_settle(reservation_id=item.reservation_id, attempts=[used()])

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()], hold=item)

    assert (settled.recreated, settled.price) == (True, D("0.002"))
    # When it counts stands in the id: the millisecond it was made.
    assert abs((Reservation.objects.get().effective_at - now()).total_seconds()) < 60
    assert spent("team") == (D("0.002"), D(0))
    assert ledger_verify().differences == ()


@pytest.mark.parametrize("key", [uuid7(), UUID("c0ffee00-0000-4000-8000-000000000001")])
def test_a_forgotten_hold_counts_when_it_was_asked_to(key: UUID, roomy: UUID, hold: MakeHold) -> None:
    instant = datetime(2031, 3, 29, 12, tzinfo=UTC)
    item = hold(reservation_id=key, effective_at=instant)
    reservation_settle(reservation_id=key, attempts=[used()], hold=item)
    assert LedgerEntry.objects.get().effective_at == instant


def test_a_forgotten_hold_whose_id_tells_no_time_counts_now(roomy: UUID, hold: MakeHold) -> None:
    item = hold(reservation_id=UUID("c0ffee00-0000-4000-8000-000000000001"))
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()], hold=item)
    assert abs((LedgerEntry.objects.get().effective_at - now()).total_seconds()) < 60


def test_an_instant_without_a_zone_is_refused(roomy: UUID, hold: MakeHold) -> None:
    with pytest.raises(ValueError, match="carry a zone"):
        reservation_hold(hold=hold(effective_at=datetime(2031, 3, 29)))  # noqa: DTZ001 - the mistake under test


def test_a_dead_process_is_billed_for_what_it_had_seen(roomy: UUID, hold: MakeHold, spent: Spent) -> None:
    item, silent = hold(), hold()
    for each in (item, silent):
        reservation_hold(hold=each)
    assert reservation_heartbeat(reservation_id=item.reservation_id, output_tokens=120)
    assert reservation_heartbeat(reservation_id=item.reservation_id, output_tokens=90)
    expire(item)
    expire(silent)

    assert set(reservations_sweep()) == {item.reservation_id, silent.reservation_id}

    assert Reservation.objects.get(id=silent.reservation_id).state == "expired"
    entry = LedgerEntry.objects.get()
    assert (entry.input_tokens, entry.output_tokens, entry.estimated) == (1000, 120, True)
    assert UsageAttempt.objects.get(billed=True).estimate_reason == "sweeper"
    assert spent("installation") == (D("0.00124"), D(0))
    assert reservations_sweep() == []
    assert not reservation_heartbeat(reservation_id=item.reservation_id)


def test_a_call_that_was_sent_and_not_seen_to_write_is_on_record_and_nobodys_price(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="requests", limit=1, period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    assert reservation_heartbeat(reservation_id=item.reservation_id, input_tokens=800, output_tokens=0)
    expire(item)

    assert reservations_sweep() == [item.reservation_id]
    assert reservations_sweep() == []

    attempt = UsageAttempt.objects.get()
    assert (attempt.input_tokens, attempt.output_tokens, attempt.billed) == (800, 0, False)
    assert (attempt.outcome, attempt.estimate_reason) == ("failed", "sweeper")
    assert (spent("installation"), spent("team", "requests")) == ((D(0), D(0)), (0, 0))
    assert ledger_verify().differences == ()

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(900, 300)])
    assert (settled.price, settled.late) == (D("0.0015"), True)
    assert spent("team", "requests") == (1, 0)
    assert ledger_verify().differences == ()


@pytest.mark.parametrize("first", [reservations_sweep, reservation_hold])
def test_a_call_of_which_nothing_was_seen_may_have_been_sent(
    roomy: UUID, hold: MakeHold, spent: Spent, first: Callable[..., object]
) -> None:
    """Killed between two pulses, or one of a kind that has none: an embedding, a title. Also when another call that
    needed the room ended the hold before the sweeper did."""
    price_set(
        price_key=MODEL, rates=[Rate(component="input", price=D("0.5"))], approved_by="tests", side="cost"
    )
    item = hold(kind="embedding", output_tokens=0)
    reservation_hold(hold=item)
    expire(item)
    if first is reservation_hold:
        with connection.cursor() as cursor:
            cursor.execute("SELECT billing_expire(NULL, 10)")
    assert reservations_sweep() == [item.reservation_id]
    assert reservations_sweep() == []

    attempt = UsageAttempt.objects.get()
    assert (attempt.billed, attempt.input_tokens, attempt.flags) == (False, 1000, ["perhaps_sent"])
    entry = LedgerEntry.objects.get()
    assert (entry.price, entry.cost, entry.estimated) == (D(0), D("0.0005"), True)
    assert spent("installation") == (D(0), D(0))
    assert ledger_verify().differences == ()

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(900, 0)])
    assert (settled.price, settled.cost) == (D("0.0009"), D("0.00045"))
    assert sum(e.cost or 0 for e in settled.entries) == D("0.00045")
    assert ledger_verify().differences == ()


def test_the_truth_replaces_the_sweepers_estimate(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="tokens", limit=10**6, period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    reservations_heartbeat(seen={item.reservation_id: (None, 120)})
    expire(item)
    reservations_sweep()

    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(900, 300)])
    again = reservation_settle(reservation_id=item.reservation_id, attempts=[used(1, 1)])

    assert (settled.price, settled.late, settled.estimated) == (D("0.0015"), True, False)
    assert again.replayed
    assert [(e.kind, e.price) for e in settled.entries] == [
        ("charge", D("0.00124")),
        ("adjust", D("-0.00124")),
        ("charge", D("0.0015")),
    ]
    adjust = LedgerEntry.objects.get(kind="adjust")
    assert adjust.supersedes == LedgerEntry.objects.order_by("id").first()
    assert spent("installation") == (D("0.0015"), D(0))
    assert spent("team", "tokens") == (1200, 0)
    assert ledger_verify().differences == ()


def test_a_checkpoint_is_owed_also_when_another_call_took_the_hold(
    roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent
) -> None:
    budget_set(scope="team", unit="requests", limit=1, period="month", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    reservation_heartbeat(reservation_id=item.reservation_id, output_tokens=10)
    expire(item)
    reservation_hold(hold=hold())
    assert Reservation.objects.get(id=item.reservation_id).state == "expired"

    assert reservations_sweep() == [item.reservation_id]

    assert Reservation.objects.get(id=item.reservation_id).price == D("0.00102")
    assert spent("team", "requests") == (1, 1)
    assert ledger_verify().differences == ()


def test_a_heartbeat_keeps_the_hold(roomy: UUID, hold: MakeHold) -> None:
    item = hold(ttl_seconds=1)
    reservation_hold(hold=item)
    assert reservations_heartbeat(seen={item.reservation_id: (None, None), uuid7(): (1, 1)}) == {
        item.reservation_id
    }
    assert (Reservation.objects.get().expires_at - now()).total_seconds() > 800
