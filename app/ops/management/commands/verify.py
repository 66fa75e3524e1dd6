"""`manage.py verify`: is what is stored whole?"""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings

from app.common.told import ToldCommand
from app.ops.verifying import installation_verify


class Command(ToldCommand):
    help = (
        "Open random citations at their place in their documents, look for every original, replay the ledger, and ask "
        "the database about damage. Exit code 1 when something is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--citations", type=int, default=100, help="how many are opened")
        parser.add_argument("--json", action="store_true", help="one object, for programs")

    def act(self, **options: Any) -> None:
        """Verify, tell, and fail where something is wrong."""
        found = installation_verify(citations=options["citations"])
        if options["json"]:
            self.stdout.write(json.dumps(asdict(found), indent=2))
        else:
            for problem in found.problems:
                self.stdout.write(problem)
            self.stdout.write(
                f"{found.citations} citations: {found.opened} open at their place, the others from what was stored "
                f"with the answer. {found.originals} originals. {found.ledger_entries} ledger entries, "
                f"{found.ledger_price} {settings.CURRENCY}. "
                + (f"{len(found.problems)} problems." if found.problems else "All is whole.")
            )
        if found.problems:
            sys.exit(1)
