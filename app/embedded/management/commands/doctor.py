"""`manage.py doctor`: what works, what does not, and what to do about it."""

import dataclasses
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from app.celery import app as celery
from app.embedded.doctor import doctor

_WORDS = {"ok": "ok     ", "failed": "FAILED ", "skipped": "skipped"}


class Command(BaseCommand):
    """One line for each check; exit code 1 when one failed."""

    help = "Test every part of this installation and say what to do about what is wrong."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much to test, and for whom to print."""
        parser.add_argument("--production", action="store_true", help="also mail, streaming, secrets, clock")
        parser.add_argument("--json", action="store_true", help="one JSON object for each check")

    def handle(self, **options: Any) -> None:
        """Print as the checks come in."""
        bad = 0
        for check in doctor(celery, production=options["production"]):
            bad += check.state == "failed"
            line = (
                json.dumps(dataclasses.asdict(check))
                if options["json"]
                else f"{_WORDS[check.state]} {check.name}: {check.message}"
            )
            self.stdout.write(line)
            self.stdout.flush()
        if bad:
            raise SystemExit(1)
