"""`manage.py ledger_verify`: rebuild every balance from its rows and compare to the digit."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from app.billing.verification import ledger_verify, windows_rebuild


class Command(BaseCommand):
    help = "Replay the ledger and compare every balance to the digit. Exit code 1 when something differs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--rebuild", action="store_true", help="set the windows to what their rows add up to"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rebuild"]:
            self.stdout.write(f"{windows_rebuild()} windows were set to the sum of their rows.")
        result = ledger_verify()
        for item in result.differences:
            self.stdout.write(f"{item.check}: {item.row} has {item.stored}, its rows give {item.rebuilt}")
        self.stdout.write(
            f"{result.entries} entries, {result.price:f} {settings.CURRENCY}: "
            + (
                f"{len(result.differences)} differences."
                if result.differences
                else "every balance agrees to the digit."
            )
        )
        if result.differences:
            sys.exit(1)
