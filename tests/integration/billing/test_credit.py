"""Prepaid credit: a money limit of what was given, less what lapsed, is spent and is held. Amounts by hand."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from app.billing import tasks
from app.billing.credit import (
    GrantMissing,
    credit_correct,
    credit_grant,
    credit_of,
    credits_lapse,
    movements_of,
)
from app.billing.errors import BudgetExhausted
from app.billing.models import BudgetWindow, CreditMovement, LedgerEntry
from app.billing.selectors import ledger_rows, limits_remaining, totals
from app.billing.services import budget_set, reservation_hold, reservation_release, reservation_settle
from app.billing.types import Hold, Payer
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from tests.integration.billing.conftest import MakeHold, Spent, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal


def give(payer: Payer, amount: str, **changes: Any) -> int:
    assert payer.team_id
    values: dict[str, Any] = {"source": "invoice 7", "granted_by": "tests", **changes}
    return credit_grant(team_id=payer.team_id, amount=D(amount), **values)


def correct(payer: Payer, grant: int, amount: str, **changes: Any) -> int:
    assert payer.team_id
    values: dict[str, Any] = {"reason": "typed wrongly", "corrected_by": "tests", **changes}
    return credit_correct(team_id=payer.team_id, grant_id=grant, amount=D(amount), **values)


def left(payer: Payer) -> list[Decimal]:
    """(of the team, then of each grant, the one spent first coming first.)"""
    assert payer.team_id
    credit = credit_of(payer.team_id)
    assert credit
    return [credit.remaining, *(lot.remaining for lot in credit.lots)]


def spend(item: Hold, given: int = 1000, generated: int = 500) -> None:
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(given, generated)])


def pass_by(*grants: int) -> None:
    """As if the end of these grants had come."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE billing_creditmovement DISABLE TRIGGER billing_creditmovement_no_update")
        CreditMovement.objects.filter(id__in=grants).update(expires_at=now() - timedelta(seconds=1))
        cursor.execute("ALTER TABLE billing_creditmovement ENABLE TRIGGER billing_creditmovement_no_update")
    BudgetWindow.objects.filter(subject__startswith="c:").update(review_at=now() - timedelta(seconds=1))


def test_credit_is_a_limit_of_money(roomy: UUID, payer: Payer, hold: MakeHold, spent: Spent) -> None:
    """0.005 given; a call holds 0.002: two fit, a third does not; 0.001 more is what it lacked."""
    grant = give(payer, "0.005")
    first, second, third = hold(), hold(), hold(min_output_tokens=500)
    reservation_hold(hold=first)
    reservation_hold(hold=second)
    assert left(payer) == [D("0.001"), D("0.005")]
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=third)
    assert refused.value.detail["scope"] == "prepaid"
    assert refused.value.detail["remaining"] == "0.001"
    assert "prepaid credit" in refused.value.message
    correct(payer, grant, "0.001")
    reservation_hold(hold=third)
    for item in (first, second):
        reservation_settle(reservation_id=item.reservation_id, attempts=[used(100, 50)])
    reservation_release(reservation_id=third.reservation_id)
    # 0.006 less two calls of 0.0002
    assert left(payer) == [D("0.0056"), D("0.0056")]
    assert spent("prepaid") == (D("0.0004"), D(0))
    assert ledger_verify().differences == ()


def test_other_teams_and_teams_without_credit_are_not_touched(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    give(payer, "0.000000000000001")
    other = replace(payer, team_id=uuid7())
    spend(hold(payer=other))
    assert credit_of(other.team_id) is None
    assert "prepaid" not in {state.scope for state in limits_remaining(other)}
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold())


def test_a_teams_own_budget_stays_beside_its_credit(roomy: UUID, payer: Payer) -> None:
    budget_set(scope="team", unit="money", limit=1, period="month")
    give(payer, "2")
    assert (limit_of(payer, "team").limit, limit_of(payer, "prepaid").limit) == (1, 2)
    assert limit_of(payer, "prepaid").resets_at is None


