"""Changes to who is in a team, by those who look after it."""

from uuid import UUID

from django.db import transaction

from app.accounts.models import Membership, Role, Team
from app.accounts.roles import roles_given_by
from app.accounts.selectors import Caller
from app.accounts.services import membership_end, membership_set
from app.common.errors import Conflict, NotAllowed, NotFound


def role_allow(caller: Caller, team: Team, role: str) -> None:
    """Errors: NotFound for a stranger, NotAllowed where the caller may not give or take this role."""
    caller.require_manager(team.id)
    if role not in roles_given_by(caller.role_in(team.id)):
        raise NotAllowed(f"Only an owner of {team.name} can give or take the role “{role}”.")


@transaction.atomic
def member_change(*, caller: Caller, team: Team, user_id: UUID, role: str) -> Membership:
    """Another role for somebody. Errors: NotFound, NotAllowed, Conflict for the last owner."""
    row = _locked(caller, team, user_id)
    role_allow(caller, team, row.role)
    role_allow(caller, team, role)
    if row.role != role:
        _keep_an_owner(row)
    return membership_set(team=team, user=row.user, role=role)


@transaction.atomic
def member_remove(*, caller: Caller, team: Team, user_id: UUID) -> Membership:
    """Take somebody out of the team; what they made stays. Errors: as for a change."""
    row = _locked(caller, team, user_id)
    role_allow(caller, team, row.role)
    _keep_an_owner(row)
    membership_end(membership=row)
    return row


def is_last_owner(row: Membership) -> bool:
    """Whether a team would be without an owner."""
    owners = Membership.objects.filter(team_id=row.team_id, role=Role.OWNER)
    return row.role == Role.OWNER and not owners.exclude(user_id=row.user_id).exists()


def _locked(caller: Caller, team: Team, user_id: UUID) -> Membership:
    caller.require_manager(team.id)
    # All rows of the team: two owners who step down together must not both see the other as the one who stays.
    rows = list(Membership.objects.select_for_update(of=("self",)).filter(team=team).select_related("user"))
    for row in rows:
        if row.user_id == user_id:
            return row
    raise NotFound("This person is not in the team.")


def _keep_an_owner(row: Membership) -> None:
    if is_last_owner(row):
        raise Conflict("This is the team's only owner. Make somebody else an owner first.")
