"""What an installation begins with: an administrator, budgets, the servers with a visible price, and the handbook."""

import secrets
from dataclasses import dataclass
from itertools import islice

from django.db import transaction

from app.accounts.models import ApiKey, User
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, user_create
from app.billing.budgets import bootstrap_defaults
from app.common.errors import Conflict
from app.common.handbook import HANDBOOK, HANDBOOK_DIR
from app.ops.servers import servers_prepare
from retrieval.collections import collection_create
from retrieval.models import Collection, Document
from retrieval.services import document_create
from retrieval.stores import store

ADMIN_EMAIL = "admin@tessera.local"


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What was made. Password and key are plain only when they were made just now."""

    admin_email: str
    admin_password: str | None
    api_key: str | None
    notes: tuple[str, ...] = ()
    """What a person should know about the servers, a sentence each."""


class EmptyDatabase(Conflict):
    """The database is empty, but this installation's documents are here."""


def prepare(*, accept_empty: bool = False) -> FirstRun:
    """Make what is missing; an existing installation keeps what its people changed. Safe to repeat.

    Errors: EmptyDatabase when originals lie beside a database without people: most likely the wrong database or a
    lost volume, and beginning anew would hide that.
    """
    if not accept_empty and not User.objects.exists() and (count := originals_count()):
        raise EmptyDatabase(
            f"The database has no people, but {count} documents lie in {store().where('')}. This looks like a "
            "lost volume or the wrong DATABASE_URL. Restore the database, or begin anew: `first_run --accept-empty`."
        )
    # Apart, because it waits for servers, and no transaction stays open for that.
    notes = servers_prepare()
    with transaction.atomic():
        bootstrap_defaults()
        admin, password = _admin()
        key = _key(admin)
    # Only now: files are not rolled back, and must never lie beside a database that was.
    _handbook(admin)
    return FirstRun(admin.email, password, key, tuple(notes))


def _key(admin: User) -> str | None:
    """The administrator's first key, plain, when it was made just now."""
    if ApiKey.objects.filter(user=admin, name="first run").exists():
        return None
    assert admin.default_team_id is not None
    scopes = [*ALL_SCOPES, "staff"]
    return key_create(name="first run", team_id=admin.default_team_id, user_id=admin.id, scopes=scopes)[1]


def _admin() -> tuple[User, str | None]:
    existing = User.objects.filter(is_staff=True).order_by("id").first()
    if existing is not None:
        return existing, None
    password = secrets.token_urlsafe(15)
    return user_create(email=ADMIN_EMAIL, password=password, name="Administrator", is_staff=True), password


def _handbook(admin: User) -> None:
    """The handbook as a first collection, so that the first question can be answered. Read once, never overwritten."""
    if Collection.objects.filter(name=HANDBOOK).exists() or not HANDBOOK_DIR.is_dir():
        return
    assert admin.default_team_id is not None
    collection = collection_create(
        name=HANDBOOK, team_id=admin.default_team_id, level="public", created_by=f"user:{admin.id}"
    )
    for path in sorted(HANDBOOK_DIR.glob("*.md")):
        document_create(
            collection=collection, name=path.name, content=path.read_bytes(), created_by=f"user:{admin.id}"
        )


def originals_count(limit: int = 1000) -> int:
    """How many originals are stored, counted up to `limit`."""
    return sum(1 for _ in islice(store().keys(), limit))


def handbook_waiting() -> list[Document]:
    """Documents of the handbook that are neither ready nor failed yet."""
    return list(
        Document.objects.filter(collection__name=HANDBOOK).exclude(
            status__in=["ready", "failed", "cancelled"]
        )
    )
