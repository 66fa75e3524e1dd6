"""What a server paid by the hour costs and brings in. Amounts by hand."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from app.billing import pricing
from app.billing.late import provisioned_book
from app.billing.models import BusyHour, PriceVersion
from app.billing.own_servers import Recovery, idle_share, recovery_of
from app.billing.rates import provisioned_set
from app.billing.rollups import rollups_rebuild
from app.billing.services import reservation_hold, reservation_settle
from app.billing.verification import ledger_verify
from app.common.clock import now
from app.common.models import uuid7
from tests.integration.billing.conftest import MakeHold, used

pytestmark = pytest.mark.django_db
D = Decimal


@pytest.fixture
def deployment() -> UUID:
    return uuid7()


def this_hour(deployment: UUID) -> datetime:
    """The deployment costs 3 an hour from the hour that runs now; that hour is booked."""
    version = provisioned_set(deployment_id=deployment, per_hour=D(3), approved_by="t")
    start = version.effective_from - timedelta(hours=1)
    old = PriceVersion.objects.get(pk=version.version_id)
    # As if it had been set an hour ago.
    old.pk, old.effective_from, old.effective_to = uuid7(), start, version.effective_from
    old.save(force_insert=True)
    old.components.create(component="provisioned_hour", per_units=1, price=D(3))
    assert provisioned_book(at=version.effective_from) == 1
    return start


def test_nothing_booked_is_unknown_not_idle(deployment: UUID) -> None:
    empty = recovery_of(deployment_id=deployment, from_=now() - timedelta(days=1), to=now())
    assert empty == Recovery(
        deployment_id=deployment,
        hours=0,
        provisioned=D(0),
        recovered=D(0),
        tokens=0,
        idle_share=None,
        per_million=None,
    )


def test_what_is_recovered_and_how_long_it_was_idle(deployment: UUID, hold: MakeHold, roomy: UUID) -> None:
    """One hour for 3; two calls of 1500 tokens and 0.002 each: 3 × 1e6 / 3000 = 1000 for a million tokens.

    They ran at the same time, 2 ms: that time counts once.
    """
    start = this_hour(deployment)
    for _ in range(2):
        item = hold(deployment_id=deployment)
        reservation_hold(hold=item)
        reservation_settle(reservation_id=item.reservation_id, attempts=[used(total_ms=2)])
    found = recovery_of(deployment_id=deployment, from_=start, to=start + timedelta(hours=2))
    assert (found.hours, found.provisioned, found.recovered, found.tokens) == (1, D(3), D("0.004"), 3000)
    assert found.per_million == D(1000)
    busy = (1 - found.idle_share) * 3600
    assert D("0.002") <= busy <= D("0.004")


def test_hours_that_are_over_are_summed_once(deployment: UUID, hold: MakeHold, roomy: UUID) -> None:
    start = this_hour(deployment)
    item = hold(deployment_id=deployment)
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(total_ms=700)])
    span = {
        "deployment_id": deployment,
        "from_": start - timedelta(days=400),
        "to": start + timedelta(hours=1),
    }
    before = idle_share(**span)
    assert before is not None
    assert before < 1
    assert not BusyHour.objects.exists()
    assert provisioned_book(at=start + timedelta(hours=5)) == 4
    assert BusyHour.objects.filter(deployment_id=deployment).count() == 2
    assert idle_share(**span) == pytest.approx(before, abs=D("0.000001"))
    assert idle_share(**span | {"to": start + timedelta(hours=9)}) == pytest.approx(
        1 - (1 - before) / 5, abs=D("0.000001")
    )
    check = "hours of own servers = time of their calls"
    assert check not in {d.check for d in ledger_verify().differences}
    BusyHour.objects.update(seconds=1000)
    assert idle_share(**span) == pytest.approx(1 - D(1000) / 3600)
    assert check in {d.check for d in ledger_verify().differences}
    rollups_rebuild()
    assert idle_share(**span) == before


@pytest.mark.parametrize(
    ("per_hour", "tokens", "utilisation", "price"),
    [
        ("2.7", "1500", "0.5", "1"),
        # 1 × 1e6 / (7 × 3600) = 39.682539682…
        ("1", "7", "1", "39.682539683"),
        ("0", "10", "0.1", "0"),
    ],
)
def test_a_proposal_recovers_the_cost(per_hour: str, tokens: str, utilisation: str, price: str) -> None:
    proposed = pricing.proposal(per_hour=D(per_hour), tokens_per_second=D(tokens), utilisation=D(utilisation))
    assert proposed == D(price)


@pytest.mark.parametrize(("tokens", "utilisation"), [("0", "1"), ("1", "0"), ("1", "1.1")])
def test_a_proposal_from_nothing_is_refused(tokens: str, utilisation: str) -> None:
    with pytest.raises(ValueError, match="utilisation above 0"):
        pricing.proposal(per_hour=D(1), tokens_per_second=D(tokens), utilisation=D(utilisation))
