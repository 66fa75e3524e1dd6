"""`manage.py support_bundle FILE`: what helps to find a fault, without prompts, names or secrets."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from app.common.told import ToldCommand
from app.ops.support_bundle import bundle_write


class Command(ToldCommand):
    help = (
        "Write an archive for whoever helps with a fault: versions, harmless settings, table sizes, kinds of servers, "
        "and our own log lines. No prompt, document, name, address or secret is in it; read it before you give it away."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", default=Path("tessera-support.tar.gz"))

    def act(self, **options: Any) -> None:
        """Write it and say what is in it."""
        names = bundle_write(options["file"])
        self.stdout.write(f"{options['file']}: {', '.join(names)}")
