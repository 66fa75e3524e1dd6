"""Windows are UTC instants cut at the midnights of a zone, also where a day has 23 or 25 hours."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection

from app.billing.models import BudgetWindow
from app.billing.services import budget_set, reservation_hold, reservation_settle
from app.billing.types import Payer
from tests.integration.billing.conftest import MakeHold, used

pytestmark = pytest.mark.django_db

TICK = timedelta(microseconds=1)


def bounds(period: str, zone: str, at: datetime) -> tuple[datetime, datetime]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT starts_at, ends_at FROM billing_window_bounds(%s, %s, %s)", [period, zone, at])
        row: tuple[datetime, datetime] = cursor.fetchone()
    return row


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "zone", "starts", "ends"),
    [
        # Clocks go forward: 23 hours. Clocks go back: 25.
        ("day", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("day", "Europe/Berlin", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("day", "America/New_York", "2026-03-08T05:00", "2026-03-09T04:00"),
        ("day", "America/New_York", "2026-11-01T04:00", "2026-11-02T05:00"),
        # Here midnight itself does not exist (01:00 follows 23:59:59) …
        ("day", "America/Santiago", "2026-09-06T04:00", "2026-09-07T03:00"),
        # … and here it happens twice: the day begins at the first.
        ("day", "America/Havana", "2026-11-01T04:00", "2026-11-02T05:00"),
        ("day", "Asia/Kathmandu", "2026-05-04T18:15", "2026-05-05T18:15"),
        ("week", "Europe/Berlin", "2026-03-22T23:00", "2026-03-29T22:00"),
        ("month", "Europe/Berlin", "2026-02-28T23:00", "2026-03-31T22:00"),
        ("month", "America/New_York", "2026-11-01T04:00", "2026-12-01T05:00"),
        ("month", "UTC", "2028-02-01T00:00", "2028-03-01T00:00"),
    ],
)
def test_first_and_last_microsecond(period: str, zone: str, starts: str, ends: str) -> None:
    window = (utc(starts), utc(ends))
    inside = [
        window[0],
        window[0] + timedelta(minutes=30),
        window[1] - timedelta(minutes=30),
        window[1] - TICK,
    ]
    assert {bounds(period, zone, at) for at in inside} == {window}
    assert bounds(period, zone, window[0] - TICK)[1] == window[0]
    assert bounds(period, zone, window[1])[0] == window[1]


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Havana", "America/Santiago", "Africa/Cairo", "Asia/Beirut"]
)
def test_days_of_a_year_follow_each_other_without_gap(zone: str) -> None:
    at = utc("2026-01-01T12:00")
    while at < utc("2027-01-01T00:00"):
        starts_at, ends_at = bounds("day", zone, at)
        assert starts_at <= at < ends_at
        assert bounds("day", zone, ends_at)[0] == ends_at
        at = ends_at


def test_a_lifetime_has_no_border() -> None:
    starts_at, ends_at = bounds("lifetime", "Europe/Berlin", utc("2026-03-29T00:00"))
    assert (starts_at.year, ends_at.year) == (1970, 9999)


def test_a_call_counts_in_the_window_it_began_in(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    """Held a microsecond before midnight, settled after it."""
    budget = budget_set(
        scope="team", unit="tokens", limit=10_000, period="day", team_id=payer.team_id, zone="Europe/Berlin"
    )
    midnight = utc("2031-03-30T22:00")
    before, after = hold(effective_at=midnight - TICK), hold(effective_at=midnight)
    for item in (before, after):
        reservation_hold(hold=item)
    reservation_settle(reservation_id=before.reservation_id, attempts=[used(10, 1)])
    reservation_settle(reservation_id=after.reservation_id, attempts=[used(20, 2)])
    # Looking at a window folds what has ended.
    for at in (midnight - TICK, midnight):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT billing_fold(array_agg(id)) FROM billing_budgetwindow WHERE starts_at <= %s AND ends_at > %s",
                [at, at],
            )

    windows = BudgetWindow.objects.filter(budget_id=budget).order_by("starts_at")
    assert [(w.ends_at - w.starts_at, w.spent, w.held) for w in windows] == [
        (timedelta(hours=23), Decimal(11), Decimal(0)),
        (timedelta(hours=24), Decimal(22), Decimal(0)),
    ]
    assert windows[0].ends_at == windows[1].starts_at == midnight
