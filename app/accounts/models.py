"""People, teams and keys. A team is the only unit of isolation and of payment."""

from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models

from app.common.models import BaseModel


class Role(models.TextChoices):
    """What a member may do in a team; the table is in DESIGN's roles, the checks in `selectors`."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    OWNER = "owner"


class Level(models.TextChoices):
    """Privacy level, lowest first: a turn takes the highest of what it touches."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


class UserManager(BaseUserManager["User"]):
    """Makes users by e-mail; `create_superuser` is what Django's own command calls."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").lower())


class User(BaseModel, AbstractBaseUser, PermissionsMixin):
    """A person. `account_id` is all that the ledger ever knows of one."""

    email = models.EmailField(unique=True)
    name = models.CharField(max_length=200, blank=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    default_team = models.ForeignKey(
        "Team", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    language = models.CharField(max_length=10, blank=True)
    """Of the pages; empty: what the browser asks for."""
    account_id = models.UUIDField(default=uuid4, unique=True, editable=False)
    """Random, so that erasing the person leaves ledger rows that point at nobody."""

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.name or self.email


class Team(BaseModel):
    """Owns collections, conversations and the bill."""

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    is_personal = models.BooleanField(default=False)
    level = models.CharField(max_length=10, choices=Level, default=Level.INTERNAL)
    cost_centre = models.CharField(max_length=60, blank=True)
    """What finance books this team's use under; a key may name another."""
    members: "models.ManyToManyField[User, Membership]" = models.ManyToManyField(
        User, through="Membership", related_name="teams"
    )

    def __str__(self) -> str:
        return self.name


class Membership(BaseModel):
    """One person's role in one team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_team"),)


class Invitation(BaseModel):
    """A place in a team that waits for somebody. Its link is signed; the row says whether it still works."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    name = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=10, choices=Role)
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(accepted_at=None),
                name="one_open_invitation_per_team",
            ),
        )


class IdentityProvider(BaseModel):
    """An OpenID Connect provider. Somebody is who it says by issuer and subject, never by an address."""

    slug = models.SlugField(max_length=40, unique=True)
    """In the redirect URI, and in each identity: it stands for the issuer, and neither changes."""
    name = models.CharField(max_length=80)
    issuer = models.CharField(max_length=200, unique=True)
    client_id = models.CharField(max_length=200)
    secret = models.TextField(blank=True)
    """Encrypted; empty for a public client."""
    is_active = models.BooleanField(default=True)
    scopes = models.CharField(max_length=200, blank=True)
    """More than openid, profile and email, with spaces between."""
    domains = models.CharField(max_length=500, blank=True)
    """Domains of addresses that may come in, with spaces between; empty for any."""
    default_team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """Where new people go."""
    default_role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)
    groups_claim = models.CharField(max_length=200, blank=True)
    """Its name, or the way to it with dots between: `groups`, `realm_access.roles`."""

    def __str__(self) -> str:
        return self.name


class GroupRule(BaseModel):
    """What being in a provider's group means here. Teams in a provider's rules are the provider's to fill."""

    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="rules")
    group = models.CharField(max_length=200)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["provider", "group", "team"], name="one_rule_per_group_and_team"),
        )


class ApiKey(BaseModel):
    """A key of a person within a team, or of the team itself. Only its SHA-256 is kept."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="keys")
    """Who pays for what this key does."""
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="keys")
    """The person it acts for; null for a key of the team."""
    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    """What it may do: chat, embed, read, write, usage."""
    models_allowed = models.JSONField(null=True, blank=True)
    """Public model names, or null for all."""
    networks = models.JSONField(default=list, blank=True)
    """Addresses it may be used from, in CIDR form; empty for any."""
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    cost_centre = models.CharField(max_length=60, blank=True)
    """Goes before the team's on what is booked with this key; empty: the team's."""
    budget = models.JSONField(null=True, blank=True)
    """As asked for: {unit, limit, period}; the limit in force is a billing budget."""


def principals_of(user_id: UUID | None, team_ids: list[UUID]) -> frozenset[str]:
    """Principals as retrieval knows them: `user:<id>` and `team:<id>`; a key of a team is `keys:<id>` besides, for what
    the team's keys have to themselves.
    """
    own = {f"keys:{team_id}" for team_id in team_ids} if user_id is None else {f"user:{user_id}"}
    return frozenset(own | {f"team:{team_id}" for team_id in team_ids})
