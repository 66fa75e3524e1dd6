"""`manage.py person_export EMAIL DIR`: everything of one person as JSON and originals."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from app.common.told import ToldCommand
from app.ops.person_export import person_export
from app.ops.told import anybody_named


class Command(ToldCommand):
    """Also of somebody who is suspended."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("dir", type=Path, help="a new or empty folder")

    def act(self, **options: Any) -> None:
        """Write it and say how much."""
        counts = person_export(user=anybody_named(options["email"]), folder=options["dir"])
        for name, number in counts.items():
            self.stdout.write(f"{number:8} {name.replace('_', ' ')}")
        self.stdout.write(f"Written to {options['dir']}.")
