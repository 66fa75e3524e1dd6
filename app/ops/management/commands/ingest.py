"""`manage.py ingest PATH… --collection NAME`: put files, or all files of folders, into a collection."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from app.accounts.selectors import Caller, caller_by_user, principal_of
from app.billing.uploads import upload_admit
from app.common.errors import LimitReached
from app.common.told import ToldCommand
from app.ops.told import person_named
from retrieval.collections import collection_create
from retrieval.errors import RetrievalError
from retrieval.models import Collection, Document
from retrieval.selectors import collection_named
from retrieval.services import document_create, document_ingest
from retrieval.types import Viewer


class Command(ToldCommand):
    """Reads, chunks and embeds here and now, and prints one line per file; a bad file never stops the others."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)
        parser.add_argument("--collection", required=True, metavar="NAME", help="made when it does not exist")
        parser.add_argument(
            "--as", dest="email", help="the person who uploads; default: the first administrator"
        )

    def act(self, **options: Any) -> None:
        user = person_named(options["email"], to="upload")
        caller = caller_by_user(user)
        try:
            collection = collection_named(Viewer(caller.principals), options["collection"])
        except RetrievalError:
            collection = collection_create(
                name=options["collection"], team_id=caller.default_team_id, created_by=principal_of(caller)
            )
        failed = sum(not self._one(collection, path, caller) for path in _files(options["paths"]))
        if failed:
            raise CommandError(
                f"{failed} {'file' if failed == 1 else 'files'} could not be read; the reasons stand above."
            )

    def _one(self, collection: Collection, path: Path, caller: Caller) -> bool:
        try:
            with path.open("rb") as content, transaction.atomic():
                upload_admit(caller=caller, collection=collection, content=content)
                document, created = document_create(
                    collection=collection, name=path.name, content=content, created_by=principal_of(caller)
                )
            if created or document.status != "ready":
                document_ingest(document.id)
        except FileNotFoundError:
            self.stderr.write(f"failed  {path}: There is no such file.")
            return False
        except (OSError, RetrievalError, LimitReached) as exc:
            self.stderr.write(f"failed  {path.name}: {getattr(exc, 'message', exc)}")
            return False
        document = Document.objects.get(id=document.id)
        if document.status != "ready":
            reason = (document.error or {}).get("message", "it is not ready yet")
            self.stderr.write(f"{document.status}  {path.name}: {reason}")
            return False
        self.stdout.write(f"ready   {path.name}{'' if created else ' (already there)'}")
        return True


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += sorted(p for p in path.rglob("*") if _wanted(p, path)) if path.is_dir() else [path]
    return found


def _wanted(path: Path, folder: Path) -> bool:
    """A file of a folder, and not one that hides."""
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
