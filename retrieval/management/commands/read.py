"""`manage.py read FILE… [--json]`: what the machine reads in a file, without storing anything."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.errors import ReadError
from retrieval.parsing import Reading, read


class Command(BaseCommand):
    help = "Print what the machine reads in each file, by page."
    # Works before there is any database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--json", action="store_true", help="one line of JSON per file")
        parser.add_argument("--password", help="for encrypted PDFs and archives")

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for path in options["files"]:
            reading, error = _read(path, options["password"])
            failed += reading is None
            if options["json"]:
                self.stdout.write(json.dumps(_line(path, reading, error), ensure_ascii=False))
            else:
                self._print(path, reading, error)
        if failed and not options["json"]:
            raise CommandError(f"Could not be read: {failed} of {len(options['files'])}.")

    def _print(self, path: Path, reading: Reading | None, error: str | None) -> None:
        if reading is None:
            self.stdout.write(f"== {path}\n{error}\n")
            return
        self.stdout.write(f"== {path} ({reading.format})")
        for warning in reading.warnings:
            self.stdout.write(f"!! {warning}")
        for page in reading.pages:
            self.stdout.write(f"-- page {page.number}\n{page.text}\n" if reading.paged else f"{page.text}\n")


def _read(path: Path, password: str | None) -> tuple[Reading | None, str | None]:
    if not path.is_file():
        return None, f"{path} is not a file."
    try:
        return read(path, path.name, password=password), None
    except ReadError as exc:
        return None, exc.message


def _line(path: Path, reading: Reading | None, error: str | None) -> dict[str, object]:
    if reading is None:
        return {"file": str(path), "ok": False, "error": error, "warnings": [], "metadata": {}, "pages": []}
    return {
        "file": str(path),
        "ok": True,
        "error": None,
        "warnings": list(reading.warnings),
        "metadata": {"format": reading.format, "mime": reading.mime, **reading.metadata},
        "pages": [{"number": page.number, "text": page.text} for page in reading.pages],
    }
