"""webhooks/: an address hears when a document, an answer or an export has ended: signed, at least once, its own."""

import json
from collections.abc import Iterable, Iterator

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from app.accounts.models import Role
from app.accounts.services import membership_set
from app.api.jobs import MOST
from app.api.models import JobDelivery, JobEvent, JobWebhook
from app.api.tasks import jobs_prune, jobs_tell
from app.audit.models import AuditEntry, Verb
from app.common.delivering import WAITS_S
from app.common.models import uuid7
from app.ops.exports import export_begin, export_make
from inference_client.testing.fault_server import Script
from retrieval.models import Collection, Status
from tests.api.scripted import call
from tests.factories import (
    collection_make,
    conversation_make,
    document_make,
    document_ready_make,
    key_make,
    team_make,
    user_make,
)
from tests.integration.billing.test_outbox import verify
from tests.integration.common.receiver import Received, Receiver, receiving

pytestmark = pytest.mark.django_db
HOOKS = "/api/v1/webhooks/"


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    with receiving() as started:
        settings.OUTBOUND_ALLOW = [f"127.0.0.1:{started.port}"]
        yield started


@pytest.fixture
def client(client_for, api_key):
    return client_for(api_key)


@pytest.fixture
def document(originals_dir, team, user):
    return document_make(collection=collection_make(team=team, user=user))


