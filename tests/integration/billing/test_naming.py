"""Whom a refusal names, and asking for more from many places at once."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import connection

from app.accounts.models import Team, User
from app.billing.models import BudgetWindow, LimitRequest
from app.billing.naming import covers_of
from app.billing.raising import limit_request_create, limit_request_grant
from app.billing.services import budget_set, price_set, reservation_hold
from app.billing.types import Hold, Payer, Rate
from app.common.errors import Conflict
from app.common.models import uuid7
from tests.factories import key_make

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_scope_is_named_as_its_person_knows_it(user: User, team: Team) -> None:
    key = key_make(user=user, team=team).row
    named = {
        "i": "of this installation",
        f"t:{team.id}": f"of team “{team}”",
        f"c:{team.id}": f"of the prepaid credit of team “{team}”",
        f"a:{team.id}:{user.account_id}": f"for you in team “{team}”",
        f"p:{user.account_id}": "for you",
        f"k:{key.id}": f"of the key “test key” ({key.prefix}…)",
        f"k:{team.id}": "of the key that was used",
        f"t:{key.id}": "of team (unknown)",
    }
    assert {subject: covers_of(subject).phrase for subject in named} == named


@pytest.fixture
def window(team: Team) -> BudgetWindow:
    price_set(price_key="free", rates=[Rate(component="input", price=Decimal(0))], approved_by="tests")
    budget_set(scope="team", unit="requests", limit=5, period="day", team_id=team.id)
    payer = Payer(team_id=team.id)
    reservation_hold(
        hold=Hold(reservation_id=uuid7(), payer=payer, kind="chat", price_key="free", input_tokens=1)
    )
    return BudgetWindow.objects.get(subject=f"t:{team.id}")


def test_asking_at_once_is_one_request(window: BudgetWindow, team: Team) -> None:
    def ask(_: int) -> object:
        try:
            return limit_request_create(window_id=window.id, payer=Payer(team_id=team.id))[0].id
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(16)))) == 1


def test_prepaid_credit_is_not_raised_but_granted(window: BudgetWindow, team: Team) -> None:
    BudgetWindow.objects.filter(id=window.id).update(subject=f"c:{team.id}")
    request = limit_request_create(window_id=window.id, payer=Payer(team_id=team.id))[0]
    with pytest.raises(Conflict, match="grows by a grant alone"):
        limit_request_grant(request=request, amount=Decimal(1), decided_by="user:x")
    assert LimitRequest.objects.get().state == "open"
