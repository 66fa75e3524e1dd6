"""A hold is lowered once the prompt is known, never raised, and every balance follows."""

from decimal import Decimal
from uuid import UUID

import pytest

from app.billing.models import Reservation
from app.billing.services import (
    budget_set,
    price_set,
    reservation_hold,
    reservation_lower,
    reservation_release,
    reservation_settle,
)
from app.billing.types import Payer, Rate
from app.billing.verification import ledger_verify
from tests.integration.billing.conftest import MODEL, MakeHold, limit_of, used

pytestmark = pytest.mark.django_db
D = Decimal


def lower(item: object, tokens: int) -> bool:
    return reservation_lower(reservation_id=item.reservation_id, price_keys=[MODEL], input_tokens=tokens)  # type: ignore[attr-defined]


def test_what_the_prompt_does_not_need_is_free_for_others(priced: None, payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="money", limit=D("0.003"), period="month", team_id=payer.team_id)
    budget_set(scope="team", unit="tokens", limit=2200, period="month", team_id=payer.team_id)
    first, second = hold(), hold(input_tokens=200, output_tokens=500, min_output_tokens=500)
    reservation_hold(hold=first)

    assert lower(first, 400)

    assert limit_of(payer, "team").held == D("0.0014")
    assert limit_of(payer, "team", "tokens").held == 900
    # Without it the second would not fit: 0.002 + 0.0012 of 0.003.
    assert reservation_hold(hold=second).output_tokens == 500
    reservation_settle(reservation_id=first.reservation_id, attempts=[used(390, 500)])
    reservation_release(reservation_id=second.reservation_id)
    assert (limit_of(payer, "team").spent, limit_of(payer, "team").held) == (D("0.00139"), 0)
    assert (limit_of(payer, "team", "tokens").spent, limit_of(payer, "team", "tokens").held) == (890, 0)
    assert ledger_verify().differences == ()


@pytest.mark.parametrize("tokens", [1000, 1001, 5000])
def test_a_hold_is_never_raised(tokens: int, roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    assert not lower(item, tokens)
    assert limit_of(payer, "installation").held == D("0.002")


def test_a_hold_that_has_ended_stays_as_it_is(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used()])
    assert not lower(item, 10)
    assert not lower(hold(), 10)
    assert limit_of(payer, "installation").spent == D("0.002")


def test_what_is_held_beside_the_answer_stays_held(roomy: UUID, payer: Payer, hold: MakeHold) -> None:
    """A dear embedder beside a cheap model: its part does not shrink with the prompt."""
    price_set(price_key="embedder", rates=[Rate(component="input", price=D(50))], approved_by="tests")
    item = hold(extra=(("embedder", 40),))
    assert reservation_hold(hold=item).price == D("0.004")
    assert lower(item, 400)
    assert limit_of(payer, "installation").held == D("0.0034")


def test_more_than_the_lowered_hold_is_an_overshoot_and_late_truth_is_counted_once(
    roomy: UUID, payer: Payer, hold: MakeHold
) -> None:
    item = hold()
    reservation_hold(hold=item)
    assert lower(item, 400)
    Reservation.objects.update(state="expired")
    settled = reservation_settle(reservation_id=item.reservation_id, attempts=[used(900, 500)])
    assert (settled.late, settled.overshoot) == (True, True)
    assert limit_of(payer, "installation").spent == D("0.0019")


def test_an_unknown_price_is_lowered_in_tokens_alone(payer: Payer, hold: MakeHold) -> None:
    budget_set(scope="team", unit="tokens", limit=5000, period="month", team_id=payer.team_id)
    item = hold(price_key="never-priced")
    reservation_hold(hold=item)
    assert reservation_lower(
        reservation_id=item.reservation_id, price_keys=["never-priced"], input_tokens=100
    )
    assert limit_of(payer, "team", "tokens").held == 600