def made(client, receiver: Receiver, **wishes) -> dict:
    body = {"name": "my app", "url": f"{receiver.url}/hook"} | wishes
    answer = client.post(HOOKS, body, format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def ended(document, status: str = Status.READY, **fields: str) -> None:
    document.status = status
    for name, value in fields.items():
        setattr(document, name, value)
    document.save()


def told(receiver: Receiver) -> list[tuple[str, dict]]:
    messages = [json.loads(got.body) for got in receiver.received]
    return [(message["type"], message["data"]) for message in messages]


def later(hook: dict) -> None:
    """As if the waits were over."""
    JobDelivery.objects.filter(webhook=hook["id"]).update(next_at=timezone.now())
    JobWebhook.objects.filter(id=hook["id"]).update(paused_until=None)


def test_a_document_that_is_ready_or_failed_is_told_signed_and_without_content(
    client, receiver, document, team
):
    hook = made(client, receiver)
    ended(document, Status.PARSING)
    ended(document)
    ended(document)
    ended(document, Status.FAILED, error_step="parsing", error_code="damaged", error_message="secret words")
    assert jobs_tell() == 2
    for got in receiver.received:
        verify(got, hook["secret"])
    (first, ready), (second, failed) = sorted(told(receiver), reverse=True)
    assert (first, second) == ("document.ready", "document.failed")
    url = f"/api/v1/documents/{document.id}/"
    assert ready == {
        "document": str(document.id), "collection": str(document.collection_id), "team": str(team.id),
        "version": 1, "status": "ready", "error": None, "url": url,
    }  # fmt: skip
    assert failed["error"] == "damaged" and client.get(url).json()["status"] == "failed"
    assert "secret words" not in str(receiver.received) and document.name not in str(receiver.received)
    assert client.get(f"{HOOKS}{hook['id']}/").json()["delivered"] == 2
    assert (jobs_tell(), JobDelivery.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("script", "event", "state"),
    [
        (Script(), "turn.finished", "done"),
        (Script(status=400, body=(b"{}",)), "turn.failed", "failed"),
    ],
)
def test_an_answer_that_went_on_in_the_background_is_told(
    client, api_key, receiver, chat_target, user, team, script, event, state
):
    made(client, receiver)
    conversation = conversation_make(user=user, team=team)
    path = f"/api/v1/conversations/{conversation.id}/turns/"
    body = {"text": "hello", "background": True}
    answer, _ = call("POST", path, script, key=api_key, only="Test chat server", json=body)
    assert answer.status_code == 202, answer.text
    assert jobs_tell() == 1
    [(name, data)] = told(receiver)
    assert (name, data["state"], data["conversation"]) == (event, state, str(conversation.id))
    assert client.get(data["url"]).json()["state"] == state


def test_an_export_is_told(client, receiver, user, originals_dir):
    made(client, receiver, events=["export.ready"])
    row = export_begin(user=user)
    export_make(export_id=row.id)
    assert jobs_tell() == 1
    [(name, data)] = told(receiver)
    assert name == "export.ready" and data["export"] == str(row.id)
    assert client.get(data["url"]).json()["status"] == "ready"


def test_nobody_hears_of_the_jobs_of_others_or_of_what_they_did_not_choose(
    client_for, client, receiver, document, team
):
    colleague = user_make()
    membership_set(team=team, user=colleague, role=Role.ADMIN)
    theirs = client_for(key_make(user=colleague, team=team))
    made(theirs, receiver)
    made(client, receiver, events=["document.failed"])
    ended(document)
    assert (jobs_tell(), JobDelivery.objects.count()) == (0, 0)
    ended(document, Status.FAILED)
    assert jobs_tell() == 1


def test_a_teams_webhook_hears_of_its_documents_but_not_of_what_is_attached_to_a_chat(
    client_for, client, receiver, document, team, user
):
    made(client, receiver, kind="team", team=str(team.id))
    own = made(client_for(key_make(user=None, team=team)), receiver, kind="team")
    assert own["team_id"] == str(team.id)
    chat = collection_make(team=team, user=user)
    Collection.objects.filter(id=chat.id).update(kind="conversation")
    ended(document_make(collection=chat))
    elsewhere = team_make(owner=user)
    ended(document_make(collection=collection_make(team=elsewhere, user=user)))
    assert (jobs_tell(), JobDelivery.objects.count()) == (0, 0)
    ended(document)
    assert jobs_tell() == 2
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1, "one event has one id"


def test_what_is_not_taken_is_sent_again_in_the_same_bytes_until_it_is_given_up(client, receiver, document):
    hook = made(client, receiver)
    receiver.statuses = [500] + [404] * len(WAITS_S)
    ended(document)
    for _ in range(len(WAITS_S) + 1):
        assert jobs_tell() == 0
        later(hook)
    shown = client.get(f"{HOOKS}{hook['id']}/").json()
    assert (shown["waiting"], shown["given_up"], shown["problem"]["status"]) == (0, 1, 404)
    assert jobs_tell() == 0, "given up"
    client.patch(f"{HOOKS}{hook['id']}/", {"active": True}, format="json")
    assert jobs_tell() == 1
    seen: list[Received] = receiver.received
    assert len(seen) == len(WAITS_S) + 2
    assert len({(got.headers["webhook-id"], got.body) for got in seen}) == 1


def test_the_list_asks_as_often_for_ten_as_for_one(
    client, receiver, user, django_assert_max_num_queries
) -> None:
    def queries() -> int:
        with django_assert_max_num_queries(100) as asked:
            listed = client.get(HOOKS).json()["items"]
        assert [row["problem"]["message"] for row in listed] == [f"no {row['name']} 2" for row in listed]
        return len(asked)

    def more(names: Iterable[str]) -> None:
        for name in names:
            hook = JobWebhook.objects.get(id=made(client, receiver, name=name)["id"])
            for number, attempts in enumerate((1, 1, 1, 0)):
                error = f"no {name} {number}" if attempts else "never tried"
                JobDelivery.objects.create(
                    webhook=hook, event_id=uuid7(), type="document.ready", data={}, state="pending",
                    created_at=timezone.now(), next_at=timezone.now(), attempts=attempts, last_error=error,
                )  # fmt: skip

    more("a")
    alone = queries()
    more("bcdefghij")
    assert queries() == alone


def test_a_stopped_webhook_hears_nothing_and_a_test_message_arrives(client, receiver, document):
    hook = made(client, receiver)
    where = f"{HOOKS}{hook['id']}/"
    assert client.patch(where, {"active": False}, format="json").json()["active"] is False
    ended(document)
    assert (jobs_tell(), JobDelivery.objects.count()) == (0, 0)
    assert client.post(f"{where}test/").status_code == 409
    client.patch(where, {"active": True, "events": ["turn.failed", "document.ready"]}, format="json")
    sent = client.post(f"{where}test/")
    assert (sent.status_code, jobs_tell()) == (202, 1)
    assert receiver.received[0].headers["webhook-id"] == sent.json()["event_id"]
    assert told(receiver) == [("webhook.test", {"webhook": hook["id"]})]
    assert client.get(where).json()["events"] == ["document.ready", "turn.failed"], "in our order"


def test_the_secret_is_shown_once_and_kept_sealed(client, receiver):
    body = {"name": "my app", "url": f"{receiver.url}/hook"}
    first, again = (
        client.post(HOOKS, body, format="json", headers={"Idempotency-Key": "once"}) for _ in range(2)
    )
    assert first.json() == again.json() and JobWebhook.objects.count() == 1
    row, secret = JobWebhook.objects.get(), first.json()["secret"]
    assert secret.startswith("whsec_") and secret not in row.secret and row.plain_secret == secret
    for path in (HOOKS, first["Location"]):
        assert secret not in client.get(path).content.decode()
    assert set(first.json()["events"]) == set(JobEvent.values)
    client.delete(first["Location"])
    assert client.get(first["Location"]).status_code == 404
    verbs = AuditEntry.objects.filter(object_id=str(row.id)).values_list("verb", flat=True)
    assert set(verbs) == {Verb.WEBHOOK_MADE, Verb.WEBHOOK_ENDED}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"url": "http://hooks.example/in"}, 422),
        ({"url": "https://10.0.0.8/in"}, 422),
        ({"url": "https://169.254.169.254/latest"}, 422),
        ({"url": "nonsense"}, 422),
        ({"events": []}, 422),
        ({"events": ["document.eaten"]}, 422),
        ({"team": "01a22c40-0000-7000-8000-000000000000"}, 422),
        ({"kind": "team", "team": "01a22c40-0000-7000-8000-000000000000"}, 404),
    ],
)
def test_what_cannot_be_is_refused(client, body, status):
    answer = client.post(HOOKS, {"name": "x", "url": "https://hooks.example/in"} | body, format="json")
    assert answer.status_code == status, answer.content
    assert JobWebhook.objects.count() == 0


