"""Whether callers who were let in may still go on: what is asked again while their answers run.

A request is authenticated once, but a stream may last for minutes. Whoever changes a key, a person or a membership,
in whichever process or by SQL, changes what these reads give; nobody has to be told.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.sessions.models import Session
from django.db.models import Q

from app.accounts.models import ApiKey, Membership, Team, User
from app.accounts.selectors import SPENDING_ROLES, Caller
from app.common.clock import now


@dataclass(frozen=True, slots=True)
class Standing:
    """What a caller's right to go on hangs on."""

    key_id: UUID | None
    user_id: UUID | None
    team_id: UUID | None
    """The team that pays for what runs; None for a reader, who spends nothing."""
    session: str = ""
    """Of a reader in a browser or an app. What somebody asked goes on when they sign out; their reading does not."""


def standing_of(caller: Caller, team_id: UUID | None = None) -> Standing:
    """A caller's standing, as the spender of a team's money or as a reader."""
    return Standing(
        key_id=caller.key_id,
        user_id=caller.user_id,
        team_id=team_id,
        session=caller.session if team_id is None else "",
    )


def caller_stands(caller: Caller, team_id: UUID | None = None) -> bool:
    """Whether this caller may still go on."""
    return not fallen([standing_of(caller, team_id)])


def fallen(standings: Collection[Standing]) -> set[Standing]:
    """Those who may not go on: suspended or erased people, revoked or expired keys, members who left or may not spend.

    Readers whose session was ended, too. At most five small queries however many there are.
    """
    sessions = _sessions({s.session for s in standings if s.session})
    people, keys, memberships, teams = (
        _people({s.user_id for s in standings if s.user_id}),
        _keys({s.key_id for s in standings if s.key_id}),
        _memberships(standings),
        _teams({s.team_id for s in standings if s.team_id and not s.user_id}),
    )

    def stands(one: Standing) -> bool:
        if one.user_id and one.user_id not in people:
            return False
        if (one.key_id and one.key_id not in keys) or (one.session and one.session not in sessions):
            return False
        if one.team_id is None:
            return True
        return (one.user_id, one.team_id) in memberships if one.user_id else one.team_id in teams

    return {one for one in standings if not stands(one)}


def _people(wanted: set[UUID]) -> set[UUID]:
    if not wanted:
        return set()
    return set(User.objects.filter(id__in=wanted, is_active=True).values_list("id", flat=True))


def _sessions(wanted: set[str]) -> set[str]:
    if not wanted:
        return set()
    rows = Session.objects.filter(session_key__in=wanted, expire_date__gt=now())
    return set(rows.values_list("session_key", flat=True))


def _keys(wanted: set[UUID]) -> set[UUID]:
    """Keys that open; a person's key also needs the person to be in its team."""
    if not wanted:
        return set()
    rows = ApiKey.objects.filter(id__in=wanted, revoked_at=None)
    rows = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now()))
    found = list(rows)
    members = _pairs((key.user_id, key.team_id) for key in found if key.user_id is not None)
    return {key.id for key in found if key.user_id is None or (key.user_id, key.team_id) in members}


def _memberships(standings: Collection[Standing]) -> set[tuple[UUID, UUID]]:
    wanted = ((s.user_id, s.team_id) for s in standings if s.user_id and s.team_id)
    return _pairs(wanted, roles=SPENDING_ROLES)


def _teams(wanted: set[UUID]) -> set[UUID]:
    return set(Team.objects.filter(id__in=wanted).values_list("id", flat=True)) if wanted else set()


def _pairs(
    wanted: Iterable[tuple[UUID, UUID]], roles: Collection[str] | None = None
) -> set[tuple[UUID, UUID]]:
    """Those (person, team) that are memberships now."""
    pairs = set(wanted)
    if not pairs:
        return set()
    rows = Membership.objects.filter(user_id__in={u for u, _ in pairs}, team_id__in={t for _, t in pairs})
    if roles is not None:
        rows = rows.filter(role__in=roles)
    return pairs & set(rows.values_list("user_id", "team_id"))
