"""Settlements that end while another is being written share its successor's commit, and none spoils another's."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import DataError, OperationalError, connection, transaction

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


def test_a_mistake_in_what_one_writes_down_is_its_own(hold: MakeHold, statements: list[int]) -> None:
    items = [held(hold) for _ in range(3)]

    def mistaken(settled: Settled) -> None:
        raise ZeroDivisionError

    stored: list[Settled] = []
    answers = together(
        replace(booking(items[0]), then=stored.append),
        replace(booking(items[1]), then=mistaken),
        replace(booking(items[2]), then=stored.append),
    )
    assert [type(answer) for answer in answers] == [Settled, ZeroDivisionError, Settled]
    assert stored == [answers[0], answers[2]]
    assert (statements, LedgerEntry.objects.count()) == ([3], 3)


def rows_free(*reservation_ids: UUID) -> bool:
    """Whether nobody has locked these rows."""
    try:
        with transaction.atomic():
            list(Reservation.objects.select_for_update(nowait=True).filter(id__in=reservation_ids))
    except OperationalError:
        return False
    return True


def settle_group(items: Sequence[Hold]) -> object:
    return billing.reservations_settle(settlements=[booking(item).settlement for item in items])


def pulse(items: Sequence[Hold]) -> object:
    return billing.reservations_heartbeat(seen={item.reservation_id: (1, 1) for item in items})


@pytest.mark.parametrize("work", [settle_group, pulse])
def test_groups_lock_their_rows_in_one_order_so_none_waits_for_another(
    hold: MakeHold, work: Callable[[Sequence[Hold]], object]
) -> None:
    """Two that lock the same rows in two orders would wait for each other until the database ends one of them."""
    first, *others = sorted((held(hold) for _ in range(8)), key=lambda item: item.reservation_id)
    done: list[object] = []

    def group() -> None:
        try:
            done.append(work([*reversed(others), first]))
        finally:
            connection.close()

    thread = threading.Thread(target=group)
    with transaction.atomic():
        Reservation.objects.select_for_update().get(id=first.reservation_id)
        thread.start()
        while not seen_elsewhere(waiting_for_a_row):
            assert thread.is_alive()
        # It waits for the first of all, and holds none that comes later.
        assert seen_elsewhere(lambda: rows_free(*(item.reservation_id for item in others)))
    thread.join()
    assert len(done) == 1


def waiting_for_a_row() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def seen_elsewhere(look: Callable[[], bool]) -> bool:
    """What another connection sees; a transaction sees the sessions as they were when it first looked."""

    def look_and_leave() -> bool:
        try:
            return look()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(look_and_leave).result()


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
