"""`manage.py first_run`: make an administrator, budgets, servers and the handbook where they are missing."""

import json
import time
from typing import Any

from django.core.management.base import CommandParser

from app.common.told import ToldCommand
from app.ops.first_run import handbook_waiting, prepare
from retrieval.lanes import lane
from retrieval.tasks import document_ingest


class Command(ToldCommand):
    """Safe to repeat; prints a password or key only when it was made just now."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--accept-empty", action="store_true", help="begin anew beside documents that are here"
        )
        parser.add_argument("--json", action="store_true", help="one JSON line instead of words")
        parser.add_argument(
            "--wait", type=float, metavar="SECONDS", help="only wait until the handbook can be searched"
        )

    def act(self, **options: Any) -> None:
        if options["wait"] is not None:
            self._wait(options["wait"])
            return
        made = prepare(accept_empty=options["accept_empty"])
        waiting = handbook_waiting()
        for document in waiting:
            document_ingest.apply_async((str(document.id),), queue=lane(document.size))
        for note in made.notes:
            self.stderr.write(note)
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {
                        "admin_email": made.admin_email,
                        "admin_password": made.admin_password,
                        "api_key": made.api_key,
                        "notes": "\n".join(made.notes),
                        "handbook_waits": len(waiting),
                    }
                )
            )
            return
        self.stdout.write(f"Administrator: {made.admin_email}")
        if made.admin_password:
            self.stdout.write(f"Password (shown once): {made.admin_password}")

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (waiting := handbook_waiting()) and time.monotonic() < deadline:
            time.sleep(0.2)
        if waiting:
            self.stderr.write(
                f"{len(waiting)} pages of the handbook are not searchable yet; they will be shortly."
            )
