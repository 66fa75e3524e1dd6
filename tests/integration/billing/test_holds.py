"""What a hold takes, when it shrinks, and what it says when there is no room."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from app.billing.errors import BudgetExhausted, BudgetMissing, PriceMissing
from app.billing.estimating import call_price
from app.billing.models import LedgerEntry, Reservation
from app.billing.selectors import limits_remaining
from app.billing.services import (
    budget_set,
    price_set,
    reservation_hold,
    reservation_release,
    reservation_settle,
)
from app.billing.types import Payer, Rate
from app.common.models import uuid7
from tests.integration.billing.conftest import MODEL, MakeHold, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal


def test_every_level_holds_the_same_amount(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="money", limit=5, period="month", team_id=payer.team_id)
    budget_set(scope="allowance", unit="money", limit=4, period="week")
    budget_set(scope="person", unit="money", limit=3, period="day", account_id=payer.account_id)
    budget_set(scope="key", unit="money", limit=2, period="lifetime", key_id=payer.key_id)

    held = reservation_hold(hold=hold())

    assert (held.output_tokens, held.shrunk, held.price) == (500, False, D("0.002"))
    states = limits_remaining(payer)
    assert [state.scope for state in states] == ["installation", "team", "allowance", "person", "key"]
    assert {state.held for state in states} == {D("0.002")}
    assert [state.remaining for state in states] == [D(n) - D("0.002") for n in (1000, 5, 4, 3, 2)]
    assert states[4].resets_at is None
    assert all(state.resets_at for state in states[:4])


@pytest.mark.parametrize("scope", ["installation", "team", "allowance", "person", "key"])
def test_each_level_refuses_alone_and_nothing_stays_held(
    scope: Any, priced: None, payer: Payer, hold: MakeHold
) -> None:
    budget_set(scope="installation", unit="money", limit=100, period="month")
    budget_set(scope="team", unit="money", limit=100, period="month")
    ids = {"team": "team_id", "person": "account_id", "key": "key_id"}
    named = {ids[scope]: getattr(payer, ids[scope])} if scope in ids else {}
    budget_set(scope=scope, unit="money", limit=D("0.0011"), period="month", name="the small one", **named)

    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold(min_output_tokens=100))

    assert refused.value.detail["scope"] == scope
    assert refused.value.detail["name"] == "the small one"
    assert (refused.value.detail["limit"], refused.value.detail["remaining"]) == ("0.0011", "0.0011")
    assert refused.value.retry_after is not None
    assert {state.held for state in limits_remaining(payer)} == {D(0)}
    assert not Reservation.objects.exists()


def test_the_cap_shrinks_before_a_call_is_refused(priced: None, payer: Payer, hold: MakeHold) -> None:
    # 0.0016 less 1000 × 1 millionth leaves 0.0006: 300 tokens at 2 millionths.
    budget_set(scope="team", unit="money", limit=D("0.0016"), period="month", team_id=payer.team_id)

    held = reservation_hold(hold=hold())

    assert (held.output_tokens, held.shrunk, held.price) == (300, True, D("0.0016"))
    assert limit_of(payer, "team").remaining == 0


def test_the_cap_never_shrinks_below_the_floor(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="money", limit=D("0.0015"), period="month", team_id=payer.team_id)
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold(min_output_tokens=251))
    assert reservation_hold(hold=hold(min_output_tokens=250)).output_tokens == 250


def test_tokens_and_requests_count_chat_calls(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="tokens", limit=3000, period="day", team_id=payer.team_id)
    budget_set(scope="team", unit="requests", limit=2, period="day", team_id=payer.team_id)
    first, second = hold(), hold()
    for item in (first, second):
        reservation_hold(hold=item)
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold(input_tokens=1, output_tokens=1))
    assert refused.value.detail["unit"] in {"tokens", "requests"}

    for kind in ("embedding", "rerank", "title", "condense", "probe"):
        reservation_hold(hold=hold(kind=kind))

    reservation_release(reservation_id=first.reservation_id)
    reservation_settle(reservation_id=second.reservation_id, attempts=[used(900, 400)])
    assert limit_of(payer, "team", "tokens").spent == 1300
    assert limit_of(payer, "team", "requests").spent == 1
    assert limit_of(payer, "team", "tokens").held == 0


def test_a_limit_of_zero_means_nothing(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="money", limit=0, period="month", team_id=payer.team_id)
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold(min_output_tokens=0))


def test_a_free_model_passes_a_money_limit_of_zero(payer: Payer, hold: MakeHold) -> None:
    free = (Rate(component="input", price=D(0)), Rate(component="output", price=D(0)))
    price_set(price_key=MODEL, rates=free, approved_by="tests")
    budget_set(scope="team", unit="money", limit=0, period="month", team_id=payer.team_id)

    item = hold()
    assert reservation_hold(hold=item).price == 0
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])

    assert (settled.price, settled.price_missing) == (D(0), False)


def test_a_free_model_does_not_pass_a_token_limit(payer: Payer, hold: MakeHold) -> None:
    price_set(
        price_key=MODEL,
        rates=[Rate(component="input", price=D(0)), Rate(component="output", price=D(0))],
        approved_by="tests",
    )
    budget_set(scope="team", unit="tokens", limit=100, period="month", team_id=payer.team_id)
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold())


def test_a_default_allowance_counts_each_person_apart(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="allowance", unit="requests", limit=1, period="month")
    other = Payer(team_id=payer.team_id, account_id=uuid7())
    reservation_hold(hold=hold())
    reservation_hold(hold=hold(payer=other))
    for who in (payer, other):
        with pytest.raises(BudgetExhausted):
            reservation_hold(hold=hold(payer=who))


@pytest.mark.parametrize("own", ["team", "person"])
def test_an_own_allowance_replaces_the_default(own: str, roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="allowance", unit="requests", limit=0, period="month")
    account = payer.account_id if own == "person" else None
    budget_set(
        scope="allowance", unit="requests", limit=1, period="day", team_id=payer.team_id, account_id=account
    )
    reservation_hold(hold=hold())
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold())
    assert refused.value.limit.period == "day"


def test_a_refusal_names_the_limit_that_resets_last(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="person", unit="money", limit=0, period="day", account_id=payer.account_id)
    budget_set(scope="team", unit="money", limit=0, period="lifetime", team_id=payer.team_id)
    with pytest.raises(BudgetExhausted) as refused:
        reservation_hold(hold=hold())
    assert refused.value.detail["scope"] == "team"
    assert refused.value.detail["resets_at"] is None
    assert "does not reset by itself" in refused.value.message


def test_a_soft_limit_warns_and_admits(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget_set(
        scope="team", unit="money", limit=D("0.001"), period="month", team_id=payer.team_id, hard=False
    )
    held = reservation_hold(hold=hold())
    assert held.output_tokens == 500
    assert [(state.scope, state.hard) for state in held.soft] == [("team", False)]
    assert limit_of(payer, "team").remaining == 0


def test_an_unknown_price_refuses_where_money_is_limited(payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="money", limit=100, period="month", team_id=payer.team_id)
    with pytest.raises(PriceMissing) as refused:
        reservation_hold(hold=hold(price_key="never-priced"))
    assert refused.value.detail["price_key"] == "never-priced"
    assert not Reservation.objects.exists()


def test_an_unknown_price_without_a_money_budget_is_recorded_as_unknown(payer: Payer, hold: MakeHold) -> None:
    item = hold(price_key="never-priced")
    assert reservation_hold(hold=item).price is None
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert (settled.price, settled.price_missing) == (None, True)
    entry = LedgerEntry.objects.get()
    assert (entry.price, entry.price_missing, entry.input_tokens) == (None, True, 1000)


def test_a_price_in_a_currency_of_before_is_none(
    payer: Payer, hold: MakeHold, priced: None, settings: Settings
) -> None:
    """One million tokens for 1 EUR are not one million for 1 JPY, before a call as little as after it."""
    usual = {"team_id": payer.team_id, "input_tokens": 1000, "output_tokens": 500}
    assert call_price(MODEL, **usual) == D("0.002")
    settings.CURRENCY = "JPY"
    settings.ALLOW_UNLIMITED_SPEND = True
    assert call_price(MODEL, **usual) is None
    item = hold()
    assert reservation_hold(hold=item).price is None
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert (settled.price, settled.price_missing) == (None, True)
    budget_set(scope="team", unit="money", limit=100, period="month", team_id=payer.team_id)
    with pytest.raises(PriceMissing, match="no price for JPY"):
        reservation_hold(hold=hold())


def test_a_price_without_output_refuses_a_call_that_generates(payer: Payer, hold: MakeHold) -> None:
    price_set(price_key=MODEL, rates=[Rate(component="input", price=D(1))], approved_by="tests")
    budget_set(scope="team", unit="money", limit=100, period="month", team_id=payer.team_id)
    with pytest.raises(PriceMissing, match="output"):
        reservation_hold(hold=hold())
    assert reservation_hold(hold=hold(kind="embedding", output_tokens=0)).price == D("0.001")


def test_a_priced_model_needs_a_money_budget(priced: None, hold: MakeHold, settings: Settings) -> None:
    with pytest.raises(BudgetMissing):
        reservation_hold(hold=hold())
    settings.ALLOW_UNLIMITED_SPEND = True
    assert reservation_hold(hold=hold()).state == "held"


def test_the_dearest_route_is_held(roomy: UUID, hold: MakeHold) -> None:
    price_set(
        price_key="dear",
        rates=[Rate(component="input", price=D(3)), Rate(component="output", price=D(1))],
        approved_by="tests",
    )
    # 1000 × 3 + 500 × 1 against 1000 × 1 + 500 × 2 millionths
    assert reservation_hold(hold=hold(fallback_price_keys=("dear",))).price == D("0.0035")


def test_the_query_embedding_is_held_beside_the_answer(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    price_set(price_key="embedder", rates=[Rate(component="input", price=D("0.5"))], approved_by="tests")
    budget_set(scope="team", unit="tokens", limit=1500, period="day", team_id=payer.team_id)
    item = hold(extra=(("embedder", 40),))
    assert reservation_hold(hold=item).price == D("0.00202")

    settled = reservation_settle(
        reservation_id=item.reservation_id,
        attempts=[
            used(30, 0, number=1, kind="embedding", price_key="embedder"),
            used(1000, 500, number=2),
        ],
    )

    assert settled.price == D("0.002015")
    assert (settled.input_tokens, settled.output_tokens, settled.overshoot) == (1000, 500, False)
    assert limit_of(payer, "team", "tokens").spent == 1500
    assert set(LedgerEntry.objects.values_list("call_kind", flat=True)) == {"embedding", "chat"}


def test_an_unpriced_query_embedding_refuses_the_turn(roomy: UUID, hold: MakeHold) -> None:
    with pytest.raises(PriceMissing, match="never-priced"):
        reservation_hold(hold=hold(extra=(("never-priced", 10),)))


def test_a_limit_of_one_model_leaves_others_alone(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    other = "other-model"
    price_set(
        price_key=other,
        rates=[Rate(component="input", price=D(1)), Rate(component="output", price=D(1))],
        approved_by="t",
    )
    budget_set(scope="team", unit="requests", limit=0, period="day", team_id=payer.team_id, price_key=other)
    reservation_hold(hold=hold())
    with pytest.raises(BudgetExhausted):
        reservation_hold(hold=hold(price_key=other))
