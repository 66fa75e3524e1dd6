"""Every door there is, taken from the routes themselves, tried by whoever has no right.

What belongs to others looks like what never was, no word of it is told, and no row of it changes. A new route is tried
from the day it is there, and one that names a new kind of thing has to say here which foreign one stands for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model

from app.accounts.models import ApiKey, Invitation, Membership, Role, Team, User
from app.accounts.selectors import ALL_SCOPES, caller_by_user
from app.api.jobs import job_webhook_create
from app.billing.budgets import budget_set
from app.billing.models import Budget, BudgetWindow, LimitRequest, Statement
from app.chat.attaching import attachments_collection
from app.chat.models import Assistant, Conversation, SentPassage, ShareLink, Turn
from app.chat.sharing import share_create
from app.common.clock import now
from app.ops.exports import export_begin, export_make
from retrieval.collections import grant_set
from retrieval.derived import derived_keep
from retrieval.models import Collection, Document, DocumentText, Grant, Receipt
from retrieval.removal import document_remove
from retrieval.services import document_ingest
from tests.api.doors import DOORS, Answer, Ids, Knocker, plain, unknown
from tests.factories import (
    collection_make,
    conversation_make,
    document_make,
    document_ready_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir", "chat_target")]
TEAMS, OWN = "marmalade", "quincewood"
"""Stands in everything of team Alpha, and in everything that is Alice's alone."""


@dataclass(frozen=True)
class House:
    """Team Alpha, its owner Alice, and everything of theirs, by the name that the routes give its id."""

    alice: User
    alpha: Team
    teams: Ids
    own: Ids
    rows: Callable[[], list[Any]]
    """All of it as it stands in the database."""


@pytest.fixture
def house(chat_target: Any) -> House:
    alice = user_make()
    alpha = team_make(owner=alice, name="Alpha")
    library = collection_make(team=alpha, user=alice, name=f"About {TEAMS}")
    document = document_make(
        collection=library, content=f"The vault opens with {TEAMS}.".encode(), name=f"{TEAMS}.txt"
    )
    assert document_ingest(document.pk) == "ready"
    document.refresh_from_db()
    DocumentText.objects.filter(document=document).update(aspect=0.7)
    derived_keep(document.serving_sha256, "1.webp", TEAMS.encode())
    removed = document_remove(document=document_ready_make(collection=library), done_by=f"user:{alice.id}")
    assistant = Assistant.objects.create(team=alpha, name=TEAMS, slug=TEAMS, model="m", prompt=TEAMS)
    conversation = conversation_make(user=alice, team=alpha, title=OWN, collections=[str(library.pk)])
    quotes = [{"n": 1, "text": f"It opens with {TEAMS}."}]
    turn = turn_make(conversation=conversation, question=OWN, answer=OWN, quotes=quotes)
    passage_make(turn=turn, collection=library, text=f"It opens with {TEAMS}.", document_id=document.pk)
    files = attachments_collection(caller=caller_by_user(alice), conversation=conversation)
    file = document_make(collection=files, content=f"My {OWN}.".encode(), name=f"{OWN}.txt")
    assert document_ingest(file.pk) == "ready"
    link, taken_back = (share_create(conversation=conversation, audience="team") for _ in range(2))
    ShareLink.objects.filter(pk=taken_back.pk).update(revoked_at=now())
    key = key_make(user=alice, team=alpha)
    ApiKey.objects.filter(pk=key.row.pk).update(name=OWN)
    hook, _ = job_webhook_create(caller=caller_by_user(alice), name=OWN, url="https://hooks.example/")
    invitation = Invitation.objects.create(
        team=alpha, email=f"{TEAMS}@example.org", role=Role.MEMBER, expires_at=now() + timedelta(days=1)
    )
    budget = Budget.objects.get(
        pk=budget_set(scope="team", unit="money", limit=9, period="month", team_id=alpha.id, name=TEAMS)
    )
    month = {"starts_at": now() - timedelta(days=9), "ends_at": now() + timedelta(days=9)}
    window = BudgetWindow.objects.create(
        budget=budget, subject=f"t:{alpha.id}", unit="money", limit_snapshot=9, **month
    )
    asked = LimitRequest.objects.create(window=window, team_id=alpha.id, note=TEAMS)
    statement = Statement.objects.create(
        team_id=alpha.id, team_name=TEAMS, month=now().date().replace(day=1), zone="UTC", currency="EUR",
        places=2, **month,
    )  # fmt: skip
    export = export_begin(user=alice)
    export_make(export_id=export.pk)
    teams: Ids = {
        "collection_id": library.pk, "document_id": document.pk, "assistant_id": assistant.pk, "team_id": alpha.pk,
        "share_id": link.pk, "receipt": removed.number, "budget_id": budget.pk, "request_id": asked.pk,
        "statement_id": statement.pk, "invitation_id": invitation.pk, "user_id": alice.pk, "number": 1,
    }  # fmt: skip
    own: Ids = {
        "conversation_id": conversation.pk, "turn_id": turn.pk, "key_id": key.row.pk, "webhook_id": hook.pk,
        "export_id": export.pk, "deployment_id": chat_target.deployment_id, "model": "assistant/" + TEAMS,
        # Nobody's: what these lead to is known by nothing that a stranger has.
        "device_id": 1, "identity_id": 1, "token": "token", "provider_id": "none",
    }  # fmt: skip
    private: Ids = {"collection_id": files.pk, "document_id": file.pk, "share_id": taken_back.pk}

    def rows() -> list[Any]:
        inside = {"collection_id__in": [library.pk, files.pk]}
        kept: list[tuple[type[Model], dict[str, Any]]] = [
            (Collection, {"pk__in": [library.pk, files.pk]}), (Document, inside), (Grant, inside), (Receipt, inside),
            (Conversation, {"pk": conversation.pk}), (Turn, {"conversation": conversation}),
            (SentPassage, {"turn": turn}), (ShareLink, {"conversation": conversation}), (Assistant, {"team": alpha}),
            (type(hook), {"user": alice}), (ApiKey, {"pk": key.row.pk}),
            (Membership, {"team": alpha}), (Invitation, {"team": alpha}), (Budget, {"pk": budget.pk}),
            (LimitRequest, {"pk": asked.pk}), (Statement, {"pk": statement.pk}), (User, {"pk": alice.pk}),
            (type(export), {"user": alice}),
        ]  # fmt: skip
        return [sorted(map(str, model._default_manager.filter(**of).values())) for model, of in kept]

    return House(alice, alpha, own | teams, own | teams | private, rows)


