"""Settlements that end while another is being written share its successor's commit, and none spoils another's."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DataError

from app.billing import services as billing
from app.billing.errors import ReservationMissing
from app.billing.models import LedgerEntry, Reservation
from app.billing.types import Hold, Settled, Settlement
from app.gate.settling import GROUP, Booking, settler
from tests.integration.billing.conftest import MakeHold, used

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many settlements each statement carried."""
    real, sizes = billing.reservations_settle, []

    def counted(*, settlements: Any) -> Any:
        sizes.append(len(settlements))
        return real(settlements=settlements)

    monkeypatch.setattr(billing, "reservations_settle", counted)
    return sizes


def held(hold: MakeHold) -> Hold:
    item = hold()
    billing.reservation_hold(hold=item)
    return item


def booking(item: Hold, **changes: Any) -> Booking:
    return Booking(Settlement(item.reservation_id, (used(10, 5),), **changes))


@async_to_sync
async def together(*bookings: Booking) -> list[Any]:
    return await asyncio.gather(*(settler().settle(b) for b in bookings), return_exceptions=True)


def test_what_ends_together_is_written_together(hold: MakeHold, statements: list[int]) -> None:
    stored: list[Settled] = []
    items = [held(hold) for _ in range(GROUP + 3)]
    answers = together(*(replace(booking(item), then=stored.append) for item in items))
    assert [answer.reservation_id for answer in answers] == [item.reservation_id for item in items]
    assert stored == answers
    assert statements == [GROUP, 3]
    assert LedgerEntry.objects.count() == GROUP + 3
    assert {row.state for row in Reservation.objects.all()} == {"settled"}


def test_one_that_is_refused_does_not_stop_the_others(hold: MakeHold, statements: list[int]) -> None:
    good, bad, unknown, last = held(hold), held(hold), hold(), held(hold)
    poison = Booking(
        Settlement(bad.reservation_id, (replace(used(1), local_input_tokens=2**70),)), then=pytest.fail
    )
    answers = together(booking(good), poison, booking(unknown), booking(last))
    assert isinstance(answers[0], Settled)
    assert isinstance(answers[1], DataError)
    assert isinstance(answers[2], ReservationMissing)
    assert isinstance(answers[3], Settled)
    assert LedgerEntry.objects.count() == 2
    assert Reservation.objects.get(id=bad.reservation_id).state == "held"


def test_a_reader_that_leaves_takes_nobody_with_it(hold: MakeHold) -> None:
    first, second = held(hold), held(hold)

    @async_to_sync
    async def story() -> Settled:
        leaver = asyncio.ensure_future(settler().settle(booking(first)))
        stayer = asyncio.ensure_future(settler().settle(booking(second)))
        await asyncio.sleep(0)
        leaver.cancel()
        return await stayer

    assert story().reservation_id == second.reservation_id
    assert Reservation.objects.filter(state="settled").count() == 2
