"""A payer without any budget but those a test sets, and one priced model."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from app.billing.models import Budget
from app.billing.selectors import limits_remaining
from app.billing.services import budget_set, price_set
from app.billing.types import Attempt, Buckets, Hold, LimitState, Payer, Rate
from app.common.models import uuid7

D = Decimal
MakeHold = Callable[..., Hold]
Spent = Callable[..., tuple[Decimal, Decimal]]

MODEL = "test-model"
PRICE = (
    Rate(component="input", price=D(1)),
    Rate(component="cache_read", price=D("0.1")),
    Rate(component="output", price=D(2)),
)
"""Per million: 1000 input and 500 output tokens cost 0.002 at most."""


@pytest.fixture(autouse=True)
def _no_defaults(request: pytest.FixtureRequest, settings: Settings) -> None:
    """The defaults of a new installation would stand beside the limits under test."""
    marker = request.node.get_closest_marker("django_db")
    if marker is not None:
        request.getfixturevalue("transactional_db" if marker.kwargs.get("transaction") else "db")
        Budget.objects.update(active=False)
    settings.CURRENCY = "EUR"
    settings.ALLOW_UNLIMITED_SPEND = False
    settings.INSTALLATION_ZONE = "UTC"


@pytest.fixture
def payer() -> Payer:
    return Payer(team_id=uuid7(), account_id=uuid7(), key_id=uuid7())


@pytest.fixture
def hold(payer: Payer) -> MakeHold:
    """Makes a hold of `payer` for 1000 + 500 tokens unless told otherwise."""

    def make(**changes: Any) -> Hold:
        values: dict[str, Any] = {
            "reservation_id": uuid7(),
            "payer": payer,
            "kind": "chat",
            "price_key": MODEL,
            "input_tokens": 1000,
            "output_tokens": 500,
        }
        return Hold(**{**values, **changes})

    return make


@pytest.fixture
def priced() -> None:
    price_set(price_key=MODEL, rates=PRICE, approved_by="tests")


@pytest.fixture
def roomy(priced: None) -> UUID:
    """A price, and an installation budget that is never in the way."""
    return budget_set(scope="installation", unit="money", limit=1000, period="month", name="everything")


@pytest.fixture
def spent(payer: Payer) -> Spent:
    """(spent, held) of the payer's limit of a scope and unit."""

    def read(scope: str, unit: str = "money") -> tuple[Decimal, Decimal]:
        (state,) = [x for x in limits_remaining(payer) if (x.scope, x.unit) == (scope, unit)]
        return state.spent, state.held

    return read


def used(input_: int = 1000, output: int = 500, **changes: Any) -> Attempt:
    """An attempt that completed and used so many tokens."""
    return Attempt(buckets=Buckets(input=input_, output=output), **changes)


def limit_of(payer: Payer, scope: str, unit: str = "money") -> LimitState:
    """The payer's one limit of a scope and unit."""
    (found,) = [state for state in limits_remaining(payer) if (state.scope, state.unit) == (scope, unit)]
    return found
