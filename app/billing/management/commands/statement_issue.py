"""`manage.py statement_issue`: draft and issue the statements that are due."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from app.billing.models import Statement
from app.billing.statements import Issued, statement_issue, statements_draft, statements_issue_due
from app.common.told import ToldCommand


class Command(ToldCommand):
    """The schedule does it by itself; this is for a month that must not wait for its grace."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--month", metavar="YYYY-MM", help="this month now, without its three days of grace"
        )
        parser.add_argument("--team", metavar="ID", help="with --month: this team alone")

    def act(self, **options: Any) -> None:
        """Draft, then issue."""
        self.stdout.write(f"Drafted: {statements_draft()}.")
        issued = (
            self._of_month(options["month"], options["team"]) if options["month"] else statements_issue_due()
        )
        for one in issued:
            self.stdout.write(f"Issued No. {one.number:06d}: {Statement.objects.get(id=one.statement_id)}")
        if not issued:
            self.stdout.write("Nothing was due.")

    def _of_month(self, month: str, team: str | None) -> list[Issued]:
        try:
            first = datetime.strptime(month, "%Y-%m").date()  # noqa: DTZ007 - a month has no zone
            wanted = Statement.objects.filter(state="draft", month=first)
            if team:
                wanted = wanted.filter(team_id=UUID(team))
        except ValueError as exc:
            raise CommandError("--month looks like 2026-11, and --team takes the id of a team.") from exc
        found = [statement_issue(statement=s, by="statement_issue") for s in wanted.order_by("id")]
        return [one for one in found if one is not None]
