"""`manage.py webhook_add URL`: tell an address of every ledger entry, at least once."""

from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from app.billing.outbox import webhook_add
from app.common.told import ToldCommand


class Command(ToldCommand):
    """Shows the secret that messages are signed with, once."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="https; a private host must be named in OUTBOUND_ALLOW")
        parser.add_argument("--name", default="", help="what to call it; default: the address")
        parser.add_argument("--team", metavar="ID", help="only this team's entries")
        parser.add_argument("--from-start", action="store_true", help="also what was booked before")

    def act(self, **options: Any) -> None:
        """Add it."""
        try:
            team_id = UUID(options["team"]) if options["team"] else None
        except ValueError as exc:
            raise CommandError("--team takes the id of a team, as its page under /admin/ shows it.") from exc
        webhook, secret = webhook_add(
            name=options["name"] or options["url"],
            url=options["url"],
            team_id=team_id,
            from_start=options["from_start"],
        )
        self.stdout.write(
            f"Added {webhook.id}. Its messages are signed with this secret, shown once:\n{secret}"
        )
