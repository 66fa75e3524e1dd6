"""Where somebody is signed in: browsers and apps, each of which can be ended."""

import re
from dataclasses import dataclass
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.utils.translation import gettext as _

from app.accounts.models import User
from app.common.errors import NotFound

# The first that matches; Edge and Opera also call themselves Chrome, and everything calls itself Mozilla.
_PROGRAMS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True)
class Device:
    """A session as its owner sees it."""

    id: int
    name: str
    address: str
    since: datetime
    last_seen: datetime
    is_this: bool


def device_name(user_agent: str) -> str:
    """`Firefox on Windows`; what names no browser is an app, by its first word."""
    program = next((name for mark, name in _PROGRAMS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    if not program:
        called = re.match(r"[\w .-]{1,40}", user_agent)
        return called[0].strip() if called and called[0].strip() else "An app"
    return f"{program} on {system}" if system else program


def devices_of(user: User, *, session_key: str | None = None) -> list[Device]:
    """The sessions that still open something, this one first, then the latest used."""
    rows = UserSession.objects.purge_and_list(user)
    found = [
        Device(
            id=row.pk,
            name=device_name(row.user_agent),
            address=str(row.ip),
            since=row.created_at,
            last_seen=row.last_seen_at,
            is_this=row.session_key == session_key,
        )
        for row in rows
    ]
    return sorted(found, key=lambda device: (device.is_this, device.last_seen), reverse=True)


def device_end(*, user: User, device_id: int) -> None:
    """End a session: it opens nothing from the next request on. Errors: NotFound."""
    row = UserSession.objects.filter(user=user, pk=device_id).first()
    if row is None:
        raise NotFound(_("There is no such device, or it is signed out already."))
    row.end()


def devices_end_others(*, user: User, session_key: str | None) -> int:
    """End all sessions but this one; returns how many."""
    rows = list(UserSession.objects.filter(user=user).exclude(session_key=session_key or ""))
    for row in rows:
        row.end()
    return len(rows)
