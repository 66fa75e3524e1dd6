"""`manage.py down`: stop what `manage.py up` started."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from app.embedded.errors import EmbeddedError
from app.embedded.paths import layout_open
from app.embedded.stop import down


class Command(BaseCommand):
    """Stops the stack in order: answers under way are finished first."""

    help = "Stop what `up` started in this data directory."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which one, and how patiently."""
        parser.add_argument("--data", type=Path, default=settings.DATA_DIR, help="data directory")
        parser.add_argument("--now", action="store_true", help="do not wait for answers under way")

    def handle(self, **options: Any) -> None:
        """Ask, and wait until it is done."""
        try:
            down(
                layout_open(options["data"]),
                drain_seconds=settings.DRAIN_SECONDS,
                now=options["now"],
                say=self.stdout.write,
            )
        except EmbeddedError as exc:
            raise CommandError(str(exc)) from exc
