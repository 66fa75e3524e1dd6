"""Rows with sensible defaults. Every value that a test asserts on should be passed by that test."""

from dataclasses import dataclass
from itertools import count

from app.accounts.models import ApiKey, Role, Team, User
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, membership_set, team_create, user_create

_numbers = count(1)
PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """An API key as its owner sees it once."""

    plain: str
    row: ApiKey


def user_make(
    *, email: str = "", team: Team | None = None, role: str = Role.MEMBER, is_staff: bool = False
) -> User:
    """A person with a personal team; with `team` also a member there, who spends from it by default."""
    number = next(_numbers)
    user = user_create(
        email=email or f"person{number}@example.org",
        password=PASSWORD,
        name=f"Person {number}",
        is_staff=is_staff,
    )
    if team is not None:
        membership_set(team=team, user=user, role=role)
        user.default_team = team
        user.save(update_fields=["default_team"])
    return user


def team_make(*, owner: User, name: str = "") -> Team:
    """A team, paid from by default by its owner from now on."""
    team = team_create(name=name or f"Team {next(_numbers)}", owner=owner)
    owner.default_team = team
    owner.save(update_fields=["default_team"])
    return team


def key_make(*, user: User | None, team: Team, scopes: tuple[str, ...] = ALL_SCOPES) -> IssuedKey:
    """A key of a person in a team, or of the team itself when `user` is None."""
    row, plain = key_create(
        name="test key", team_id=team.id, user_id=user.id if user else None, scopes=scopes
    )
    return IssuedKey(plain=plain, row=row)