def test_each_movement_is_a_row_and_an_entry_and_no_use(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    grant = give(payer, "5", expires_at=now() + timedelta(days=1))
    correct(payer, grant, "-2")
    spend(hold())
    pass_by(grant)
    assert tasks.credits_lapse() == 1
    assert credits_lapse() == 0
    assert [(m.kind, m.amount) for m in movements_of(payer.team_id)] == [
        ("expiry", D("-2.998")), ("correction", D(-2)), ("grant", D(5)),
    ]  # fmt: skip
    entries = LedgerEntry.objects.filter(credit__isnull=False).order_by("recorded_at")
    assert [(e.kind, e.credit, e.price, e.team_id) for e in entries] == [
        ("grant", D(5), D(0), payer.team_id),
        ("adjust", D(-2), D(0), payer.team_id),
        ("expiry", D("-2.998"), D(0), payer.team_id),
    ]
    assert {e.supersedes_id for e in entries[1:]} == {entries[0].id}
    assert (totals().entries, totals().price) == (1, D("0.002"))
    assert len(ledger_rows()) == 1
    assert left(payer) == [D(0), D(0)]
    assert str(CreditMovement.objects.order_by("id")[0]) == "grant 5.000000000000000 EUR"


def test_lapsed_credit_admits_no_call_though_nothing_has_swept(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    grant = give(payer, "1", expires_at=now() + timedelta(days=1))
    spend(hold())
    pass_by(grant)
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold())
    assert refused.value.detail["remaining"] == "0"
    assert LedgerEntry.objects.get(kind="expiry").credit == D("-0.998")


def test_what_a_running_call_holds_lapses_when_it_ends(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    """0.01 given and 0.002 held when it lapses: 0.008 goes at once, 0.0018 when the call ends with 0.0002."""
    grant = give(payer, "0.01", expires_at=now() + timedelta(days=1))
    running = hold()
    reservation_hold(hold=running)
    pass_by(grant)
    assert credits_lapse() == 1
    assert left(payer)[0] == 0
    reservation_settle(reservation_id=running.reservation_id, attempts=[used(100, 50)])
    assert credits_lapse() == 1
    assert [m.amount for m in movements_of(payer.team_id)][:2] == [D("-0.0018"), D("-0.008")]
    assert left(payer) == [D(0), D(0)]
    assert ledger_verify().differences == ()


def test_what_lapses_first_is_spent_first(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    lasting = give(payer, "0.01", source="bought")
    brief = give(payer, "0.003", expires_at=now() + timedelta(days=1), source="promotion")
    spend(hold())
    credit = credit_of(payer.team_id)
    assert [(lot.source, lot.given, lot.remaining) for lot in credit.lots] == [
        ("promotion", D("0.003"), D("0.001")),
        ("bought", D("0.01"), D("0.01")),
    ]
    spend(hold())
    assert left(payer) == [D("0.009"), D(0), D("0.009")]
    pass_by(brief)
    assert credits_lapse() == 0
    assert {lot.grant_id for lot in credit.lots} == {lasting, brief}


def test_what_was_spent_before_a_grant_did_not_come_from_it(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    """0.002 of the first is gone when the second comes; so all of the second lapses."""
    give(payer, "0.01")
    spend(hold())
    brief = give(payer, "0.005", expires_at=now() + timedelta(days=1))
    assert left(payer) == [D("0.013"), D("0.005"), D("0.008")]
    pass_by(brief)
    assert credits_lapse() == 1
    assert left(payer) == [D("0.008"), D(0), D("0.008")]


def test_more_used_than_held_is_owed_by_the_next_grant(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    give(payer, "0.002")
    spend(hold(), 1000, 1000)
    assert left(payer) == [D("-0.001"), D(0)]
    give(payer, "0.004")
    assert left(payer) == [D("0.003"), D(0), D("0.003")]


def test_a_correction_of_spent_credit_is_owed_by_the_others(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    first = give(payer, "0.002")
    give(payer, "0.01")
    spend(hold())
    correct(payer, first, "-0.0015")
    assert left(payer) == [D("0.0085"), D(0), D("0.0085")]


def test_a_repeat_moves_nothing(roomy: UUID, payer: Payer) -> None:
    grant = give(payer, "1", dedupe_key="order 9")
    assert give(payer, "1", dedupe_key="order 9") == grant
    row = correct(payer, grant, "1", dedupe_key="order 9, again")
    assert correct(payer, grant, "1", dedupe_key="order 9, again") == row
    assert left(payer) == [D(2), D(2)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"amount": D(0)}, "above 0"),
        ({"amount": D("NaN")}, "exact number"),
        ({"amount": 1.5}, "exact number"),
        ({"amount": D("1e-16")}, "exact number"),
        ({"amount": D("1e13")}, "exact number"),
        ({"expires_at": now()}, "in the past"),
    ],
)
def test_a_grant_that_cannot_be_is_refused(payer: Payer, changes: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"team_id": payer.team_id, "amount": D(1), "source": "", "granted_by": "t"}
    with pytest.raises(InvalidInput, match=words):
        credit_grant(**values | changes)
    assert not CreditMovement.objects.exists()


def test_a_correction_that_cannot_be_is_refused(payer: Payer) -> None:
    grant = give(payer, "1")
    for amount, reason, words in (
        ("0", "why", "other than 0"),
        ("1", " ", "a reason"),
        ("-1.5", "why", "grant is 1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            correct(payer, grant, amount, reason=reason)
    with pytest.raises(GrantMissing):
        correct(replace(payer, team_id=uuid7()), grant, "1")


def test_credit_is_not_set_as_a_limit(payer: Payer) -> None:
    with pytest.raises(InvalidInput, match="give the team credit"):
        budget_set(scope="prepaid", unit="money", limit=1, period="lifetime", team_id=payer.team_id)


@pytest.mark.parametrize("statement", ["UPDATE {} SET amount = 1", "DELETE FROM {}"])
def test_movements_cannot_be_changed(statement: str, payer: Payer) -> None:
    give(payer, "1")
    refused = pytest.raises(DatabaseError, match="never changed or removed")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format("billing_creditmovement"))


def test_verify_finds_credit_that_no_longer_adds_up(payer: Payer) -> None:
    give(payer, "1")
    BudgetWindow.objects.update(limit_snapshot=2)
    assert {item.check for item in ledger_verify().differences} == {"prepaid credit = sum of its movements"}
