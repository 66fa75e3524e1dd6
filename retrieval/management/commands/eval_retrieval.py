"""`manage.py eval_retrieval DIR [--json]`: how well each leg finds what a test collection says should be found.

DIR is a BEIR-shaped folder (corpus.jsonl, queries.jsonl, qrels/test.tsv) or a folder of such. A collection's own
questions are asked with `--collection NAME --questions FILE`, a line of JSON each:
{question, document, page?, phrase?}.
"""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ir_measures
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from ir_measures import RR, R, nDCG

from retrieval.beir import Exam, exam_read, exams_in
from retrieval.errors import RetrievalError
from retrieval.evaluation import LEGS, cuts_of, room_for, runs
from retrieval.models import Collection
from retrieval.own_questions import expected_read, own_runs
from retrieval.spaces import space_current
from retrieval.vector_cache import VectorCache

MEASURES = (nDCG @ 10, R @ 100, RR @ 10)
Figures = dict[str, dict[str, float]]


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", nargs="?")
        parser.add_argument("--json", action="store_true", help="one line of JSON per collection")
        parser.add_argument("--legs", nargs="+", choices=LEGS, default=list(LEGS))
        parser.add_argument("--collection", metavar="NAME", help="ask about this collection")
        parser.add_argument("--questions", type=Path, metavar="FILE", help="what is asked about it")
        parser.add_argument("--cache", type=Path, help="where vectors are kept by the hash of their text")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["collection"] or options["questions"]:
                name, file = options["collection"], options["questions"] or options["folder"]
                if not name or file is None:
                    raise CommandError("Say both: --collection NAME and --questions FILE.")
                self._tell(name, _own(name, file), options)
                return
            if options["folder"] is None:
                raise CommandError("Say what to measure: a BEIR-shaped DIR, or --collection and --questions.")
            folders = exams_in(options["folder"])
            if not folders:
                raise CommandError(
                    f"{options['folder']} holds no qrels/test.tsv: it is no BEIR-shaped folder."
                )
            for folder in folders:
                exam = exam_read(folder, within=options["folder"])
                cache = options["cache"] or Path(settings.DATA_DIR) / "cache" / "vectors"
                self._tell(exam.name, figures_of(exam, cache=cache, legs=options["legs"]), options)
        except RetrievalError as exc:
            raise CommandError(exc.message) from exc

    def _tell(self, name: str, figures: Figures, options: Mapping[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(json.dumps({"collection": name, **figures}, ensure_ascii=False))
            return
        for leg, values in figures.items():
            row = "  ".join(f"{measure} {value:.4f}" for measure, value in values.items())
            self.stdout.write(f"{name:16} {leg:9} {row}")


def figures_of(exam: Exam, *, cache: Path | None, legs: list[str]) -> Figures:
    """Measures by leg of one exam, its documents stored for as long as it takes."""
    space = space_current()
    with VectorCache(space, cache, payer={"team_id": None}) as kept:
        texts = [cut.embedded_text for cuts in cuts_of(exam).values() for cut in cuts]
        matrix = async_to_sync(kept.vectors)(texts, role="passage")
        with room_for(exam, space, dict(zip(texts, matrix, strict=True))) as room:
            found = async_to_sync(runs)(exam, room, kept, legs=legs)
    return _figures(exam.judged, found)


def _own(name: str, path: Path) -> Figures:
    collection = Collection.objects.filter(name__iexact=name).order_by("-created_at").first()
    if collection is None:
        raise CommandError(f"There is no collection named “{name}”.")
    return _figures(*async_to_sync(own_runs)(collection, expected_read(path)))


def _figures(judged: Mapping[str, Mapping[str, int]], found: Mapping[str, Any]) -> Figures:
    return {
        leg: {
            str(measure): round(value, 4)
            for measure, value in sorted(
                ir_measures.calc_aggregate(MEASURES, judged, run).items(), key=lambda item: str(item[0])
            )
        }
        for leg, run in found.items()
    }
