"""A made-up year: refused beside a real one, the same for the same seed, and a ledger that verifies."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, Sum

from app.accounts.models import Team, User
from app.accounts.services import user_create
from app.billing.budgets import bootstrap_defaults
from app.billing.models import LedgerEntry, PriceVersion, Statement, UsageAttempt
from app.billing.verification import ledger_verify
from app.catalog.models import Deployment
from app.catalog.selectors import targets
from app.chat.models import Turn, TurnTiming
from app.chat.stages import STAGES
from tests.factories import user_make

pytestmark = pytest.mark.django_db


def test_it_is_refused_where_people_are(user: User) -> None:
    user_make()
    with pytest.raises(CommandError, match="used this installation already"):
        call_command("seed_demo", stdout=StringIO())
    assert not PriceVersion.objects.filter(price_key__startswith="demo/").exists()


@pytest.mark.parametrize("arguments", [("--people", "3"), ("--months", "99")])
def test_it_is_refused_beyond_its_bounds(arguments: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match="Nothing was written"):
        call_command("seed_demo", *arguments, stdout=StringIO())


@pytest.mark.prove
def test_a_month_of_fifty_teams() -> None:
    bootstrap_defaults()
    user_create(email="admin@example.org", password=None, is_staff=True)
    out = StringIO()
    call_command("seed_demo", "--people", "50", "--months", "1", stdout=out)
    assert Team.objects.filter(is_personal=False).count() == 50
    assert ledger_verify().differences == ()
    kinds = dict(LedgerEntry.objects.values_list("call_kind").annotate(Count("id")))
    assert set(kinds) == {"chat", "embedding", "title", "provisioned"}
    attempts = UsageAttempt.objects.filter(kind="chat")
    assert attempts.filter(estimated=True).exists()
    assert attempts.filter(outcome="failed", billed=False).exists()
    assert attempts.aggregate(n=Sum("reasoning_tokens"))["n"] > 0
    assert attempts.aggregate(n=Sum("cache_read_tokens"))["n"] > 0
    assert Turn.objects.exists()
    assert TurnTiming.objects.exists()
    for timing in TurnTiming.objects.all():
        assert sum(timing.stages.values()) == pytest.approx(timing.total_ms) and set(timing.stages) <= set(
            STAGES
        )
        assert Turn.objects.filter(id=timing.id).exists()
    assert Statement.objects.exists(), "the month before this one is over"
    # No visitor's question ever reaches one of its servers.
    assert Deployment.objects.filter(public_name="atlas-large").exists()
    assert targets("chat") == []
    with pytest.raises(CommandError, match="used this installation already"):
        call_command("seed_demo", stdout=StringIO())
