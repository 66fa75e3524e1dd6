"""Somebody leaves: what is theirs is exported, then gone; what is the team's, and what was paid, stays."""

import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db.models import Sum
from django.test import Client

from app.accounts.models import ApiKey, Membership, Team, User
from app.accounts.selectors import caller_by_key
from app.audit.models import AuditEntry
from app.billing.models import LedgerEntry
from app.billing.services import bootstrap_defaults, price_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Buckets, Hold, Payer
from app.chat.erasing import document_erase
from app.chat.event_store import events_key
from app.chat.models import Conversation, SentPassage, Turn, TurnState
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7
from app.ops.exports import export_key, export_make, exports_sweep
from app.ops.models import Export, PersonReceipt
from app.ops.person_erase import person_erase
from app.ops.person_export import person_export
from retrieval.models import Collection, Document, Grant
from retrieval.storage import blob_size
from retrieval.stores import store
from tests.factories import (
    CHAT_PRICE,
    PASSWORD,
    collection_make,
    conversation_make,
    document_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)

pytestmark = pytest.mark.django_db
WORD = "zanzibarite"


class Leaver:
    """A person with something in every place, and a colleague in the same team."""

    def __init__(self) -> None:
        self.colleague = user_make()
        self.team = team_make(owner=self.colleague)
        self.user = user_make(team=self.team)
        self.key = key_make(user=self.user, team=self.team)
        own = self.user.teams.get(is_personal=True)
        self.private = collection_make(team=own, user=self.user)
        self.shared = collection_make(team=self.team, user=self.user)
        self.secret = document_make(collection=self.private, content=f"My {WORD}.".encode())
        self.given = document_make(collection=self.shared, content=b"For the team.", name="für alle?.txt")
        self.conversation = conversation_make(user=self.user, team=self.team, title=f"About {WORD}")
        self.turn = turn_make(
            conversation=self.conversation,
            question=WORD,
            answer=WORD,
            feedback={"rating": "down", "comment": WORD},
        )
        passage_make(turn=self.turn, collection=self.private, text=f"My {WORD}.", document_id=self.secret.pk)
        Turn.objects.filter(pk=turn_make(conversation=self.conversation).pk).update(conversation=None)
        self.others = turn_make(conversation=conversation_make(user=self.colleague, team=self.team))
        passage_make(
            turn=self.others, collection=self.shared, text="For the team.", document_id=self.given.pk
        )


@pytest.fixture
def leaver(originals_dir):
    return Leaver()


def _read(folder, *parts):
    return json.loads(folder.joinpath(*parts).read_text(encoding="utf-8"))


def test_an_export_has_everything_of_the_person_and_no_secret(leaver, tmp_path):
    counts = person_export(user=leaver.user, folder=tmp_path / "out")
    assert counts == {"conversations": 1, "documents": 2, "keys": 1, "usage_entries": 0, "turns": 2}
    told = _read(tmp_path, "out", "conversations", f"{leaver.conversation.pk}.json")
    (turn,) = told["turns"]
    assert (told["title"], turn["question"], turn["feedback"]["comment"]) == (f"About {WORD}", WORD, WORD)
    assert turn["sources"][0]["text"] == f"My {WORD}."
    own = tmp_path / "out" / "documents" / str(leaver.secret.pk)
    assert (own / "original-note.txt").read_bytes() == f"My {WORD}.".encode()
    given = tmp_path / "out" / "documents" / str(leaver.given.pk)
    assert (given / "original-für alle_.txt").read_bytes() == b"For the team."
    (key,) = _read(tmp_path, "out", "keys.json")
    assert key["prefix"] == leaver.key.row.prefix
    everything = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "out").rglob("*.json"))
    assert leaver.key.plain not in everything
    assert leaver.key.row.digest not in everything
    assert leaver.colleague.email not in everything
    assert AuditEntry.objects.filter(verb="export", object_id=str(leaver.user.account_id)).exists()


