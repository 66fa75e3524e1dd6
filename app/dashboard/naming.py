"""Names of what the ledger knows by ids alone, and how much of a person is shown."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings

from app.accounts.models import ApiKey, Membership, Team, User
from app.billing.types.spending import Dimension, Group, SpendSum
from app.catalog.models import Deployment
from app.dashboard.filters import FLAGS, SpendFilter
from retrieval.models import Collection

NAMED, PSEUDONYM, GROUPS = "named", "pseudonym", "groups"
SMALLEST_GROUP = 5
"""People that a group has at least, where people are shown in groups alone."""
NOBODY: Mapping[str, str] = {
    "team": "The installation itself",
    "person": "No person (ingestion, team keys, probes)",
    "key": "In the browser",
    "deployment": "No deployment",
    "model": "No model",
    "kind": "No kind",
    "collection": "No collection",
}
_GONE = {
    "team": "A team that was deleted",
    "person": "A person who left",
    "key": "A key that was deleted",
    "collection": "A collection that was deleted",
}


@dataclass(frozen=True, slots=True)
class Name:
    """A group in words; `known` is false when its owner is gone or was never named."""

    text: str
    known: bool = True


def person_level() -> str:
    """How people are shown: by name, by a lasting pseudonym, or in groups of five or more."""
    return str(settings.PERSON_LEVEL)


def pseudonym(account_id: UUID) -> str:
    """The same person has the same one for as long as the secret key stays; nobody is found by it."""
    digest = hmac.new(settings.SECRET_KEY.encode(), b"person:" + account_id.bytes, sha256).hexdigest()
    return f"Person {digest[:6].upper()}"


def names_of(by: Dimension, groups: Sequence[Group]) -> dict[Group, Name]:
    """The name of each group."""
    ids = [
        one
        for group in groups
        for one in (group if isinstance(group, tuple) else (group,))
        if isinstance(one, UUID)
    ]
    known = _known(by, ids)
    return {group: _name(by, group, known) for group in groups}


def _people(ids: Sequence[UUID]) -> dict[UUID, str]:
    if person_level() != NAMED:
        return {account: pseudonym(account) for account in ids}
    people = User.objects.filter(account_id__in=ids).values_list("account_id", "name", "email")
    return {account: name or email for account, name, email in people}


def personal_hidden(ids: Sequence[UUID]) -> set[UUID]:
    """Of these teams those that are one person's own, which stand for the person where people are not named."""
    if person_level() == NAMED:
        return set()
    return set(Team.objects.filter(id__in=ids, is_personal=True).values_list("id", flat=True))


def _known(by: Dimension, ids: Sequence[UUID]) -> dict[UUID, str]:
    if by == "person":
        return _people(ids)
    if by in {"team", "collection"}:
        rows = Team.objects.all() if by == "team" else Collection.objects.all()
        hidden = personal_hidden(ids) if by == "team" else set()
        named = dict(rows.filter(id__in=ids).values_list("id", "name"))
        return {
            one: pseudonym(one).replace("Person", "Personal team") if one in hidden else n
            for one, n in named.items()
        }
    if by == "key":
        return {key.id: f"{key.name} ({key.prefix}…)" for key in ApiKey.objects.filter(id__in=ids)}
    if by == "deployment":
        return {d.id: str(d) for d in Deployment.objects.filter(id__in=ids).select_related("backend")}
    return {}


def _name(by: Dimension, group: Group, known: Mapping[UUID, str]) -> Name:
    if group is None or group == "":
        return Name(NOBODY.get(by, "None"), known=False)
    if isinstance(group, UUID):
        return (
            Name(known[group]) if group in known else Name(_GONE.get(by, "One that was deleted"), known=False)
        )
    if isinstance(group, tuple):
        return Name(" + ".join(known.get(one, _GONE["collection"]) for one in group))
    if isinstance(group, str):
        return Name(group)
    if isinstance(group, datetime):
        here = group.astimezone(ZoneInfo(settings.INSTALLATION_ZONE))
        return Name(f"{here:%a %-d %b %Y, %H:%M}")
    return Name({"month": f"{group:%B %Y}", "year": f"{group:%Y}"}.get(by, f"{group:%a %-d %b %Y}"))


def filter_names(chosen: SpendFilter, *, everyone: str, team_ids: tuple[UUID, ...] | None) -> dict[str, str]:
    """The names of what a filter narrows to, by field. What belongs to no team of `team_ids` stays without its name."""
    names = {
        "everyone": everyone,
        "model": chosen.model,
        "kind": chosen.kind,
        "flag": FLAGS.get(chosen.flag, ""),
    }
    pairs: tuple[tuple[Dimension, UUID | None], ...] = (
        ("team", chosen.team),
        ("person", chosen.person),
        ("key", chosen.key),
        ("deployment", chosen.deployment),
        ("collection", chosen.collection),
    )
    for by, one in pairs:
        if one is not None:
            names[by] = (
                names_of(by, [one])[one].text if _theirs(by, one, team_ids) else "that is not known here"
            )
    if chosen.thread is not None:
        names["thread"] = str(chosen.thread)
    return names


def _theirs(by: Dimension, one: UUID, team_ids: tuple[UUID, ...] | None) -> bool:
    if team_ids is None or by == "deployment":
        return True
    if by == "team":
        return one in team_ids
    if by == "person":
        return Membership.objects.filter(team_id__in=team_ids, user__account_id=one).exists()
    if by == "key":
        return ApiKey.objects.filter(id=one, team_id__in=team_ids).exists()
    return Collection.objects.filter(id=one, team_id__in=team_ids).exists()


def grouped(rows: Sequence[tuple[UUID | None, UUID | None, SpendSum]]) -> list[tuple[str, SpendSum]]:
    """People (team, account, sums) as groups of `SMALLEST_GROUP` or more: by team, and all smaller teams together.

    What is left below that joins the smallest group, so that no difference tells of anybody.
    """
    by_team: dict[UUID | None, tuple[set[UUID], SpendSum]] = {}
    nobody = SpendSum()
    for team, account, sums in rows:
        if account is None:
            nobody += sums
            continue
        people, total = by_team.get(team, (set(), SpendSum()))
        by_team[team] = (people | {account}, total + sums)
    names = names_of("team", list(by_team))
    large = {t: pair for t, pair in by_team.items() if len(pair[0]) >= SMALLEST_GROUP}
    small = [pair for t, pair in by_team.items() if t not in large]
    people = {account for pair in small for account in pair[0]}
    rest = sum((pair[1] for pair in small), SpendSum())
    found = [(f"{names[t].text} ({len(pair[0])} people)", pair[1], len(pair[0])) for t, pair in large.items()]
    if len(people) >= SMALLEST_GROUP:
        found.append((f"Smaller teams ({len(people)} people)", rest, len(people)))
    elif people and found:
        name, total, _ = found.pop(min(range(len(found)), key=lambda index: found[index][2]))
        found.append((f"{name} and smaller teams", total + rest, 0))
    elif people:
        found.append(("Fewer than five people, not shown apart", rest, 0))
    groups = [(name, total) for name, total, _ in found]
    return [*groups, (NOBODY["person"], nobody)] if nobody.entries else groups
