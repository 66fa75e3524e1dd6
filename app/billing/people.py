"""Who is told about a limit and who may raise it, as people; and the way to them by e-mail."""

import logging
import smtplib
from collections.abc import Iterable

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from app.accounts.models import ApiKey, Membership, Role, User
from app.billing.naming import ids_of, is_personal

log = logging.getLogger(__name__)
_MANAGERS = (Role.ADMIN, Role.OWNER)


def deciders_of(subject: str) -> list[User]:
    """Who may raise this limit: staff, the owners of a team, its admins for an allowance, whoever holds a key."""
    ids = ids_of(subject)
    # Nobody raises what staff granted to themselves.
    match "" if is_personal(subject) else subject.partition(":")[0]:
        case "t":
            found = _members(ids["team_id"], (Role.OWNER,))
        case "a":
            found = _members(ids["team_id"], _MANAGERS)
        case "k":
            key = ApiKey.objects.select_related("user").filter(id=ids["key_id"]).first()
            found = [] if key is None else _members(key.team_id, _MANAGERS)
            if key is not None and key.user is not None and key.user not in found:
                found.append(key.user)
        case _:
            found = list(User.objects.filter(is_staff=True, is_active=True).order_by("id"))
    return found


def told_of(subject: str) -> list[User]:
    """Who hears of an alert: those who may raise the limit, and the person it covers."""
    account = ids_of(subject).get("account_id")
    found = deciders_of(subject)
    own = User.objects.filter(account_id=account, is_active=True).first() if account else None
    return found if own is None or own in found else [own, *found]


def mail(people: Iterable[User], *, subject: str, text: str) -> bool:
    """Write to each of them alone. False when mail is not set up, or did not get through."""
    addresses = [person.email for person in people]
    if not settings.EMAIL_HOST or not addresses:
        return False
    messages = [EmailMessage(subject, text, None, [address]) for address in addresses]
    try:
        get_connection().send_messages(messages)
    except (OSError, smtplib.SMTPException):
        log.warning("Mail could not be sent.", exc_info=True)
        return False
    return True


def _members(team_id: object, roles: Iterable[str]) -> list[User]:
    rows = Membership.objects.filter(team_id=team_id, role__in=list(roles), user__is_active=True)  # type: ignore[misc]
    return [row.user for row in rows.select_related("user").order_by("id")]
