"""`manage.py restore DIR`: a backup into an empty installation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from app.common.told import ToldCommand
from app.ops.restoring import restore


class Command(ToldCommand):
    help = (
        "Restore a backup into an empty database and an empty folder of originals; anything else is refused, and so "
        "are other FIELD_KEYS than those it was made with. Run again it goes on where it was broken off."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")

    def act(self, **options: Any) -> None:
        """Restore, and say what is to be done next."""
        manifest = restore(options["folder"].expanduser().resolve(), say=self.stdout.write)
        self.stdout.write(
            f"Restored: {sum(manifest.rows.values())} rows, {manifest.ledger_entries} ledger entries, "
            f"{len(manifest.originals)} originals, as of {manifest.made_at}. "
            "Now run `manage.py migrate` as the owner (`manage.py up` does it by itself), then `manage.py verify`."
        )
        if manifest.missing:
            self.stderr.write(f"{len(manifest.missing)} originals were missing when the backup was made.")
