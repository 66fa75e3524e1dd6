"""The people and teams that somebody may name when sharing: those of their own teams, and nobody else."""

from collections.abc import Iterable

from app.accounts.models import Membership, Team, User
from app.accounts.selectors import Caller
from app.common.errors import NotFound


def colleague_principal(caller: Caller, email: str) -> str:
    """`user:<id>` of a person in one of the caller's teams. Errors: NotFound, for a stranger as for nobody."""
    teams = [team for team, _ in caller.roles]
    found = Membership.objects.filter(
        team_id__in=teams, user__email__iexact=email.strip(), user__is_active=True
    )
    person = found.values_list("user_id", flat=True).first()
    if person is None:
        raise NotFound(
            f"Nobody in your teams has the address {email.strip()}. Invite them into a team first, "
            "or share with a whole team."
        )
    return f"user:{person}"


def principal_names(principals: Iterable[str]) -> dict[str, str]:
    """What people call these principals; one that no longer exists is left out."""
    ids: dict[str, list[str]] = {"user": [], "team": []}
    for kind, _, identity in (principal.partition(":") for principal in principals):
        ids[kind].append(identity)
    people = User.objects.filter(pk__in=ids["user"])
    teams = Team.objects.filter(pk__in=ids["team"])
    return {f"user:{row.pk}": str(row) for row in people} | {f"team:{row.pk}": row.name for row in teams}
