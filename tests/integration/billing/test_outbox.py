"""Webhooks are told of every ledger entry, at least once, signed, whatever happens in between."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from app.billing.models import Delivery, LedgerEntry, Webhook
from app.billing.outbox import (
    ENTRIES,
    deliveries_again,
    outbox_send,
    webhook_add,
    webhook_close,
    webhook_open,
)
from app.billing.services import reservation_hold, reservation_release, reservation_settle, reservations_sweep
from app.billing.tasks import outbox_send as outbox_task
from app.billing.types import Payer
from app.common import delivering
from app.common.delivering import WAITS_S, deliveries_claim
from app.common.errors import Busy, InvalidInput
from app.common.models import uuid7
from app.common.outbound import OutboundRefused
from app.common.signing import signed_headers
from tests.integration.billing.conftest import MakeHold, used
from tests.integration.common.receiver import Received, Receiver, receiving

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("roomy")]


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    with receiving() as started:
        settings.OUTBOUND_ALLOW = [f"127.0.0.1:{started.port}"]
        yield started


@pytest.fixture
def hook(receiver: Receiver) -> tuple[Webhook, str]:
    return webhook_add(name="finance", url=f"{receiver.url}/hook")


def book(hold: MakeHold, **changes: object) -> UUID:
    item = hold(**changes)
    reservation_hold(hold=item)
    return reservation_settle(reservation_id=item.reservation_id, attempts=[used()]).entries[0].id


def told(receiver: Receiver) -> list[str]:
    return [r.headers["webhook-id"] for r in receiver.received]


def verify(got: Received, secret: str) -> None:
    """As a receiver does, by the words of the specification."""
    key = base64.b64decode(secret.split("_", 1)[1])
    content = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"


def later(webhook: Webhook) -> None:
    """As if the waits were over."""
    Delivery.objects.filter(webhook=webhook).update(next_at=timezone.now())
    Webhook.objects.filter(id=webhook.id).update(paused_until=None)


def test_every_entry_is_told_once_signed_with_its_own_id(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold, payer: Payer
) -> None:
    webhook, secret = hook
    entries = [str(book(hold)) for _ in range(3)]
    assert outbox_task() == 3
    assert sorted(told(receiver)) == sorted(entries)
    assert (outbox_send(), Delivery.objects.count()) == (0, 0)
    for got in receiver.received:
        verify(got, secret)
    webhook.refresh_from_db()
    assert (webhook.delivered, str(webhook.last_entry_id)) == (3, entries[-1])
    message = json.loads(next(r.body for r in receiver.received if r.headers["webhook-id"] == entries[0]))
    entry = LedgerEntry.objects.get(id=entries[0])
    assert message["type"] == "ledger.entry" and message["id"] == entries[0]
    data = message["data"]
    assert data["price"] == {"amount": "0.00200000", "currency": "EUR"}
    assert (data["cost"], data["team"], data["supersedes"]) == (None, str(payer.team_id), None)
    assert data["effective_at"] == entry.effective_at.isoformat().replace("+00:00", "Z")
    assert sum(Decimal(line["amount"]) for line in data["lines"]) == entry.price


def test_a_published_example_of_a_signature() -> None:
    """Svix's, which receivers' libraries are tested with."""
    headers = signed_headers(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(ValueError, match="whsec_ and base64"):
        signed_headers(secret="whsec_ä", message_id="x", at=1, body=b"")


def test_an_entry_that_was_rolled_back_is_told_to_nobody(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    with transaction.atomic():
        book(hold)
        transaction.set_rollback(True)
    assert (outbox_send(), Delivery.objects.count(), told(receiver)) == (0, 0, [])


def test_corrections_are_told_too(receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold) -> None:
    item = hold()
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(estimated=True)], by_sweeper=True)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(output=7)])
    assert outbox_send() == 3
    kinds = {json.loads(r.body)["data"]["kind"] for r in receiver.received}
    assert kinds == {"charge", "adjust"}
    assert reservation_release(reservation_id=item.reservation_id).replayed
    assert reservations_sweep() == []


def test_a_teams_webhook_hears_of_that_team_alone(receiver: Receiver, hold: MakeHold, payer: Payer) -> None:
    webhook_add(name="theirs", url=receiver.url, team_id=uuid7())
    webhook_add(name="ours", url=receiver.url, team_id=payer.team_id)
    entry = book(hold)
    assert outbox_send() == 1
    assert told(receiver) == [str(entry)]


@pytest.mark.parametrize("team_only", [False, True])
def test_what_was_booked_before_is_told_when_asked_for(
    receiver: Receiver, hold: MakeHold, payer: Payer, team_only: bool
) -> None:
    entries = [str(book(hold)) for _ in range(2)]
    stranger = str(book(hold, payer=Payer(team_id=uuid7())))
    webhook_add(name="all", url=receiver.url, from_start=True, team_id=payer.team_id if team_only else None)
    entries.append(str(book(hold)))
    assert outbox_send() == (3 if team_only else 4)
    assert sorted(told(receiver)) == sorted(entries + ([] if team_only else [stranger]))


def test_a_failure_is_tried_again_with_growing_waits_and_given_up_in_the_end(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    webhook, _ = hook
    entry = book(hold)
    receiver.statuses = [400] * (len(WAITS_S) + 1)
    for number, wait in enumerate((*WAITS_S, WAITS_S[-1]), 1):
        before = timezone.now()
        assert outbox_send() == 0
        row = Delivery.objects.get()
        assert (row.attempts, row.last_status, row.last_error) == (number, 400, "It answered 400.")
        assert before + timedelta(seconds=wait) <= row.next_at <= timezone.now() + timedelta(seconds=wait)
        assert outbox_send() == 0, "not before its time"
        later(webhook)
    assert Delivery.objects.get().state == "dead"
    assert outbox_send() == 0
    assert deliveries_again(delivery_ids=[]) == 0
    assert (deliveries_again(), outbox_send()) == (1, 1)
    assert told(receiver) == [str(entry)] * (len(WAITS_S) + 2)
    assert len({r.body for r in receiver.received}) == 1, "the same bytes each time"


@pytest.mark.parametrize("status", [500, 503, 429, None])
def test_a_webhook_that_is_away_is_left_in_peace(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold, settings: Settings, status: int | None
) -> None:
    webhook, _ = hook
    allowed = settings.OUTBOUND_ALLOW
    book(hold)
    if status is None:
        settings.OUTBOUND_ALLOW = []
    for failures, pause in ((1, 5), (2, 10)):
        receiver.statuses = [status] * failures if status else []
        assert outbox_send() == 0
        webhook.refresh_from_db()
        assert webhook.failures == failures
        assert webhook.paused_until > timezone.now() + timedelta(seconds=pause - 2)
        book(hold)
        assert outbox_send() == 0, "new entries wait as well"
        later(webhook)
    settings.OUTBOUND_ALLOW = allowed
    receiver.statuses = []
    assert outbox_send() == 3
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.paused_until, webhook.delivered) == (0, None, 3)


def test_one_bad_entry_holds_up_no_other(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    book(hold)
    receiver.statuses = [400]
    assert outbox_send() == 0
    book(hold)
    assert outbox_send() == 1
    assert Delivery.objects.get().attempts == 1


def test_more_than_a_batch_goes_in_one_run(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "BATCH", 2)
    for _ in range(5):
        book(hold)
    assert (outbox_send(batches=1), outbox_send(), len(receiver.received)) == (2, 3, 5)


def test_a_process_that_dies_while_sending_loses_nothing(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    webhook, _ = hook
    entry = book(hold)
    assert [c.message_id for c in deliveries_claim(ENTRIES, webhook.id)] == [entry], "and then it died"
    assert outbox_send() == 0, "while its lease lasts"
    later(webhook)
    assert outbox_send() == 1


def test_a_closed_webhook_goes_on_where_it_stopped(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    webhook, _ = hook
    first = book(hold)
    webhook_close(webhook=webhook)
    book(hold)
    assert outbox_send() == 0
    webhook_open(webhook=webhook)
    third = book(hold)
    assert outbox_send() == 2
    assert sorted(told(receiver)) == sorted([str(first), str(third)])


def test_a_webhook_is_checked_when_it_is_entered() -> None:
    with pytest.raises(OutboundRefused):
        webhook_add(name="x", url="https://127.0.0.1/")
    with pytest.raises(InvalidInput, match="needs a name"):
        webhook_add(name=" ", url="https://hooks.example/")
    assert Webhook.objects.count() == 0


def test_the_secret_is_kept_encrypted(hook: tuple[Webhook, str]) -> None:
    webhook, secret = hook
    assert secret not in Webhook.objects.get().secret
    assert Webhook.objects.get().plain_secret == secret
    assert str(webhook) == "finance"
    assert str(Delivery(webhook=webhook, entry_id=webhook.id)) == f"{webhook.id} to {webhook.id}"


@pytest.mark.django_db(transaction=True)
def test_an_entry_being_written_while_a_webhook_opens_is_not_missed(
    receiver: Receiver, hold: MakeHold
) -> None:
    """Its transaction began before the webhook was there, and commits after."""
    booked, opened = threading.Event(), threading.Event()
    entries: list[UUID] = []

    def write() -> None:
        try:
            with transaction.atomic():
                entries.append(book(hold))
                booked.set()
                opened.wait(0.3)
        finally:
            connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert booked.wait(10)
    webhook_add(name="all", url=receiver.url, from_start=True)
    opened.set()
    thread.join()
    assert outbox_send() == 1
    assert told(receiver) == [str(entries[0])]


@pytest.mark.django_db(transaction=True)
def test_opening_does_not_keep_settlements_waiting(receiver: Receiver, hold: MakeHold) -> None:
    webhook, _ = webhook_add(name="all", url=receiver.url)
    webhook_close(webhook=webhook)
    booked, refused = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with transaction.atomic():
                book(hold)
                booked.set()
                refused.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert booked.wait(10)
    with pytest.raises(Busy):
        webhook_open(webhook=webhook)
    refused.set()
    thread.join()
    assert not Webhook.objects.get().open


def test_the_command_shows_the_secret_once(receiver: Receiver) -> None:
    out = StringIO()
    call_command("webhook_add", receiver.url, name="books", team=str(uuid7()), stdout=out)
    webhook = Webhook.objects.get()
    assert (webhook.name, webhook.open) == ("books", True)
    assert webhook.plain_secret in out.getvalue()
    with pytest.raises(CommandError, match="--team takes the id"):
        call_command("webhook_add", receiver.url, team="Sales")
    with pytest.raises(CommandError, match="plain http"):
        call_command("webhook_add", "http://elsewhere.example/")


def test_a_webhook_whose_secret_cannot_be_read_holds_up_no_other(
    receiver: Receiver, hook: tuple[Webhook, str], hold: MakeHold
) -> None:
    Webhook.objects.filter(id=hook[0].id).update(secret="from another installation")
    other, _ = webhook_add(name="other", url=f"{receiver.url}/other")
    book(hold)
    assert outbox_send() == 1
    hook[0].refresh_from_db()
    assert hook[0].failures == 1
    assert not Delivery.objects.filter(webhook=other).exists()
    assert "FIELD_KEYS" in Delivery.objects.get(webhook=hook[0]).last_error
