"""A made-up past goes through the limits of every day, and leaves nothing behind that a day of today would not."""

from datetime import timedelta
from decimal import Decimal

import pytest

from app.billing.models import LedgerEntry, Reservation
from app.billing.seeding import PastCall, calls_book, price_since
from app.billing.services import budget_set
from app.billing.types import Payer
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, PRICE, MakeHold, used

pytestmark = pytest.mark.django_db


def test_limits_refuse_what_was_spent_and_holds_do_not_pile_up(hold: MakeHold) -> None:
    """A call costs 0.002 and holds more; twelve of them fit into 0.025, and the hold of one that is over is gone."""
    team = uuid7()
    budget_set(scope="team", unit="money", limit=Decimal("0.025"), period="month", team_id=team)
    begin = (now().replace(day=1) - timedelta(days=40)).replace(day=10)
    price_since(price_key=MODEL, rates=PRICE, since=begin)
    calls = []
    for number in range(40):
        at = begin + timedelta(minutes=number)
        item = hold(payer=Payer(team_id=team, account_id=uuid7()), effective_at=at)
        calls.append(PastCall(item, (used(total_ms=900),), at + timedelta(seconds=1)))
    refused = calls_book(calls)
    entries = LedgerEntry.objects.filter(team_id=team)
    assert (refused, entries.count()) == (40 - 12, 12)
    assert sum(entry.price or 0 for entry in entries) == Decimal("0.024")
    assert not entries.filter(late=True).exists()
    assert set(Reservation.objects.filter(team_id=team).values_list("state", flat=True)) == {"settled"}
    assert {entry.effective_at for entry in entries} == {call.hold.effective_at for call in calls[:12]}
    assert ledger_verify().differences == ()
