"""The switch that pauses what costs money, and raises that end with their window."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F

from app.billing.errors import BudgetExhausted, SpendingPaused
from app.billing.models import BudgetWindow, LimitRequest, Pause
from app.billing.pausing import spending_pause, spending_paused_since, spending_resume
from app.billing.raising import limit_request_create, limit_request_decline, limit_request_grant
from app.billing.services import budget_set, price_set, reservation_hold, reservation_settle
from app.billing.types import Payer, Rate
from app.common.clock import now
from app.common.errors import Conflict, InvalidInput, NotAllowed, NotFound
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, MakeHold, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal
STAFF = "user:staff"


def test_a_pause_refuses_what_costs_money_and_nothing_else(roomy: UUID, hold: MakeHold) -> None:
    free = [Rate(component="input", price=D(0)), Rate(component="output", price=D(0))]
    price_set(price_key="free", rates=free, approved_by="tests")
    running = hold()
    reservation_hold(hold=running)
    assert spending_paused_since() is None

    spending_pause(set_by=STAFF, reason="invoice check")

    with pytest.raises(SpendingPaused, match="invoice check") as refused:
        reservation_hold(hold=hold())
    assert (refused.value.name, refused.value.status) == ("paused", 402)
    with pytest.raises(SpendingPaused):
        reservation_hold(hold=hold(price_key="never-priced"))
    assert reservation_hold(hold=hold(price_key="free")).price == 0
    # What ran goes on and is booked, also one that a crash forgot.
    assert reservation_settle(reservation_id=running.reservation_id, attempts=[used()]).price == D("0.002")
    lost = hold()
    assert reservation_settle(reservation_id=lost.reservation_id, attempts=[used()], hold=lost).recreated
    assert spending_paused_since() is not None

    spending_resume(set_by=STAFF)
    assert reservation_hold(hold=hold()).state == "held"
    assert spending_paused_since() is None


def test_every_turn_of_the_switch_is_kept_and_turning_it_twice_is_once() -> None:
    spending_resume(set_by=STAFF)
    spending_pause(set_by=STAFF, reason="first")
    spending_pause(set_by="user:other", reason="second")
    spending_resume(set_by=STAFF)
    assert [(p.paused, p.reason, p.set_by) for p in Pause.objects.order_by("id")] == [
        (True, "first", STAFF),
        (False, "", STAFF),
    ]
    assert [str(p) for p in Pause.objects.order_by("id")] == [f"paused by {STAFF}", f"running by {STAFF}"]


@pytest.fixture
def full(roomy: UUID, payer: Payer, hold: MakeHold) -> UUID:
    """The window of a team that has no room for another call."""
    budget_set(scope="team", unit="requests", limit=1, period="day", team_id=payer.team_id)
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold())
    window = refused.value.limit.window_id
    assert window is not None
    assert refused.value.detail["limit_id"] == str(window)
    return window


def test_a_granted_raise_admits_at_once_and_ends_with_its_window(
    full: UUID, payer: Payer, hold: MakeHold
) -> None:
    request = limit_request_create(window_id=full, payer=payer, amount=D(1), note="a deadline")[0]
    granted = limit_request_grant(request=request, amount=None, decided_by=STAFF)
    assert (granted.state, granted.granted, granted.decided_by) == ("granted", D(1), STAFF)

    reservation_hold(hold=hold())
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold())
    assert refused.value.limit.limit == 2

    tomorrow = now() + timedelta(days=1)
    reservation_hold(hold=hold(effective_at=tomorrow))
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold(effective_at=tomorrow))
    assert refused.value.limit.limit == 1


def test_a_limit_changed_in_mid_window_keeps_what_was_spent_and_what_was_added(
    full: UUID, payer: Payer, hold: MakeHold
) -> None:
    limit_request_grant(
        request=limit_request_create(window_id=full, payer=payer)[0], amount=D(2), decided_by=STAFF
    )
    budget_set(scope="team", unit="requests", limit=5, period="day", team_id=payer.team_id)
    state = limit_of(payer, "team", "requests")
    assert (state.limit, state.spent, state.remaining) == (7, 1, 6)
    budget_set(scope="team", unit="requests", limit=0, period="day", team_id=payer.team_id)
    assert limit_of(payer, "team", "requests").remaining == 1


def test_asking_again_changes_what_was_asked(full: UUID, payer: Payer) -> None:
    first = limit_request_create(window_id=full, payer=payer, amount=D(1))[0]
    second = limit_request_create(window_id=full, payer=payer, amount=D(3), note="more")[0]
    assert first.id == second.id
    assert (second.amount, second.note, str(second)) == (D(3), "more", f"3 for {full}: open")
    other = limit_request_create(window_id=full, payer=Payer(team_id=payer.team_id))[0]
    assert other.id != first.id
    declined = limit_request_decline(request=second, decided_by=STAFF)
    assert (declined.state, declined.granted) == ("declined", None)
    assert limit_request_create(window_id=full, payer=payer)[0].id != first.id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"team_id": uuid7()}, NotFound),
        ({"amount": D(0)}, InvalidInput),
        ({"amount": D("0.5")}, InvalidInput),
    ],
)
def test_only_who_stands_under_a_limit_asks_for_a_sensible_amount(
    changes: dict[str, Any], error: type[Exception], full: UUID, payer: Payer
) -> None:
    who = Payer(team_id=changes.pop("team_id", payer.team_id))
    with pytest.raises(error):
        limit_request_create(window_id=full, payer=who, **changes)[0]


def test_what_was_decided_or_is_over_is_not_decided_again(full: UUID, payer: Payer) -> None:
    request = limit_request_create(window_id=full, payer=payer)[0]
    with pytest.raises(InvalidInput, match="how much"):
        limit_request_grant(request=request, amount=None, decided_by=STAFF)
    with pytest.raises(Conflict, match="beyond all counting"):
        limit_request_grant(request=request, amount=D(9_999_999_999_999), decided_by=STAFF)
    BudgetWindow.objects.filter(id=full).update(ends_at=F("starts_at") + timedelta(seconds=1))
    with pytest.raises(Conflict, match="is over"):
        limit_request_grant(request=request, amount=D(1), decided_by=STAFF)
    with pytest.raises(NotFound):
        limit_request_create(window_id=full, payer=payer)[0]
    LimitRequest.objects.update(state="declined")
    with pytest.raises(Conflict, match="declined already"):
        limit_request_decline(request=request, decided_by=STAFF)


def test_a_stored_unit_has_no_period_and_no_model(payer: Payer, hold: MakeHold, roomy: UUID) -> None:
    for changes in ({"period": "month"}, {"period": "lifetime", "price_key": MODEL}):
        with pytest.raises(InvalidInput, match="no period and no model"):
            budget_set(scope="team", unit="bytes", limit=1, team_id=payer.team_id, **changes)  # type: ignore[arg-type]
    # What is stored is no matter of a call.
    budget_set(scope="team", unit="bytes", limit=0, period="lifetime", team_id=payer.team_id)
    assert reservation_hold(hold=hold()).state == "held"


@pytest.mark.django_db(transaction=True)
def test_two_grants_at_once_stay_below_what_an_administrator_gave(full: UUID, payer: Payer) -> None:
    """Each reads the limit before the other has raised it."""
    others = [replace(payer, account_id=uuid7()) for _ in range(2)]
    asked = [limit_request_create(window_id=full, payer=other, amount=D(3))[0] for other in others]
    read, waiting = Event(), Event()

    def second() -> object:
        try:
            read.wait(timeout=30)
            waiting.set()
            return limit_request_grant(request=asked[1], amount=None, decided_by=STAFF, ceiling=D(5))
        except NotAllowed as exc:
            return exc
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(second)
        with transaction.atomic():
            limit_request_grant(request=asked[0], amount=None, decided_by=STAFF, ceiling=D(5))
            read.set()
            waiting.wait(timeout=30)
            blocked_wait()
        assert isinstance(later.result(timeout=30), NotAllowed)
    assert limit_of(payer, "team", "requests").limit == 4


def blocked_wait() -> None:
    """Until another connection waits for a lock of ours."""
    with connection.cursor() as cursor:
        for _ in range(600):
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.05)")
    pytest.fail("Nobody waited.")