def outsider(house: House, who: str) -> Knocker:
    """Somebody of another team, or of none, or who was in Alpha once."""
    other = team_make(owner=user_make(), name="Beta")
    role = {"beta viewer": Role.VIEWER, "beta member": Role.MEMBER, "beta admin": Role.ADMIN}.get(who)
    person = user_make(team=other, role=role) if role else user_make()
    if who == "left alpha":
        Membership.objects.create(team=house.alpha, user=person, role=Role.ADMIN)
        collection = Collection.objects.get(pk=house.teams["collection_id"])
        for verb in ("manage", None):
            grant_set(collection=collection, principal=f"user:{person.id}", verb=verb, created_by="tests")  # type: ignore[arg-type]
        Membership.objects.filter(team=house.alpha, user=person).delete()
    assert person.default_team is not None
    return Knocker(key_make(user=person, team=person.default_team), browser=person)


PRIVATE = {
    "conversation_id",
    "turn_id",
    "key_id",
    "webhook_id",
    "export_id",
    "document_id",
    "collection_id",
    "share_id",
}
"""What of Alice's own is hers alone: with these ids there is nothing that a colleague may see."""
QUICK = {"beta admin", "alpha admin"}


def each(*names: str) -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.prove]) for name in names]


def tried(knocker: Knocker, ids: Ids, words: tuple[str, ...]) -> dict[str, tuple[Answer, Answer]]:
    """Where the answers to foreign ids and to ids of nothing differ, or one holds a word of others."""
    wrong = {}
    for door in DOORS:
        foreign, nothing = knocker.knock(door, ids), knocker.knock(door, unknown(ids))
        foreign, nothing = plain(foreign), plain(nothing)
        if any(word in foreign[1] for word in words) or foreign[0] >= 500 or foreign != nothing:
            wrong[f"{door.method} {door.path}"] = (foreign, nothing)
    return wrong


