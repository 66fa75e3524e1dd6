"""Whom a command acts as, and what a person agrees to before it spends money."""

import sys
from decimal import Decimal

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

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


def agreed(
    command: BaseCommand, what: str, *, expected: Decimal | None, most: Decimal | None, yes: bool
) -> None:
    """Say what it will cost; what costs anything, or an unknown amount, wants `--yes` or a person's word.

    Errors: CommandError when it is not given; nothing was sent then.
    """
    if expected is None or most is None:
        cost = "at a price that is not known"
    else:
        cost = f"for about {expected:.6f} and at most {most:.6f} {settings.CURRENCY}"
    command.stderr.write(f"{what}, {cost}; the installation pays.")
    if yes or most == 0:
        return
    if not sys.stdin.isatty():
        raise CommandError("Nothing was sent. Say --yes to spend it.")
    command.stderr.write("Go on? [y/N] ", ending="")
    if input().strip().lower() not in {"y", "yes"}:
        raise CommandError("Nothing was sent.")