def test_an_export_holds_no_text_that_its_person_may_not_read_now(leaver, tmp_path):
    """What they were shown and put in as a member is the team's; leaving takes it along as little as a reload does."""
    turn = Turn.objects.get(pk=leaver.turn.pk)
    passage_make(turn=turn, collection=leaver.shared, number=2, text="For the team.", title="Team plan")
    Turn.objects.filter(pk=turn.pk).update(quotes=[{"n": 2, "text": "For the team."}])
    Membership.objects.filter(user=leaver.user, team=leaver.team).delete()
    counts = person_export(user=leaver.user, folder=tmp_path / "out")
    assert counts["documents"] == 2
    everything = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert WORD in everything and str(leaver.given.pk) in everything
    for foreign in ("For the team", "Team plan", "für alle"):
        assert foreign not in everything
    (told,) = _read(tmp_path, "out", "conversations", f"{leaver.conversation.pk}.json")["turns"]
    assert (len(told["sources"]), told["hidden_passages"], told["quotes"]) == (1, 1, [])


def test_an_export_never_writes_into_a_folder_that_holds_something(leaver, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        person_export(user=leaver.user, folder=tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"mine", "originals"}


def test_erasing_takes_what_is_theirs_and_leaves_the_teams(leaver, broker):
    user, turn = leaver.user, leaver.turn.pk
    broker.xadd(events_key(turn), {"f": WORD})
    browser = Client()
    browser.login(username=user.email, password=PASSWORD)
    Grant.objects.create(
        team_id=leaver.team.pk,
        collection=leaver.shared,
        principal=f"user:{user.pk}",
        verb="read",
        created_by="x",
    )
    LogEntry.objects.create(
        user=leaver.colleague, content_type=ContentType.objects.get_for_model(User), object_id=str(user.pk),
        object_repr=user.email, action_flag=CHANGE, change_message=user.email, action_time=now(),
    )  # fmt: skip
    secret = leaver.secret.sha256
    assert blob_size(secret)
    account, email = user.account_id, user.email
    receipt = person_erase(user=user, done_by="tests")
    assert receipt.counts == {
        "conversations": 1, "turns": 2, "passages": 1, "keys": 1, "memberships": 2, "documents": 1, "originals": 1,
        "private_collections": 1, "sessions": 1, "grants": 1, "log_names": 1, "accounts.User": 1,
        "account.EmailAddress": 1,
    }  # fmt: skip
    assert not User.objects.filter(email=email).exists()
    assert caller_by_key(leaver.key.plain) is None
    assert browser.get("/").status_code == 302
    assert not Conversation.objects.filter(pk=leaver.conversation.pk).exists()
    assert not Turn.objects.filter(question=WORD).exists()
    assert not Collection.objects.filter(pk=leaver.private.pk).exists()
    assert blob_size(secret) is None
    assert not broker.exists(events_key(turn))
    entry = LogEntry.objects.get()
    assert (entry.object_repr, entry.change_message) == ("erased", "")
    # The team keeps what it was given, and nothing of the colleague's is touched.
    assert Document.objects.filter(pk=leaver.given.pk).exists()
    assert blob_size(leaver.given.sha256)
    assert SentPassage.objects.get(turn=leaver.others).text == "For the team."
    personal = Team.objects.get(is_personal=True, name="Erased person")
    assert not personal.memberships.exists()
    assert (receipt.account_id, PersonReceipt.objects.get().number) == (account, receipt.number)
    assert AuditEntry.objects.filter(verb="erase", after=receipt.number).exists()


def test_a_turn_whose_process_died_is_ended_before_it_is_erased(leaver, broker):
    running = turn_make(conversation=leaver.conversation, state=TurnState.RUNNING, ended_at=None)
    receipt = person_erase(user=leaver.user, done_by="tests", patience=0)
    assert receipt.counts["streams_ended"] == 1
    assert not Turn.objects.filter(pk=running.pk).exists()


def _paid(leaver):
    """A call of the leaver's that is booked."""
    bootstrap_defaults()
    price_set(price_key="m", rates=CHAT_PRICE, approved_by="tests")
    payer = Payer(team_id=leaver.team.pk, account_id=leaver.user.account_id, user_id=leaver.user.pk)
    hold = Hold(
        reservation_id=uuid7(), payer=payer, kind="chat", price_key="m", input_tokens=1000, output_tokens=500
    )
    reservation_hold(hold=hold)
    attempt = Attempt(buckets=Buckets(input=1000, output=500))
    reservation_settle(reservation_id=hold.reservation_id, attempts=(attempt,))


def test_what_was_paid_stays_and_names_nobody(leaver, broker):
    _paid(leaver)
    before = LedgerEntry.objects.aggregate(Sum("price"), Sum("input_tokens"))
    account = leaver.user.account_id
    person_erase(user=leaver.user, done_by="tests")
    assert LedgerEntry.objects.aggregate(Sum("price"), Sum("input_tokens")) == before
    assert LedgerEntry.objects.filter(account_id=account).exists()
    assert not User.objects.filter(account_id=account).exists()


def test_the_commands_export_and_erase(leaver, tmp_path, capsys, broker):
    call_command("person_export", leaver.user.email, str(tmp_path / "x"))
    assert "1 conversations" in capsys.readouterr().out
    call_command("person_erase", leaver.user.email, "--yes", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == PersonReceipt.objects.get(number=told["number"]).counts
    with pytest.raises(CommandError, match="nobody with the e-mail"):
        call_command("person_erase", leaver.user.email, "--yes")


class TestMyExport:
    """Over REST, in the background."""

    URL = "/api/v1/me/export/"

    def test_it_is_asked_for_made_and_fetched(
        self, leaver, client_for, django_capture_on_commit_callbacks, monkeypatch
    ):
        asked: list[str] = []
        monkeypatch.setattr("app.ops.views.export_make.delay", asked.append)
        client = client_for(leaver.key)
        with django_capture_on_commit_callbacks(execute=True):
            answer = client.post(self.URL)
        assert answer.status_code == 202
        where = answer["Location"]
        assert (client.get(where).json()["status"], asked) == ("queued", [answer.json()["id"]])
        early = client.get(f"{where}file/")
        assert (early.status_code, early["Retry-After"]) == (409, "5")
        # Asking again while it is on its way gives the same one.
        assert client.post(self.URL)["Location"] == where
        export = Export.objects.get()
        export_make(export_id=export.pk)
        assert client.get(where).json()["counts"]["conversations"] == 1
        assert [item["status"] for item in client.get(self.URL).json()["items"]] == ["ready"]
        packed = b"".join(client.get(f"{where}file/").streaming_content)
        names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
        assert f"conversations/{leaver.conversation.pk}.json" in names
        other = client_for(key_make(user=leaver.colleague, team=leaver.team))
        assert other.get(where).status_code == other.get(f"{where}file/").status_code == 404
        key = export_key(export.pk)
        assert store().size(key)
        person_erase(user=leaver.user, done_by="tests")
        assert store().size(key) is None

    @pytest.mark.parametrize("how", ["erased", "left", "neither"])
    def test_it_ends_with_what_is_erased_and_what_may_not_be_read_any_more(self, leaver, client_for, how):
        row = Export.objects.create(user=leaver.user, expires_at=now() + timedelta(days=7))
        export_make(export_id=row.pk)
        client = client_for(key_make(user=leaver.user, team=leaver.user.teams.get(is_personal=True)))

        def fetched():
            answer = client.get(f"{self.URL}{row.pk}/file/")
            return answer.status_code, answer.streaming and len(b"".join(answer.streaming_content)) > 0

        assert fetched() == (200, True)
        if how == "erased":
            document_erase(document=leaver.given, done_by="tests")
        elif how == "left":
            Membership.objects.filter(user=leaver.user, team=leaver.team).delete()
        over = how != "neither"
        assert fetched() == ((404, False) if over else (200, True))
        assert exports_sweep() == int(over)
        assert (store().size(export_key(row.pk)) is None) == over

    def test_a_key_of_a_team_has_nothing_of_its_own(self, leaver, client_for):
        assert client_for(key_make(user=None, team=leaver.team)).post(self.URL).status_code == 403

    def test_an_export_that_fails_says_so_and_another_may_be_asked_for(self, leaver, client_for, monkeypatch):
        monkeypatch.setattr("app.ops.exports.person_export", lambda **_: 1 / 0)
        row = Export.objects.create(user=leaver.user, expires_at=now())
        export_make(export_id=row.pk)
        row.refresh_from_db()
        assert row.state == Export.State.FAILED
        assert not list(store().keys("exports/"))
        assert not list(store().keys("incoming/"))
        assert exports_sweep() == 1
        assert not Export.objects.exists()

    def test_an_export_of_somebody_who_is_gone_is_not_made(self, leaver):
        row = Export.objects.create(user=leaver.user, expires_at=now())
        ApiKey.objects.all().delete()
        person_erase(user=leaver.user, done_by="tests")
        export_make(export_id=row.pk)
        assert not list(store().keys("exports/"))
