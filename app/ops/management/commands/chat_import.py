"""`manage.py chat_import FILE EMAIL`: conversations from a ChatGPT export (the ZIP, or its `conversations.json`)."""

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from app.chat.import_rows import conversations_import
from app.chat.importing import conversations_of
from app.common.errors import InvalidInput
from app.common.told import ToldCommand
from app.ops.told import anybody_named


class Command(ToldCommand):
    """Importing the same file again adds only what is new."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("email", help="whose conversations they become")

    def act(self, **options: Any) -> None:
        """Read, write, and say what was kept and what was not."""
        user, skipped = anybody_named(options["email"]), Counter[str]()
        found = [one for part in _parts(options["file"]) for one in conversations_of(part, skipped)]
        added = conversations_import(user=user, conversations=found)
        turns = sum(len(one.turns) for one in found)
        self.stdout.write(f"{len(found)} conversations with {turns} turns; {added} are new.")
        for kind, number in sorted(skipped.items()):
            if number:
                self.stdout.write(f"Left out: {number} {kind}.")


def _parts(file: Path) -> list[Any]:
    """What the file's lists of conversations hold; large exports have several. Errors: InvalidInput."""
    try:
        if not zipfile.is_zipfile(file):
            return [json.loads(file.read_text(encoding="utf-8"))]
        with zipfile.ZipFile(file) as archive:
            names = sorted(n for n in archive.namelist() if Path(n).match("conversations*.json"))
            if not names:
                raise InvalidInput(f"{file.name} has no conversations.json; it is no ChatGPT export.")
            return [json.loads(archive.read(name)) for name in names]
    except OSError as exc:
        raise InvalidInput(f"{file} cannot be opened: {exc.strerror}.") from exc
    except ValueError as exc:
        raise InvalidInput(f"{file.name} is not JSON: {exc}.") from exc
