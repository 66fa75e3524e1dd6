"""Is what is stored whole: citations drawn at random, originals, the ledger, and the database itself."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from app.billing.verification import ledger_verify
from app.chat.models import SentPassage
from app.ops.manifest import file_sha256
from retrieval.models import Document, DocumentText, Receipt
from retrieval.parsing import PAGE_BREAK
from retrieval.storage import blob_file, blob_where, blobs_older_than


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was looked at and what was wrong, a sentence each."""

    citations: int
    opened: int
    """Of them at their place in the document; the others' documents were replaced or removed since."""
    originals: int
    ledger_entries: int
    ledger_price: str
    problems: tuple[str, ...]


def installation_verify(*, citations: int = 100) -> Verified:
    """Open so many random citations, see that every original is there, and replay the ledger. Reads only."""
    passages = list(SentPassage.objects.filter(erased_at=None).order_by("?")[:citations])
    problems: list[str] = []
    opened = 0
    for passage in passages:
        found = list(_citation(passage))
        problems += [f"Citation {passage.id}: {what}" for what in found if what]
        opened += not found
    originals, lost = _originals()
    ledger = ledger_verify()
    problems += lost
    problems += [
        f"Ledger, {d.check}: {d.row} has {d.stored}, its rows give {d.rebuilt}" for d in ledger.differences
    ]
    problems += _database()
    return Verified(
        citations=len(passages),
        opened=opened,
        originals=originals,
        ledger_entries=ledger.entries,
        ledger_price=f"{ledger.price:f}",
        problems=tuple(problems),
    )


def _citation(passage: SentPassage) -> Iterator[str]:
    """What is wrong with it; an empty text where it is right but can only be shown from its snapshot; nothing else."""
    if hashlib.sha256(passage.text.encode()).hexdigest() != passage.sha256:
        yield "the stored text does not have its hash."
    document = Document.objects.filter(pk=passage.document_id).first()
    if document is None:
        yield (
            "" if _was_removed(passage) else f"its document {passage.document_id} is gone without a receipt."
        )
        return
    if document.serving_version != passage.document_version:
        yield ""
        return
    if _text_of(document)[passage.start : passage.end] != passage.text:
        yield f"the document {document.pk} has another text at {passage.start}–{passage.end}."
    if (problem := _original(document.serving_sha256)) is not None:
        yield problem


def _was_removed(passage: SentPassage) -> bool:
    whole = Receipt.objects.filter(document_id=None, collection_id=passage.collection_id)
    return whole.exists() or Receipt.objects.filter(document_id=passage.document_id).exists()


def _text_of(document: Document) -> str:
    pages = DocumentText.objects.filter(document=document, version=document.serving_version).order_by("page")
    return PAGE_BREAK.join(pages.values_list("text", flat=True))


def _original(sha256: str) -> str | None:
    try:
        with blob_file(sha256) as path:
            whole = file_sha256(path) == sha256
    except OSError:
        return f"its original {blob_where(sha256)} cannot be read."
    return None if whole else f"its original {blob_where(sha256)} is damaged: its hash is another."


def _originals() -> tuple[int, list[str]]:
    """How many documents have one, and those that lack it; only those of the citations are read in full."""
    rows: list[tuple[UUID, str]] = list(
        Document.objects.exclude(serving_sha256="").values_list("pk", "serving_sha256")
    )
    stored = set(blobs_older_than(0))
    lost = [
        f"Document {pk}: its original {blob_where(sha)} is not there."
        for pk, sha in rows
        if sha not in stored
    ]
    return len(rows), lost


_INVALID = {
    "index {} is not valid; REINDEX it.": (
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE NOT i.indisvalid"
    ),
    "constraint {} was never validated.": (
        "SELECT conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace "
        "WHERE NOT convalidated AND n.nspname = current_schema()"
    ),
    "the application's role may change {}, whose rows are only ever added; restore it with `manage.py restore`.": (
        "SELECT DISTINCT t.tgrelid::regclass FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "JOIN pg_roles r ON r.rolname = 'tessera_app' AND NOT r.rolsuper "
        "WHERE p.proname IN ('billing_refuse', 'audit_refuse') AND NOT t.tgisinternal AND t.tgtype & 16 > 0 "
        "AND (has_table_privilege(r.oid, t.tgrelid, 'UPDATE') OR has_table_privilege(r.oid, t.tgrelid, 'DELETE'))"
    ),
    "{} pages have a wrong checksum; restore a backup onto another disk.": (
        "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0"
    ),
}


def _database() -> list[str]:
    problems = []
    with connection.cursor() as cursor:
        for words, query in _INVALID.items():
            cursor.execute(query)
            problems += [f"Database: {words.format(name)}" for (name,) in cursor.fetchall()]
    executor = MigrationExecutor(connection)
    if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        problems.append(f"Database: {len(plan)} migrations are missing; run `manage.py migrate`.")
    return problems
