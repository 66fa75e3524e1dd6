"""Writes to people, teams and keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from django.db import transaction
from django.utils.text import slugify

from app.accounts.key_text import SHOWN, key_text
from app.accounts.models import ApiKey, Membership, Role, Team, User
from app.accounts.selectors import key_digest
from app.audit.services import Verb, audit
from app.common.clock import now
from app.common.models import uuid7


@transaction.atomic
def user_create(*, email: str, password: str | None, name: str = "", is_staff: bool = False) -> User:
    """A person with a personal team of their own, which is their default payer.

    Whoever makes the account vouches for the address, so nothing has to be confirmed.
    """
    user = User.objects.create_user(email, password, name=name, is_staff=is_staff, is_superuser=is_staff)
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=True)
    personal_team_create(user=user)
    if is_staff:
        audit(Verb.ROLE_CHANGED, object_kind="person", object_id=user.account_id, after="staff")
    return user


@transaction.atomic
def personal_team_create(*, user: User) -> Team:
    """The team that everybody has for themselves, and pays from until another is chosen."""
    called = user.name or user.email.split("@", maxsplit=1)[0]
    team = team_create(name=f"{called} (personal)", owner=user, is_personal=True)
    user.default_team = team
    user.save(update_fields=["default_team"])
    return team


@transaction.atomic
def address_confirm(*, user: User) -> str:
    """Somebody vouches for a person's address, or for the one it is to be changed to; returns it."""
    rows = EmailAddress.objects.filter(user=user)
    row = rows.filter(verified=False).order_by("pk").last()
    address = row.email if row else user.email
    rows.exclude(email=address).delete()
    EmailAddress.objects.update_or_create(
        user=user, email=address, defaults={"verified": True, "primary": True}
    )
    user.email = address
    user.save(update_fields=["email"])
    return address


@transaction.atomic
def address_set(*, user: User, email: str) -> None:
    """Staff give somebody another address, and vouch for it."""
    EmailAddress.objects.filter(user=user).delete()
    EmailAddress.objects.create(user=user, email=email.lower(), primary=True, verified=True)


def person_rename(*, user: User, name: str) -> None:
    """The name that others see."""
    user.name = name
    user.save(update_fields=["name"])


@transaction.atomic
def team_create(*, name: str, owner: User, is_personal: bool = False) -> Team:
    """A team with its first owner. The slug carries part of the id, so that two teams may share a name."""
    identity = uuid7()
    slug = f"{slugify(name)[:60] or 'team'}-{identity.hex[-8:]}"
    team = Team.objects.create(id=identity, name=name, slug=slug, is_personal=is_personal)
    membership_set(team=team, user=owner, role=Role.OWNER)
    return team


@transaction.atomic
def membership_set(*, team: Team, user: User, role: str) -> Membership:
    """Add somebody or change their role."""
    before = Membership.objects.filter(team=team, user=user).values_list("role", flat=True).first() or ""
    row = Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})[0]
    # A personal team comes with its person and says nothing.
    if before != role and not team.is_personal:
        _role_note(team.id, user, before, role)
    return row


@transaction.atomic
def membership_end(*, membership: Membership) -> None:
    """Take somebody out of a team; whoever left no longer spends from it by default."""
    team_id, user, role = membership.team_id, membership.user, membership.role
    membership.delete()
    own = Team.objects.filter(is_personal=True, memberships__user=user).first()
    User.objects.filter(pk=user.pk, default_team=team_id).update(default_team=own)
    _role_note(team_id, user, role, "")


def person_update(*, user: User, before: User) -> None:
    """Save a person as staff changed them; a suspension and a flag that came or went are written down."""
    with transaction.atomic():
        user.save()
        if user.is_active != before.is_active:
            audit(
                Verb.SUSPEND,
                object_kind="person",
                object_id=user.account_id,
                before="active" if before.is_active else "suspended",
                after="active" if user.is_active else "suspended",
            )
        if user.is_staff != before.is_staff:
            audit(
                Verb.ROLE_CHANGED,
                object_kind="person",
                object_id=user.account_id,
                before="staff" if before.is_staff else "",
                after="staff" if user.is_staff else "",
            )


def _role_note(team_id: UUID, user: User, before: str, after: str) -> None:
    audit(
        Verb.ROLE_CHANGED,
        team_id=team_id,
        object_kind="person",
        object_id=user.account_id,
        before=before,
        after=after,
    )


@transaction.atomic
def key_create(  # noqa: PLR0913 - a key is all of this
    *,
    name: str,
    team_id: UUID,
    user_id: UUID | None,
    scopes: Sequence[str],
    models_allowed: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    budget: dict[str, Any] | None = None,
    cost_centre: str = "",
    networks: Sequence[str] = (),
    key_id: UUID | None = None,
) -> tuple[ApiKey, str]:
    """A key and its plain text, which is shown once and not kept."""
    plain = key_text()
    row = ApiKey.objects.create(
        id=key_id or uuid7(),
        team_id=team_id,
        user_id=user_id,
        name=name,
        prefix=plain[:SHOWN],
        digest=key_digest(plain),
        scopes=list(scopes),
        models_allowed=list(models_allowed) if models_allowed is not None else None,
        expires_at=expires_at,
        budget=budget,
        cost_centre=cost_centre,
        networks=list(networks),
    )
    audit(Verb.KEY_MADE, team_id=team_id, object_kind="key", object_id=row.id, after=",".join(row.scopes))
    return row, plain


def key_update(*, key: ApiKey, changes: Mapping[str, Any]) -> ApiKey:
    """Change fields of a key: name, scopes, models_allowed, expires_at, budget, cost_centre, networks."""
    for field, value in changes.items():
        setattr(key, field, value)
    key.save(update_fields=list(changes))
    return key


@transaction.atomic
def key_revoke(*, key: ApiKey) -> None:
    """From now on the key is unknown; processes that cached it forget it within a second."""
    if ApiKey.objects.filter(id=key.id, revoked_at=None).update(revoked_at=now()):
        audit(Verb.KEY_REVOKED, team_id=key.team_id, object_kind="key", object_id=key.id)


def keys_touch(*, key_ids: Sequence[UUID]) -> None:
    """Note that these keys were used; called in batches, never once a request."""
    ApiKey.objects.filter(id__in=list(key_ids)).update(last_used_at=now())
