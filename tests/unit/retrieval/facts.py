"""What a right reading of the shared documents holds (their facts.json), checked fact by fact."""

import csv
import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing import Reading, read

FOLDER = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data/docs/open"
_SAID = {
    "password_required": r"password",
    "ocr_needed": r"OCR",
    "garbled_text_layer": r"OCR|mapping",
    "no_text": r"",
    "decoded_or_refused": r"",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """One file, read."""

    name: str
    format: str
    seconds: float
    pages: int
    found: int
    missing: tuple[Mapping[str, Any], ...]
    said: str
    """Why it was refused, or the first warning."""


def check_all(folder: Path = FOLDER) -> Iterator[Checked]:
    """Each file of the manifest, in its order."""
    facts: dict[str, list[dict[str, Any]]] = json.loads((folder / "facts.json").read_text())
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield _check(folder / row["file"], row["format"], row["password"], facts.get(row["file"], []))


def _check(path: Path, kind: str, password: str, facts: list[dict[str, Any]]) -> Checked:
    started = time.perf_counter()
    locked, said = _read(path, None)
    reading, error = _read(path, password) if password else (locked, said)
    seconds = time.perf_counter() - started
    missing = tuple(fact for fact in facts if not _holds(fact, reading, said))
    notes = list(reading.warnings) if reading is not None else [error]
    pages = len(reading.pages) if reading is not None else 0
    shown = said if password else (notes or [""])[0]
    return Checked(path.name, kind, seconds, pages, len(facts) - len(missing), missing, shown)


def _read(path: Path, password: str | None) -> tuple[Reading | None, str]:
    try:
        reading = read(path, path.name, password=password)
    except ReadError as error:
        return None, error.message
    return reading, " ".join(reading.warnings)


def _holds(fact: Mapping[str, Any], reading: Reading | None, said: str) -> bool:
    kind = fact["type"]
    if kind == "outcome":
        expected = _SAID.get(fact["expect"], r"\w")
        return bool(re.search(expected, said)) or (
            fact["expect"] == "graceful_failure" and reading is not None
        )
    if reading is None:
        return False
    pages = {page.number: _plain(page.text) for page in reading.pages}
    where = pages.get(fact["page"], "") if fact.get("page") else " ".join(pages.values())
    metadata = json.dumps(dict(reading.metadata), ensure_ascii=False)
    tests = {
        "contains_nospace": lambda: _tight(fact["text"]) in _tight(where),
        "contains_set": lambda: all(_plain(text) in where for text in fact["texts"]),
        "absent": lambda: _plain(fact["text"]) not in where,
        "row": lambda: _row(fact, reading),
        "order": lambda: _ordered(where, fact["texts"]),
        "pages": lambda: len(reading.pages) == fact["count"],
        "sheets": lambda: len(reading.pages) == fact["count"],
        "blank_page": lambda: not where.strip(),
        "title": lambda: _plain(fact["text"]) in _plain(metadata) or _plain(fact["text"]) in where,
        "attachment": lambda: fact["name"] in metadata,
        "outline": lambda: all(title in metadata for title in fact["titles"]),
    }
    return bool(tests[kind]()) if kind in tests else _plain(fact["text"]) in where


def _plain(text: str) -> str:
    joined = re.sub(r"(\w)-\n(?=[a-zà-ÿ])", r"\1", unicodedata.normalize("NFKC", text))
    return " ".join(joined.split())


def _tight(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _row(fact: Mapping[str, Any], reading: Reading) -> bool:
    pages = [page.text for page in reading.pages if not fact.get("page") or page.number == fact["page"]]
    return any(_ordered(_plain(line), fact["cells"]) for text in pages for line in text.split("\n"))


def _ordered(text: str, parts: list[str]) -> bool:
    at = 0
    for part in parts:
        found = text.find(_plain(part), at)
        if found < 0:
            return False
        at = found + len(_plain(part))
    return True
