"""Who may give which role in a team: owners every role, admins those below their own."""

from app.accounts.models import Role

_GIVES = {
    Role.OWNER.value: (Role.VIEWER.value, Role.MEMBER.value, Role.ADMIN.value, Role.OWNER.value),
    Role.ADMIN.value: (Role.VIEWER.value, Role.MEMBER.value),
}


def roles_given_by(role: str | None) -> tuple[str, ...]:
    """The roles that somebody with this one may give, and take from others."""
    return _GIVES.get(role or "", ())
