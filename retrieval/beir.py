"""Test collections on disk: BEIR-shaped folders, and a collection's own questions. Pure but for reading files."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrieval.errors import Invalid


@dataclass(frozen=True, slots=True)
class Item:
    """A document of a test collection."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Exam:
    """Questions, and which documents answer each how well."""

    name: str
    documents: tuple[Item, ...]
    questions: Mapping[str, str]
    """Text by id; only those that are judged."""
    judged: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def exam_read(folder: Path, *, within: Path | None = None) -> Exam:
    """corpus.jsonl, queries.jsonl (either may be .gz) and qrels/test.tsv. Errors: Invalid naming what is missing.

    Its name is the folder's, with those of the folders between it and `within` before it.
    """
    judged: dict[str, dict[str, int]] = {}
    with _opened(folder / "qrels" / "test.tsv") as lines:
        for line in lines:
            question, document, *score = line.split("\t")
            # The first line may name the columns.
            if score and score[-1].strip().lstrip("-").isdigit():
                judged.setdefault(question, {})[document] = int(score[-1])
    documents = tuple(
        Item(str(row["_id"]), str(row.get("title") or ""), str(row.get("text") or ""))
        for row in _rows(folder / "corpus.jsonl")
    )
    questions = {str(row["_id"]): str(row["text"]) for row in _rows(folder / "queries.jsonl")}
    return Exam(
        name=folder.name if within is None or within == folder else folder.relative_to(within).as_posix(),
        documents=documents,
        questions={key: questions[key] for key in judged if key in questions},
        judged=judged,
    )


def is_exam(folder: Path) -> bool:
    """Whether a folder is BEIR-shaped."""
    return (folder / "qrels" / "test.tsv").is_file()


def exams_in(folder: Path) -> list[Path]:
    """The folder itself, or every BEIR-shaped folder below it, in order."""
    if is_exam(folder):
        return [folder]
    return sorted(found.parents[1] for found in folder.glob("**/qrels/test.tsv"))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as exc:
                    raise Invalid("folder", f"Line {number} of {path} is not JSON: {exc}.") from exc


def _opened(path: Path) -> Any:
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file():
        return path.open(encoding="utf-8")
    if packed.is_file():
        return gzip.open(packed, "rt", encoding="utf-8")
    raise Invalid("folder", f"{path} is missing (or {packed.name}): this is no BEIR-shaped folder.")
