"""Changes to who is in a team, by those who look after it."""

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from app.accounts.models import Membership, Role, Team
from app.accounts.roles import roles_given_by
from app.accounts.selectors import Caller, personal_keys_in
from app.accounts.services import key_revoke, membership_end, membership_set
from app.common.errors import Conflict, NotAllowed, NotFound


def role_allow(caller: Caller, team: Team, role: str) -> None:
    """Errors: NotFound for a stranger, NotAllowed where the caller may not give or take this role."""
    caller.require_manager(team.id)
    if role not in roles_given_by(caller.role_in(team.id)):
        raise NotAllowed(
            _("Only an owner of %(team)s can give or take the role “%(role)s”.")
            % {"team": team.name, "role": role}
        )


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


@transaction.atomic
def member_leave(*, caller: Caller, team: Team) -> None:
    """The caller goes by themselves: their keys that the team pays for end, what they made stays with the team.

    Errors: NotAllowed for a team's key, NotFound, Conflict for the last owner and for one's own personal team.
    """
    if caller.user_id is None:
        raise NotAllowed("A key of a team is no person, so it leaves no team. Revoke it instead.")
    row = _row_of(_rows_locked(team), caller.user_id)
    if team.is_personal:
        raise Conflict(_("Your personal team is yours alone and goes with your account."))
    _keep_an_owner(row)
    for key in personal_keys_in(team.id, caller.user_id):
        key_revoke(key=key)
    membership_end(membership=row)


def is_last_owner(row: Membership) -> bool:
    """Whether a team would be without an owner."""
    owners = Membership.objects.filter(team_id=row.team_id, role=Role.OWNER)
    return row.role == Role.OWNER and not owners.exclude(user_id=row.user_id).exists()


def _locked(caller: Caller, team: Team, user_id: UUID) -> Membership:
    caller.require_manager(team.id)
    return _row_of(_rows_locked(team), user_id)


def _rows_locked(team: Team) -> list[Membership]:
    # All rows of the team: two owners who step down together must not both see the other as the one who stays.
    return list(Membership.objects.select_for_update(of=("self",)).filter(team=team).select_related("user"))


def _row_of(rows: list[Membership], user_id: UUID) -> Membership:
    for row in rows:
        if row.user_id == user_id:
            return row
    raise NotFound(_("This person is not in the team."))


def _keep_an_owner(row: Membership) -> None:
    if is_last_owner(row):
        raise Conflict(_("This is the team's only owner. Make somebody else an owner first."))
