"""Rows with sensible defaults. Every value that a test asserts on should be passed by that test."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

from django.conf import settings

from app.accounts.models import ApiKey, Role, Team, User
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put
from app.chat.models import Conversation, SentPassage, Turn, TurnState
from app.common.clock import now
from app.common.models import uuid7
from retrieval.collections import collection_create
from retrieval.models import Collection, Document, DocumentText, Status
from retrieval.services import document_create

_numbers = count(1)
PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """An API key as its owner sees it once."""

    plain: str
    row: ApiKey


def user_make(
    *, email: str = "", team: Team | None = None, role: str = Role.MEMBER, is_staff: bool = False
) -> User:
    """A person with a personal team; with `team` also a member there, who spends from it by default."""
    number = next(_numbers)
    user = user_create(
        email=email or f"person{number}@example.org",
        password=PASSWORD,
        name=f"Person {number}",
        is_staff=is_staff,
    )
    if team is not None:
        membership_set(team=team, user=user, role=role)
        user.default_team = team
        user.save(update_fields=["default_team"])
    return user


def team_make(*, owner: User, name: str = "") -> Team:
    """A team, paid from by default by its owner from now on."""
    team = team_create(name=name or f"Team {next(_numbers)}", owner=owner)
    owner.default_team = team
    owner.save(update_fields=["default_team"])
    return team


def key_make(*, user: User | None, team: Team, scopes: tuple[str, ...] = ALL_SCOPES) -> IssuedKey:
    """A key of a person in a team, or of the team itself when `user` is None."""
    row, plain = key_create(
        name="test key", team_id=team.id, user_id=user.id if user else None, scopes=scopes
    )
    return IssuedKey(plain=plain, row=row)


CHAT_PRICE = (Rate(component="input", price=Decimal("0.10")), Rate(component="output", price=Decimal("0.40")))
EMBEDDING_PRICE = (Rate(component="input", price=Decimal("0.01")),)
"""Per million tokens."""


def chat_deployment_make(**fields: object) -> Deployment:
    """The real chat server of the test services as a priced deployment."""
    backend = backend_put(
        name="Test chat server",
        kind=settings.INFERENCE_KIND,
        base_url=settings.INFERENCE_URL,
        api_key=settings.INFERENCE_API_KEY,
    )
    model = settings.INFERENCE_MODEL
    values = {"public_name": model, "price_key": f"chat/{model}", "context_window": 4096, "slots": 2} | fields
    row, _ = deployment_put(
        backend=backend, upstream_model=model, purpose=Deployment.Purpose.CHAT.value, **values
    )
    price_set(price_key=row.price_key, rates=CHAT_PRICE, approved_by="tests")
    return row


def embedding_deployment_make() -> Deployment:
    """The real embedding server of the test services as a priced deployment."""
    backend = backend_put(
        name="Test embedding server",
        kind="openai",
        base_url=settings.EMBEDDING_URL,
        api_key=settings.EMBEDDING_API_KEY,
    )
    model = settings.EMBEDDING_MODEL
    row, _ = deployment_put(
        backend=backend,
        upstream_model=model,
        purpose=Deployment.Purpose.EMBEDDING.value,
        public_name=model,
        price_key=f"embedding/{model}",
    )
    price_set(price_key=row.price_key, rates=EMBEDDING_PRICE, approved_by="tests")
    return row


def collection_make(*, team: Team, user: User, name: str = "", level: str = "internal") -> Collection:
    """A collection of a team."""
    return collection_create(
        name=name or f"Collection {next(_numbers)}",
        team_id=team.id,
        created_by=f"user:{user.id}",
        level=level,
    )


def document_make(*, collection: Collection, content: bytes = b"", name: str = "note.txt") -> Document:
    """A queued document; needs `originals_dir`."""
    content = content or f"Note {next(_numbers)}.".encode()
    document, _ = document_create(
        collection=collection, name=name, content=content, created_by=collection.created_by
    )
    return document


def document_ready_make(*, collection: Collection, pages: tuple[str, ...] = ("First page.",)) -> Document:
    """A document whose text is stored, as ingestion leaves it; without vectors."""
    document = document_make(collection=collection)
    start = 0
    for number, text in enumerate(pages, 1):
        DocumentText.objects.create(
            team_id=document.team_id, document=document, version=1, page=number, start=start, text=text
        )
        start += len(text) + 1
    document.status, document.serving_version, document.pages = Status.READY, 1, len(pages)
    document.save()
    return document


def conversation_make(*, user: User | None, team: Team, **fields: object) -> Conversation:
    """A conversation of a person that a team pays for."""
    return Conversation.objects.create(owner=user, team=team, **fields)


def turn_make(*, conversation: Conversation, parent: Turn | None = None, **fields: object) -> Turn:
    """A finished turn."""
    moment = now()
    values = {
        "question": f"Question {next(_numbers)}?",
        "answer": "An answer [1].",
        "state": TurnState.DONE,
        "finish_reason": "stop",
        "model": "a-model",
        "started_at": moment,
        "heartbeat_at": moment,
        "ended_at": moment,
    }
    return Turn.objects.create(
        conversation=conversation,
        team=conversation.team,
        asked_by=conversation.owner,
        parent=parent,
        **(values | fields),
    )


def passage_make(
    *, turn: Turn, collection: Collection, number: int = 1, text: str = "", **fields: object
) -> SentPassage:
    """A passage as it was sent in a turn."""
    text = text or f"Passage {number} of the document."
    values: dict[str, Any] = {
        "passage_id": uuid7(),
        "document_id": uuid7(),
        "document_version": 1,
        "title": "A document",
        "heading": "Chapter",
        "page": 2,
        "start": 0,
        "end": len(text),
        "sha256": "0" * 64,
        "score": 0.9,
        "cited": number == 1,
        **fields,
    }
    return SentPassage.objects.create(
        turn=turn, team_id=turn.team_id, collection_id=collection.pk, number=number, text=text, **values
    )
