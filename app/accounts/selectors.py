"""Who somebody is, what they may do, and who pays."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from uuid import UUID

from allauth.headless.tokens.strategies.jwt.internal import validate_access_token
from django.db.models import Q, QuerySet

from app.accounts.key_text import is_mistyped
from app.accounts.models import ApiKey, Membership, Role, Team, User, principals_of
from app.common.addresses import is_within
from app.common.clock import now
from app.common.errors import NotAllowed, NotFound
from retrieval.types import Viewer

SPENDING_ROLES = (Role.MEMBER, Role.ADMIN, Role.OWNER)
MANAGING_ROLES = (Role.ADMIN, Role.OWNER)
ALL_SCOPES = ("chat", "embed", "read", "write", "usage")


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: a person in a browser, a person's key, or a team's key."""

    user_id: UUID | None
    account_id: UUID | None
    key_id: UUID | None
    default_team_id: UUID
    roles: tuple[tuple[UUID, str], ...]
    """(team, role) of every membership; a team key holds its own team as member."""
    scopes: frozenset[str]
    models_allowed: frozenset[str] | None
    is_staff: bool
    session_hash: str = ""
    """Password fingerprint of a browser session, empty for keys."""
    networks: tuple[str, ...] = ()
    """Addresses its key may be used from; empty for any."""
    session: str = ""
    """The key of the browser's or the app's session that a stream hangs on; empty for keys and where nobody asks."""

    @property
    def principals(self) -> frozenset[str]:
        return principals_of(self.user_id, [team for team, _ in self.roles])

    def role_in(self, team_id: UUID) -> str | None:
        """The caller's role in a team, None for a stranger."""
        return dict(self.roles).get(team_id)

    @property
    def money_teams(self) -> list[UUID] | None:
        """The teams whose statements the caller may see: those they own; None: every team's, for staff."""
        return None if self.is_staff else [team for team, role in self.roles if role == Role.OWNER]

    def require_scope(self, scope: str) -> None:
        """Errors: NotAllowed when the key was not given this scope."""
        if scope not in self.scopes:
            raise NotAllowed(
                f"This key lacks the scope `{scope}`. Make a key that has it, or ask who gave you this one."
            )

    def require_address(self, address: str) -> None:
        """Errors: NotAllowed when the key was not given for this address."""
        if self.networks and not is_within(address, self.networks):
            raise NotAllowed(
                f"This key may not be used from {address}. Its owner can change its allowed addresses, "
                "or make you another key."
            )

    def require_spender(self, team_id: UUID) -> None:
        """Errors: NotFound for a stranger, NotAllowed for a viewer."""
        role = self.role_in(team_id)
        if role is None:
            raise NotFound("There is no such team, or you are not in it.")
        if role not in SPENDING_ROLES:
            raise NotAllowed(
                "Viewers cannot spend the team's money. An admin of the team can make you a member."
            )

    def require_manager(self, team_id: UUID) -> None:
        """Errors: NotFound for a stranger, NotAllowed below admin."""
        role = self.role_in(team_id)
        if role is None:
            raise NotFound("There is no such team, or you are not in it.")
        if role not in MANAGING_ROLES:
            raise NotAllowed("Only an admin or owner of the team can do this.")


def key_digest(key: str) -> str:
    """SHA-256 of a key. Keys hold 256 random bits, so a fast hash is the right one."""
    return hashlib.sha256(key.encode()).hexdigest()


def caller_by_key(key: str) -> Caller | None:
    """The caller a valid key stands for; None when it is unknown, expired, revoked or its person is suspended."""
    if is_mistyped(key):
        return None
    row = (
        ApiKey.objects.select_related("user")
        .filter(digest=key_digest(key), revoked_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now()))
        .first()
    )
    if row is None or (row.user is not None and not row.user.is_active):
        return None
    if row.user is None:
        roles = [(row.team_id, Role.MEMBER.value)]
    else:
        # A person's key reaches what the person reaches now; the team on the key only says who pays.
        roles = _roles(row.user.id)
        if row.team_id not in dict(roles):
            return None
    return Caller(
        user_id=row.user_id,
        account_id=row.user.account_id if row.user else None,
        key_id=row.id,
        default_team_id=row.team_id,
        roles=tuple(roles),
        scopes=frozenset(row.scopes),
        models_allowed=frozenset(row.models_allowed) if row.models_allowed is not None else None,
        is_staff=bool(row.user and row.user.is_staff and "staff" in row.scopes),
        networks=tuple(row.networks),
    )


def caller_by_credential(credential: str) -> Caller | None:
    """The caller behind a bearer credential: an API key, or the access token of an app's session."""
    # A signed token has three parts; a key has no dot in it.
    if credential.count(".") != 2:
        return caller_by_key(credential)
    found = validate_access_token(credential)
    if found is None or not isinstance(found.user, User) or found.session is None:
        return None
    return caller_by_user(found.user, session=found.session.session_key or "")


def caller_by_user(user: User, *, session: str = "") -> Caller:
    """The caller that a signed-in person is, in the session with this key where it is known."""
    roles = _roles(user.id)
    team_id = user.default_team_id or (roles[0][0] if roles else None)
    if team_id is None:
        raise NotAllowed("You are in no team yet. An administrator can add you to one.")
    return Caller(
        user_id=user.id,
        account_id=user.account_id,
        key_id=None,
        default_team_id=team_id,
        roles=tuple(roles),
        scopes=frozenset(ALL_SCOPES),
        models_allowed=None,
        is_staff=user.is_staff,
        session_hash=user.get_session_auth_hash(),
        session=session,
    )


