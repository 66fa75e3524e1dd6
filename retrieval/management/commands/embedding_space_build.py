"""`manage.py embedding_space_build`: change the embedding model while search goes on."""

import time
from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from retrieval.models import EmbeddingSpace
from retrieval.ports import embed
from retrieval.rebuild import space_back, space_begin, space_drop, space_fill, space_progress, space_switch
from retrieval.vectors import unit_vectors

_TELL_SECONDS = 5.0
"""Counting a million chunks takes a moment itself."""


class Command(BaseCommand):
    help = (
        "Embed everything with another model beside the one in use, then switch to it in one transaction. "
        "Interrupted, it goes on where it stood."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--model", help="as its deployment is called under /admin/")
        what.add_argument("--back", action="store_true", help="to the model before")
        what.add_argument("--drop", metavar="MODEL", help="give up the vectors of a model that is not in use")
        what.add_argument("--list", action="store_true", help="the models and how far they are")
        parser.add_argument("--dimension", type=int, help="numbers in one of its vectors")
        parser.add_argument("--query-prefix", default="", help="put before a question")
        parser.add_argument("--passage-prefix", default="", help="put before a passage")

    def handle(self, *args: Any, **options: Any) -> None:
        with _Told():
            self._act(**options)

    def _act(self, **options: Any) -> None:
        if options["list"]:
            for space in EmbeddingSpace.objects.order_by("pk"):
                done, total = space_progress(space)
                self.stdout.write(f"{space.state:9} {space.model} ({space.dimension})  {done} of {total}")
        elif options["drop"]:
            self.stdout.write(f"{space_drop(_named(options['drop']))} vectors are gone.")
        elif options["back"]:
            self._build(space_back())
        elif options["dimension"]:
            _probe(options["model"], options["dimension"])
            self._build(
                space_begin(
                    model=options["model"],
                    dimension=options["dimension"],
                    query_prefix=options["query_prefix"],
                    passage_prefix=options["passage_prefix"],
                )
            )
        else:
            raise CommandError("How many numbers does one of its vectors have? Say it with --dimension.")

    def _build(self, space: EmbeddingSpace) -> None:
        self._next = 0.0
        while True:
            space_fill(space, go_on=lambda: self._told(space))
            if space_switch(space):
                break
        self.stdout.write(f"{space.model} serves now. The model before stands by; --back returns to it.")

    def _told(self, space: EmbeddingSpace) -> bool:
        if time.monotonic() >= self._next:
            done, total = space_progress(space)
            self.stdout.write(f"{done} of {total} chunks")
            self._next = time.monotonic() + _TELL_SECONDS
        return True


class _Told:
    """Turns errors that carry a sentence into what a command says; the embedder's classes are not ours to name."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if message := getattr(error, "message", None):
            raise CommandError(message) from error


def _probe(model: str, dimension: int) -> None:
    """Embed one word, so that a name nobody serves or a wrong dimension is told before anything is begun."""
    space = EmbeddingSpace(model=model, dimension=dimension)
    answer = async_to_sync(embed)(["probe"], space=space, role="passage", payer={"team_id": None})
    unit_vectors(answer, texts=1, dimension=dimension)


def _named(model: str) -> EmbeddingSpace:
    space = EmbeddingSpace.objects.filter(model=model).exclude(state=EmbeddingSpace.State.RETIRED).first()
    if space is None:
        raise CommandError(f"There are no vectors of {model}.")
    return space