def test_who_may_make_see_and_change_them(client_for, client, receiver, user, team):
    hook = made(client, receiver, kind="team", team=str(team.id))
    member = user_make()
    membership_set(team=team, user=member, role=Role.MEMBER)
    for key, status in (
        (key_make(user=user, team=team, scopes=("read",)), 403),
        (key_make(user=user, team=team, scopes=("write",)), 403),
        (key_make(user=member, team=team), 403),
        (key_make(user=user_make(), team=team_make(owner=member)), 401),
    ):
        body = {"name": "x", "url": receiver.url, "kind": "team", "team": str(team.id)}
        assert client_for(key).post(HOOKS, body, format="json").status_code == status
    theirs = client_for(key_make(user=member, team=team))
    for method in (theirs.get, theirs.delete):
        assert method(f"{HOOKS}{hook['id']}/").status_code == 404
    assert theirs.get(HOOKS).json()["items"] == []
    personal = {"name": "x", "url": receiver.url}
    assert client_for(key_make(user=None, team=team)).post(HOOKS, personal, format="json").status_code == 403
    for _ in range(MOST - 1):
        made(client, receiver, kind="team", team=str(team.id))
    body = personal | {"kind": "team", "team": str(team.id)}
    assert client.post(HOOKS, body, format="json").status_code == 409


def test_nothing_leaves_for_a_suspended_person_and_all_goes_with_an_erased_one(
    client, receiver, document, user
):
    made(client, receiver)
    ended(document)
    user.is_active = False
    user.save()
    assert jobs_tell() == 0 and receiver.received == []
    call_command("person_erase", user.email, "--yes", verbosity=0)
    assert (JobWebhook.objects.count(), JobDelivery.objects.count()) == (0, 0)


def test_what_is_left_of_a_webhook_that_is_gone_is_forgotten(client, receiver, document):
    hook = made(client, receiver)
    ended(document)
    JobWebhook.objects.filter(id=hook["id"])._raw_delete("default")
    assert (jobs_prune(), jobs_prune()) == (1, 0)


def test_a_document_that_no_person_made_ends_as_ever(originals_dir, team, user):
    collection = collection_make(team=team, user=user)
    row = document_make(collection=collection)
    row.created_by = "user:someone"
    ended(row)
    assert document_ready_make(collection=collection).status == Status.READY