def caller_now(caller: Caller) -> Caller:
    """The caller with the roles of this moment in the teams of then: what was left meanwhile opens nothing any more.

    For what goes on long after it was let in, such as a stream.
    """
    if caller.user_id is None:
        return caller
    present = dict(_roles(caller.user_id))
    return replace(caller, roles=tuple((team, present[team]) for team, _ in caller.roles if team in present))


def _roles(user_id: UUID) -> list[tuple[UUID, str]]:
    return list(Membership.objects.filter(user_id=user_id).order_by("id").values_list("team_id", "role"))


def owned_teams(user: User) -> list[UUID] | None:
    """Like `Caller.money_teams`, for somebody who may be in no team at all."""
    if user.is_staff:
        return None
    return [team for team, role in _roles(user.id) if role == Role.OWNER]


def managed_teams(user: User) -> list[UUID] | None:
    """The teams whose money somebody may see by person, as admin or owner; None: every team's, for staff."""
    if user.is_staff:
        return None
    return [team for team, role in _roles(user.id) if role in MANAGING_ROLES]


def principal_of(caller: Caller) -> str:
    """Who made a row, as retrieval knows people and teams."""
    return f"user:{caller.user_id}" if caller.user_id else f"team:{caller.default_team_id}"


def viewer_of(caller: Caller) -> Viewer:
    """The caller as retrieval sees one: team grants to write and to manage count where the role allows it."""
    own = {name for name in caller.principals if not name.startswith("team:")}

    def teams(roles: tuple[Role, ...]) -> frozenset[str]:
        return frozenset(own | {f"team:{team}" for team, role in caller.roles if role in roles})

    return Viewer(caller.principals, writing=teams(SPENDING_ROLES), managing=teams(MANAGING_ROLES))


def account_of(user_id: UUID) -> UUID | None:
    """What the ledger knows of a person; None for nobody."""
    return User.objects.filter(id=user_id).values_list("account_id", flat=True).first()


def teams_of(caller: Caller) -> list[Team]:
    """The caller's teams, oldest membership first."""
    by_id = Team.objects.in_bulk([team for team, _ in caller.roles])
    return [by_id[team] for team, _ in caller.roles if team in by_id]


def teams_to_manage(caller: Caller) -> list[Team]:
    """The shared teams whose members the caller looks after."""
    managed = {team for team, role in caller.roles if role in MANAGING_ROLES}
    return [team for team in teams_of(caller) if team.id in managed and not team.is_personal]


def shared_teams_of(caller: Caller) -> list[tuple[Team, str, bool]]:
    """(team, role, whether the caller looks after it) of every team but the personal one."""
    roles = dict(caller.roles)
    return [
        (team, roles[team.id], roles[team.id] in MANAGING_ROLES)
        for team in teams_of(caller)
        if not team.is_personal
    ]


def user_of(caller: Caller) -> User | None:
    """The person behind a caller; None for a key of a team."""
    return User.objects.get(id=caller.user_id) if caller.user_id else None


def team_of(caller: Caller, team_id: UUID | None) -> Team:
    """One of the caller's teams, the paying one when none is named. Errors: NotFound for any other."""
    wanted = team_id or caller.default_team_id
    if caller.role_in(wanted) is None:
        raise NotFound("There is no such team, or you are not in it.")
    return team_get(wanted)


def team_get(team_id: UUID) -> Team:
    """Errors: NotFound."""
    team = Team.objects.filter(id=team_id).first()
    if team is None:
        raise NotFound("There is no such team.")
    return team


def team_levels(team_ids: Collection[UUID]) -> tuple[str, ...]:
    """The privacy levels of these teams, those that are gone left out."""
    return tuple(Team.objects.filter(id__in=team_ids).values_list("level", flat=True))


def members_of(team_id: UUID) -> list[Membership]:
    """Who is in a team, by name."""
    rows = Membership.objects.filter(team_id=team_id).select_related("user")
    return list(rows.order_by("user__name", "user__email", "id"))


def keys_of(caller: Caller) -> list[ApiKey]:
    """The caller's own keys and, for admins, those of their teams; newest first; revoked ones left out."""
    managed = [team for team, role in caller.roles if role in MANAGING_ROLES]
    mine = Q(user_id=caller.user_id) if caller.user_id else Q(id=caller.key_id)
    return list(
        ApiKey.objects.filter(mine | Q(team_id__in=managed, user=None), revoked_at=None).order_by("-id")[:200]
    )


def personal_keys_in(team_id: UUID, user_id: UUID) -> QuerySet[ApiKey]:
    """Keys that act for this person and are paid by this team; revoked ones left out."""
    return ApiKey.objects.filter(team_id=team_id, user_id=user_id, revoked_at=None)


def key_get(caller: Caller, key_id: UUID) -> ApiKey:
    """Errors: NotFound for a key that is not the caller's to see."""
    for key in keys_of(caller):
        if key.id == key_id:
            return key
    raise NotFound("There is no such key.")


def account_of_email(email: str) -> UUID | None:
    """The account of whoever has this address; None where nobody has."""
    return User.objects.filter(email=email).values_list("account_id", flat=True).first()
