"""What leaving a team means for somebody, told before they do."""

from dataclasses import dataclass
from uuid import UUID

from app.accounts.members import is_last_owner
from app.accounts.models import ApiKey, Membership, Team
from app.accounts.selectors import Caller, personal_keys_in
from app.chat.models import Conversation
from app.common.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A team of somebody, and what ends when they leave it."""

    team: Team
    role: str
    last_owner: bool
    """A team keeps an owner, so this one stays."""
    keys: int
    """Their own keys that the team pays for: they end."""
    team_keys: int
    """Keys of the team itself: they go on."""
    conversations: int
    """Their own that the team pays for: kept and in their export, but closed to them."""

    @property
    def possible(self) -> bool:
        """Nobody leaves their personal team, and no team its last owner."""
        return not self.last_owner and not self.team.is_personal


def leaving_of(caller: Caller, team_id: UUID) -> Leaving:
    """Errors: NotFound for a team that the caller is not in, and for a key of a team."""
    row = (
        Membership.objects.filter(user=caller.user_id, team=team_id, user__isnull=False)
        .select_related("team")
        .first()
    )
    if row is None:
        raise NotFound("There is no such team, or you are not in it.")
    return Leaving(
        team=row.team,
        role=row.role,
        last_owner=is_last_owner(row),
        keys=personal_keys_in(row.team_id, row.user_id).count(),
        team_keys=ApiKey.objects.filter(team=row.team_id, user=None, revoked_at=None).count(),
        conversations=Conversation.objects.filter(team=row.team_id, owner=row.user_id).count(),
    )