def test_the_doors_are_all_there_and_lead_to_what_they_say(house: House) -> None:
    """Without this, the tests below might knock at walls: to its owner each of them shows what it is about."""
    assert len(DOORS) > 150
    alice = Knocker(key_make(user=house.alice, team=house.alpha))
    shown = {}
    for door in DOORS:
        if door.method == "get" and door.path.startswith("/api/v1/") and door.fields and not door.streams:
            shown[door.path] = alice.knock(door, house.teams)
    assert {path: answer for path, answer in shown.items() if answer[0] != 200} == {}
    assert sum(TEAMS in text or OWN in text for _, text in shown.values()) > 15


@pytest.mark.parametrize(
    "browser", [False, pytest.param(True, marks=pytest.mark.prove)], ids=["key", "browser"]
)
@pytest.mark.parametrize("who", each("beta admin", "beta member", "beta viewer", "stranger", "left alpha"))
def test_an_outsider_finds_nothing_behind_any_door(house: House, who: str, browser: bool) -> None:
    knocker, before = outsider(house, who), house.rows()
    if not browser:
        knocker.browser = None
    for ids in (house.teams, house.own):
        assert tried(knocker, ids, (TEAMS, OWN)) == {}
    assert house.rows() == before


@pytest.mark.parametrize("who", each("alpha admin", "alpha viewer"))
def test_a_colleague_finds_nothing_of_what_is_alices_alone(house: House, who: str) -> None:
    """Conversations, attached files, keys, webhooks, exports, links that were taken back."""
    role = Role.ADMIN if who == "alpha admin" else Role.VIEWER
    person = user_make(team=house.alpha, role=role)
    knocker, before = Knocker(key_make(user=person, team=house.alpha)), house.rows()
    wrong = {}
    for door in DOORS:
        # Other ids are of the team's things, which a colleague may see and an admin may change.
        if door.fields and set(door.fields) <= PRIVATE:
            foreign, nothing = knocker.knock(door, house.own), knocker.knock(door, unknown(house.own))
            if OWN in foreign[1] or foreign[0] >= 500 or plain(foreign) != plain(nothing):
                wrong[f"{door.method} {door.path}"] = (plain(foreign), plain(nothing))
    assert wrong == {}
    assert house.rows() == before


@pytest.mark.prove
def test_staff_are_told_no_content(house: House) -> None:
    """Metadata and money, by every door; the name of a collection and of a key is metadata."""
    ApiKey.objects.update(name="Plain")
    Collection.objects.filter(pk=house.teams["collection_id"]).update(name="Plain")
    Assistant.objects.update(name="Plain", slug="plain")
    Statement.objects.update(team_name="Plain")
    Budget.objects.update(name="Plain")
    LimitRequest.objects.update(note="")
    Invitation.objects.update(email="plain@example.org")
    person = user_make(is_staff=True)
    assert person.default_team is not None
    for knocker in (
        Knocker(key_make(user=person, team=person.default_team, scopes=(*ALL_SCOPES, "staff"))),
        Knocker(key_make(user=person, team=person.default_team), browser=person),
    ):
        for ids in (house.teams, house.own):
            for door in DOORS:
                if door.method == "get":
                    status, text = plain(knocker.knock(door, ids))
                    assert status < 500 and TEAMS not in text and OWN not in text, door


@pytest.mark.prove
def test_a_key_without_scopes_and_one_of_somebody_who_left_open_nothing(house: House) -> None:
    colleague = user_make(team=house.alpha, role=Role.ADMIN)
    gone = key_make(user=colleague, team=house.alpha)
    Membership.objects.filter(user=colleague, team=house.alpha).delete()
    # A key may always ask under which limits it is.
    Budget.objects.update(name="Plain")
    before = house.rows()
    for key in (key_make(user=house.alice, team=house.alpha, scopes=()), gone):
        for door in DOORS:
            if door.path.startswith(("/api/v1/", "/v1/")):
                _, text = plain(Knocker(key).knock(door, house.teams))
                assert TEAMS not in text and OWN not in text, door
    assert house.rows() == before
