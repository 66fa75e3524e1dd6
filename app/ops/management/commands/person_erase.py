"""`manage.py person_erase EMAIL`: suspend a person, end what runs for them, erase what is theirs."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from app.common.told import ToldCommand
from app.ops.person_erase import person_erase
from app.ops.told import anybody_named


class Command(ToldCommand):
    """There is no way back; `person_export` first, if they want their file."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--json", action="store_true", help="print the receipt as JSON")

    def act(self, **options: Any) -> None:
        """Ask, erase, and print the receipt."""
        user = anybody_named(options["email"])
        if (
            not options["yes"]
            and input(f"Erase {user.email} for good? Type the e-mail to go on: ") != user.email
        ):
            raise CommandError("Nothing was erased.")
        receipt = person_erase(user=user, done_by="command")
        if options["json"]:
            self.stdout.write(json.dumps({"number": receipt.number, "counts": receipt.counts}))
            return
        self.stdout.write(f"Erased. Receipt {receipt.number} of {receipt.created_at:%Y-%m-%d %H:%M} UTC:")
        for name, number in receipt.counts.items():
            self.stdout.write(f"{number:8} {name.replace('_', ' ')}")
