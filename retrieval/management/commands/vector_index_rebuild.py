"""`manage.py vector_index_rebuild`: build the approximate index of vectors anew while search and reading go on."""

import time
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql

from retrieval.models import EmbeddingSpace

_STATE = """
SELECT pg_get_indexdef(i.indexrelid), i.indisvalid FROM pg_index i
WHERE i.indexrelid = to_regclass(%s)
"""
# As in sql/space_index.sql, but beside the one that serves and without holding anybody up.
_BUILD = """
CREATE INDEX CONCURRENTLY {name} ON retrieval_chunkvector
USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) WHERE space_id = {space} AND indexed
"""


class Command(BaseCommand):
    help = (
        "Build the approximate index of each embedding model's vectors anew beside the old one, then let it take over. "
        "Search and reading go on. Only indexes of an older form, or that an earlier run left unfinished, unless --all."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--all", action="store_true", help="sound ones as well, as after very many removals"
        )
        parser.add_argument("--list", action="store_true", help="say what would be built, and build nothing")
        parser.add_argument(
            "--memory", default="1GB", help="for the build (1GB); some 1.2 KB a vector makes it quick"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with psycopg.connect(settings.DATABASE_OWNER_URL, autocommit=True) as owner:
                for space in EmbeddingSpace.objects.exclude(state=EmbeddingSpace.State.RETIRED).order_by(
                    "pk"
                ):
                    self._one(owner, space, **options)
        except psycopg.Error as exc:
            raise CommandError(
                f"The index could not be built: {str(exc).strip()} Search goes on with the old one. Correct this and "
                "run the command again; it clears away what was begun."
            ) from exc

    def _one(self, owner: psycopg.Connection, space: EmbeddingSpace, **options: Any) -> None:
        serving = f"retrieval_vector_hnsw_{space.pk.hex}"
        name = f"{space.model} ({space.dimension})"
        found = owner.execute(_STATE, [serving]).fetchone()
        if found is None:
            self.stdout.write(f"{name}: has no approximate index; it is searched exactly.")
            return
        definition, valid = found
        if valid and "AND indexed" in definition and not options["all"]:
            self.stdout.write(f"{name}: sound.")
            return
        if options["list"]:
            self.stdout.write(f"{name}: to be built anew.")
            return
        began = time.monotonic()
        _replace(owner, space, serving, options["memory"])
        self.stdout.write(f"{name}: built anew in {time.monotonic() - began:.0f} s.")


def _replace(owner: psycopg.Connection, space: EmbeddingSpace, serving: str, memory: str) -> None:
    here, new, old = (sql.Identifier(f"{serving}{end}") for end in ("", "_new", "_old"))
    owner.execute("SELECT set_config('maintenance_work_mem', %s, false)", [memory])
    _clear_left(owner, new, old)
    owner.execute(
        sql.SQL(_BUILD).format(
            name=new, dimension=sql.Literal(space.dimension), space=sql.Literal(str(space.pk))
        )
    )
    # At once, so that there is an index of this name at every moment.
    with owner.transaction():
        owner.execute(sql.SQL("ALTER INDEX {} RENAME TO {}").format(here, old))
        owner.execute(sql.SQL("ALTER INDEX {} RENAME TO {}").format(new, here))
    _clear_left(owner, new, old)


def _clear_left(owner: psycopg.Connection, *names: sql.Identifier) -> None:
    for name in names:
        owner.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
