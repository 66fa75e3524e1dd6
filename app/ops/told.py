"""Whom a command acts as."""

from django.core.management.base import CommandError

from app.accounts.models import User


def person_named(email: str | None, *, to: str) -> User:
    """The active person with this e-mail, or the first administrator. Errors: CommandError when there is none."""
    people = User.objects.filter(is_active=True).order_by("id")
    user = people.filter(email=email.lower()).first() if email else people.filter(is_staff=True).first()
    if user is None:
        raise CommandError(
            f"Nobody to {to} as: run `manage.py first_run`, or give --as with somebody's e-mail."
        )
    return user


def anybody_named(email: str) -> User:
    """The person with this e-mail, suspended or not. Errors: CommandError."""
    user = User.objects.filter(email=email.lower()).first()
    if user is None:
        raise CommandError(f"There is nobody with the e-mail {email} here.")
    return user
