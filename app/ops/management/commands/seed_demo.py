"""`manage.py seed_demo`: a made-up year of a house with 50 teams, to look at before one's own is there."""

import time
from argparse import ArgumentParser
from datetime import datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction

from app.accounts.models import User
from app.billing.late import provisioned_book
from app.billing.rollups import rollups_fold
from app.billing.seeding import PastCall, calls_book, ledger_is_used
from app.billing.statements import statements_draft, statements_issue_due
from app.chat.models import Conversation
from app.common.clock import now
from app.common.told import ToldCommand
from app.ops.demo_chat import threads_write
from app.ops.demo_rows import house_make
from app.ops.demo_year import Year

GROUP = 250
"""Calls booked by one statement."""
RECENT_DAYS = 62
"""Conversations younger than this get rows in the chat too, so that what makes one dear can be shown."""


class Command(ToldCommand):
    help = (
        "Fill a new installation with a made-up year: 50 teams, their people, and every call of theirs booked through "
        "billing's own functions. Refused where people have used the installation already. The same seed gives the "
        "same year."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--people", type=int, default=300, help="how many, in 50 teams (default 300)")
        parser.add_argument("--months", type=int, default=12, help="how far back (default 12)")
        parser.add_argument("--seed", type=int, default=1, help="another seed, another year")

    def act(self, **options: Any) -> None:
        """Refuse, make the house, book day after day."""
        people, months = options["people"], options["months"]
        if not (50 <= people <= 20_000 and 1 <= months <= 36):
            raise CommandError("Give 50 to 20000 people and 1 to 36 months. Nothing was written.")
        _refuse_unless_new()
        began = time.monotonic()
        random = Random(options["seed"])  # noqa: S311 - repeatable, not secret
        until = now()
        today = until.astimezone(ZoneInfo(settings.INSTALLATION_ZONE)).date()
        first = today - timedelta(days=round(months * 30.4375))
        start = datetime.combine(first, datetime.min.time(), tzinfo=ZoneInfo(settings.INSTALLATION_ZONE))
        with transaction.atomic():
            house = house_make(people=people, since=start, random=random)
        self.stdout.write(f"{len(house.teams)} teams, {sum(len(t.people) for t in house.teams)} people.")
        year = Year(house, settings.INSTALLATION_ZONE, random)
        calls = refused = 0
        for number in range((today - first).days + 1):
            day = first + timedelta(days=number)
            made, threads = year.day(day, number / 30.4375, until)
            calls += len(made)
            refused += _booked(made)
            if (today - day).days < RECENT_DAYS:
                threads_write(threads, until)
            if day.day == 1:
                rollups_fold()
                self.stdout.write(f"{day:%B %Y}: {calls} calls so far.")
        hours = provisioned_book(at=until)
        rollups_fold()
        statements_draft(at=until)
        issued = len(statements_issue_due(at=until))
        took = time.monotonic() - began
        self.stdout.write(
            f"{calls} calls, of which limits refused {refused}; {hours} hours of a server of its own; "
            f"{issued} statements issued; {took:.0f} s. "
            "`manage.py ledger_verify` checks every one of them."
        )


def _refuse_unless_new() -> None:
    if ledger_is_used() or User.objects.count() > 1 or Conversation.objects.exists():
        raise CommandError(
            "People have used this installation already; a made-up year is only written into a new one, because ledger "
            "entries can never be removed. Start one beside it: `manage.py up --data .local/demo`. Nothing was written."
        )


def _booked(calls: list[PastCall]) -> int:
    return sum(calls_book(calls[at : at + GROUP]) for at in range(0, len(calls), GROUP))
