"""Retention: what is past its team's time goes, nothing else does, and the ledger keeps every row."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from app.accounts.models import Team, User
from app.accounts.selectors import Caller
from app.audit.models import AuditEntry
from app.billing.models import LedgerEntry, UsageAttempt
from app.billing.services import reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer
from app.billing.verification import ledger_verify
from app.chat.attaching import attachments_collection
from app.chat.models import Conversation, RetentionRule, SentPassage, Turn, TurnState
from app.chat.retention import retention_run
from app.chat.selectors import conversations_of
from app.common.clock import now
from app.common.models import uuid7
from retrieval.models import Document
from tests.api.admin.conftest import booked as booked  # noqa: PLC0414 - a fixture
from tests.factories import (
    collection_make,
    conversation_make,
    document_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)

pytestmark = pytest.mark.django_db
Aged = Callable[..., Conversation]


@pytest.fixture
def aged(user: User) -> Aged:
    """Makes a conversation in which somebody asked so long ago, with a passage that was sent."""

    def make(team: Team, *, hours: float, **turn: object) -> Conversation:
        row = conversation_make(user=user, team=team)
        passage_make(
            turn=turn_make(conversation=row, **turn), collection=collection_make(team=team, user=user)
        )
        Conversation.objects.filter(pk=row.pk).update(updated_at=now() - timedelta(hours=hours))
        return row

    return make


def left() -> set[object]:
    return set(Conversation.objects.values_list("pk", flat=True))


def test_without_a_rule_everything_stays(aged: Aged, team: Team) -> None:
    old = aged(team, hours=24 * 4000)
    assert retention_run()["conversations"] == 0
    assert left() == {old.pk}


def test_a_file_that_nobody_asked_about_goes_after_a_week(
    aged: Aged, team: Team, user: User, caller: Caller, originals_dir: Path
) -> None:
    def attached(**fields: object) -> Conversation:
        row = conversation_make(user=user, team=team, **fields)
        document_make(collection=attachments_collection(caller=caller, conversation=row), name="boiler.txt")
        return row

    forgotten, named, pinned = attached(), attached(title="Boiler"), attached(pinned=True)
    asked = attached()
    turn_make(conversation=asked)
    by_program = conversation_make(user=user, team=team)
    shown = dict(conversations_of(caller).values_list("pk", "first_file"))
    assert shown[forgotten.pk] == "boiler.txt" and shown[by_program.pk] is None
    assert retention_run(moment=now() + timedelta(days=6.9))["conversations"] == 0
    assert retention_run(moment=now() + timedelta(days=7.1))["conversations"] == 1
    assert left() == {named.pk, pinned.pk, asked.pk, by_program.pk}
    assert Document.objects.count() == 3


def test_a_team_goes_by_its_own_rule_and_the_others_by_the_installations(
    aged: Aged, team: Team, user: User
) -> None:
    brief, quiet = team_make(owner=user), team_make(owner=user)
    RetentionRule.objects.create(conversations="days", days=30)
    RetentionRule.objects.create(team=brief, conversations="not_stored")
    RetentionRule.objects.create(team=quiet, conversations="keep")
    kept = {
        aged(team, hours=29 * 24).pk,
        aged(brief, hours=0.9).pk,
        aged(quiet, hours=24 * 400).pk,
        # Asked long ago, and being answered right now.
        aged(team, hours=24 * 31, state=TurnState.RUNNING).pk,
    }
    aged(team, hours=24 * 31)
    aged(brief, hours=1.1)
    assert retention_run()["conversations"] == 2
    assert left() == kept
    assert Turn.objects.count() == SentPassage.objects.count() == len(kept)
    assert retention_run()["conversations"] == 0


def test_calls_over_documents_that_belong_to_no_conversation_go_too(team: Team, user: User) -> None:
    RetentionRule.objects.create(team=team, conversations="days", days=2)
    turn = turn_make(
        conversation=conversation_make(user=user, team=team), started_at=now() - timedelta(days=3)
    )
    Turn.objects.update(conversation=None)
    assert retention_run()["turns"] == 1
    assert not Turn.objects.filter(pk=turn.pk).exists()


def test_the_ledger_stays_and_forgets_only_what_the_server_wrote(booked: LedgerEntry) -> None:
    hold = Hold(
        reservation_id=uuid7(), payer=Payer(team_id=booked.team_id, account_id=booked.account_id), kind="chat",
        deployment_id=uuid7(), price_key="chat/m", input_tokens=10, output_tokens=10,
    )  # fmt: skip
    reservation_hold(hold=hold)
    attempt = Attempt(
        buckets=Buckets(input=10, output=5), requested_model="m", raw_usage={"prompt_tokens": 10}
    )
    reservation_settle(reservation_id=hold.reservation_id, attempts=[attempt], hold=hold)
    entries = list(LedgerEntry.objects.order_by("id").values())
    assert retention_run(moment=now() + timedelta(days=29))["raw_usage"] == 0
    assert retention_run(moment=now() + timedelta(days=31))["raw_usage"] == 1
    assert not UsageAttempt.objects.exclude(raw_usage=None).exists()
    assert list(LedgerEntry.objects.order_by("id").values()) == entries
    assert ledger_verify().differences == ()


def test_a_run_takes_a_bite_and_the_next_one_the_rest(aged: Aged, team: Team) -> None:
    RetentionRule.objects.create(conversations="days", days=1)
    for _ in range(3):
        aged(team, hours=25)
    assert [retention_run(limit=2)["conversations"] for _ in range(3)] == [2, 1, 0]


def test_staff_set_a_rule_and_that_is_written_down(client: Client, team: Team) -> None:
    staff = user_make(is_staff=True)
    client.force_login(staff)
    address = "/admin/chat/retentionrule/add/"
    fields = {"team": team.pk, "conversations": "days", "days": "", "raw_usage_days": "30"}
    assert "nowhere else" in client.post(address, fields).content.decode()
    assert client.post(address, fields | {"days": "14"}).status_code == 302
    assert "change that one" in client.post(address, fields | {"days": "9"}).content.decode()
    entry = AuditEntry.objects.get(verb="retention_changed")
    assert (entry.actor_account, entry.team_id) == (staff.account_id, team.pk)
    assert "14 days" in entry.after
