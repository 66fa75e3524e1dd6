"""What a provider's groups mean for somebody's teams, at each of their sign-ins."""

import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from app.accounts.members import is_last_owner
from app.accounts.models import IdentityProvider, Membership, Role, User
from app.accounts.services import membership_end, membership_set

log = logging.getLogger(__name__)

_HEIGHT = {role.value: height for height, role in enumerate(Role)}


def groups_in(claims: Mapping[str, Any], name: str) -> frozenset[str] | None:
    """The groups in the claim of this name, or at the end of its dotted way; None when there is no such claim."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset({found})
    if isinstance(found, list) and all(isinstance(group, str) for group in found):
        return frozenset(found)
    return None


@transaction.atomic
def groups_apply(*, provider: IdentityProvider, user: User, claims: Mapping[str, Any]) -> None:
    """Add, change and remove memberships as the claim says. Without the claim nothing changes, and that is logged."""
    if not provider.groups_claim:
        return
    groups = groups_in(claims, provider.groups_claim)
    if groups is None:
        log.warning(
            "The provider %s sent no claim %s for account %s: its teams stay as they are.",
            provider.slug, provider.groups_claim, user.account_id,
        )  # fmt: skip
        return
    rules = list(provider.rules.select_related("team"))
    wanted: dict[Any, str] = {}
    for rule in rules:
        if (
            rule.group in groups
            and _HEIGHT[rule.role] >= _HEIGHT[wanted.get(rule.team_id, Role.VIEWER.value)]
        ):
            wanted[rule.team_id] = rule.role
    teams = {rule.team_id: rule.team for rule in rules}
    # The rows of these teams, so that of two owners who lose their group at once one stays.
    rows = list(Membership.objects.select_for_update().filter(team_id__in=teams))
    present = {row.team_id: row for row in rows if row.user_id == user.pk}
    for team_id, team in teams.items():
        row, role = present.get(team_id), wanted.get(team_id)
        if row is not None and row.role != role and is_last_owner(row):
            log.warning("The provider %s takes the last owner from team %s: left in.", provider.slug, team_id)
        elif role is not None and (row is None or row.role != role):
            membership_set(team=team, user=user, role=role)
        elif role is None and row is not None:
            membership_end(membership=row)
