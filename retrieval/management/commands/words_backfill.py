"""`manage.py words_backfill`: index the words of documents that were stored before there was a keyword search."""

from typing import Any

from django.core.management.base import BaseCommand

from retrieval.keyword_index import words_backfill


class Command(BaseCommand):
    help = "Index the words of documents that have none indexed. Safe to run twice; search goes on meanwhile."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{words_backfill()} document(s) indexed.")
