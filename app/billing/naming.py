"""Whom a limit covers and who may change it, in words. Asked only when somebody is told, never on the way of a call."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.accounts.models import ApiKey, Team, User


@dataclass(frozen=True, slots=True)
class Covers:
    """A limit's subject, by name."""

    phrase: str
    """As it follows “the limit”: `of team “Research”`, `for you in team “Research”`."""
    raised_by: str
    """Who can give more: `An owner of the team`."""


_STAFF = "An administrator of this installation"


def ids_of(subject: str) -> dict[str, Any]:
    """The ids that `subjects.subject_of` made a subject from; those that are `*` or absent are left out."""
    head, *parts = subject.split(":")
    team, account = ("team_id",), ("account_id",)
    names = {
        "t": team,
        "c": team,
        "a": team + account,
        "p": account,
        "k": ("key_id",),
        "op": account,
        "ot": team,
    }
    named = zip(names.get(head, ()), parts, strict=True)
    return {name: UUID(part) for name, part in named if part != "*"}


def is_personal(subject: str) -> bool:
    """Whether it belongs to a team of one person, who owns it and yet does not decide what staff granted."""
    team = ids_of(subject).get("team_id")
    return team is not None and Team.objects.filter(pk=team, is_personal=True).exists()


def covers_of(subject: str) -> Covers:
    """For a refusal, which speaks to the person who asked. Teams and keys that are gone have no name."""
    ids = ids_of(subject)
    alone = is_personal(subject)
    match subject.partition(":")[0]:
        case "t":
            return Covers(f"of team {_team(ids)}", _STAFF if alone else "An owner of the team")
        case "c" | "ot" as head:
            what = "the prepaid credit of" if head == "c" else "all keys together of"
            return Covers(f"of {what} team {_team(ids)}", _STAFF)
        case "a":
            return Covers(
                f"for you in team {_team(ids)}", _STAFF if alone else "An admin or owner of the team"
            )
        case "p" | "op" as head:
            return Covers("for you" if head == "p" else "of your keys together", _STAFF)
        case "k":
            found = ApiKey.objects.filter(pk=ids["key_id"]).first()
            name = f"“{found.name}” ({found.prefix}…)" if found else "that was used"
            return Covers(f"of the key {name}", "Whoever made the key, or an admin of its team,")
    return Covers("of this installation", _STAFF)


def _team(ids: dict[str, Any]) -> str:
    found = Team.objects.filter(pk=ids["team_id"]).first()
    return f"“{found.name}”" if found else "(unknown)"


def whom(subject: str) -> str:
    """Whom a limit covers, for staff; ids of people and teams that are gone stay ids."""
    head, ids = subject.partition(":")[0], ids_of(subject)
    if head == "i":
        return "the installation"
    parts = []
    if head in {"a", "p"}:
        account = ids.get("account_id")
        found = User.objects.filter(account_id=account).first() if account else None
        parts.append(str(found or account or "every person"))
    if head in {"a", "c", "t"}:
        team = ids.get("team_id")
        found_team = Team.objects.filter(pk=team).first() if team else None
        parts.append(str(found_team or team or "every team"))
    if head == "k":
        key = ids.get("key_id")
        found_key = ApiKey.objects.filter(pk=key).first() if key else None
        parts.append(f"{found_key.prefix}… {found_key.name}" if found_key else str(key or "every key"))
    return " in ".join(parts)
