"""`manage.py backup DIR`: the database, the originals and a manifest, as of one moment, while everything runs."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from app.common.told import ToldCommand
from app.ops.backup import backup_make


class Command(ToldCommand):
    help = (
        "Write a backup into an empty folder while everything runs; run again it finishes one that was broken off. "
        "FIELD_KEYS are not in it: keep them elsewhere. Exit code 1 when an original was missing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument(
            "--like",
            type=Path,
            metavar="OTHER",
            help="an earlier backup; originals it has are linked, not copied",
        )

    def act(self, **options: Any) -> None:
        """Make it, and say what it holds."""
        folder = options["folder"].expanduser().resolve()
        manifest = backup_make(folder, like=options["like"], say=self.stdout.write)
        size = manifest.dump_size + sum(manifest.originals.values())
        self.stdout.write(
            f"{folder}: {sum(manifest.rows.values())} rows, {manifest.ledger_entries} ledger entries, "
            f"{len(manifest.originals)} originals, {size:,} bytes. "
            "Keep FIELD_KEYS (one machine: secrets.json) in another place: without them it cannot be restored."
        )
        if manifest.missing:
            self.stderr.write(
                f"{len(manifest.missing)} originals were not there or damaged: {', '.join(manifest.missing[:5])}. "
                "The rest is whole. `manage.py verify` names their documents."
            )
            sys.exit(1)
