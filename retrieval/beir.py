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
    """corpus.jsonl, queries.jsonl and qrels/test.tsv, each plain or .gz. Errors: Invalid naming what is missing.

    Its name is the folder's, with those of the folders between it and `within` before it.
    """
    documents = tuple(
        Item(_said(row, "_id"), _said(row, "title"), _said(row, "text"))
        for row in _rows(folder / "corpus.jsonl")
    )
    questions = {_said(row, "_id"): _said(row, "text") for row in _rows(folder / "queries.jsonl")}
    judged = _judged(folder / "qrels" / "test.tsv")
    asked = [key for key in judged if questions.get(key, "").strip()]
    if not asked:
        raise Invalid(
            "folder", f"{folder} judges none of its questions: the ids of qrels and queries differ."
        )
    return Exam(
        name=folder.name if within is None or within == folder else folder.relative_to(within).as_posix(),
        documents=documents,
        questions={key: questions[key] for key in asked},
        judged={key: judged[key] for key in asked},
    )


def _judged(path: Path) -> dict[str, dict[str, int]]:
    """Grades by document by question: `query-id corpus-id score` with or without a line of names, or TREC's four
    columns."""
    judged: dict[str, dict[str, int]] = {}
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
            try:
                question, document, grade = cells[0], cells[-2], round(float(cells[-1]))
            except (ValueError, IndexError) as exc:
                if number == 1:
                    continue
                raise Invalid(
                    "folder", f"Line {number} of {path} is not `question, document, grade`."
                ) from exc
            judged.setdefault(question, {})[document] = grade
    return judged


def is_exam(folder: Path) -> bool:
    """Whether a folder is BEIR-shaped."""
    return any((folder / "qrels" / name).is_file() for name in ("test.tsv", "test.tsv.gz"))


def exams_in(folder: Path) -> list[Path]:
    """The folder itself, or every BEIR-shaped folder below it, in order."""
    if is_exam(folder):
        return [folder]
    return sorted(
        {found.parents[1] for found in folder.glob("**/qrels/test.tsv*") if is_exam(found.parents[1])}
    )


def _said(row: dict[str, Any], name: str) -> str:
    """What a row says under a name, as a text that can be stored: without NUL and halves of characters."""
    value = row.get(name, "")
    text = "" if value is None else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as exc:
                    raise Invalid("folder", f"Line {number} of {path} is not JSON: {exc}.") from exc
                if not isinstance(row, dict) or "_id" not in row:
                    raise Invalid("folder", f"Line {number} of {path} has no `_id`.")
                yield row


def _opened(path: Path) -> Any:
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file():
        return path.open(encoding="utf-8-sig")
    if packed.is_file():
        return gzip.open(packed, "rt", encoding="utf-8-sig")
    raise Invalid("folder", f"{path} is missing (or {packed.name}): this is no BEIR-shaped folder.")
