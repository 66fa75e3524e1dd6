"""What documents do for questions: the way in, what failed, how large collections are, what was not found. Staff only.

Figures alone: no question, no answer, no comment, no name of a file.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.generic import View

from app.catalog.readiness import parts_away_words
from app.chat import quality
from app.chat.quality import Served
from app.common.clock import now
from app.common.formatting import count, share, size
from app.dashboard.naming import names_of
from app.dashboard.staff import StaffPage
from app.dashboard.tables import Cell, Table, folded, named, table_of
from app.dashboard.views import csv_answer
from retrieval import stock
from retrieval.stock import Shelf

SPANS = {"7d": ("last 7 days", 7), "30d": ("last 30 days", 30), "90d": ("last 90 days", 90)}
USUAL = "30d"
_NONE = Served(collection_id=None, questions=0, nothing_found=0, uncited=0, good=0, bad=0)
_REASONS = {
    "wrong": "It is wrong",
    "incomplete": "Something is missing",
    "sources": "The sources do not fit",
    "unclear": "It is hard to understand",
    "other": "Another reason",
    "": "No reason given",
}


class KnowledgeView(StaffPage, View):
    """The page; `span` of SPANS, `format=csv&table=collections|failures|queue|feedback` is one table as a file."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Figures and tables of the span in the address."""
        asked = request.GET.get("span", USUAL)
        span = asked if asked in SPANS else USUAL
        words, days = SPANS[span]
        since = now() - timedelta(days=days)
        if request.GET.get("format") == "csv":
            wanted = request.GET.get("table", "")
            name = wanted if wanted in _TABLES else "collections"
            return csv_answer(_TABLES[name](since), f"knowledge-{name}-{span}")
        whole, _ = quality.served(since)
        context = {
            "section": "knowledge",
            "away": parts_away_words(),
            "sentence": f"What documents did for questions in the {words}",
            "spans": [(text, f"span={name}", name == span) for name, (text, _) in SPANS.items()],
            "span": span,
            "whole": whole,
            "ready_day": stock.ready_since(now() - timedelta(days=1)),
            "tables": {name: folded(made(since), _NOTES) for name, made in _TABLES.items()},
        }
        return render(request, "dashboard/knowledge.html", context)


def _collections(since: datetime) -> Table:
    """One line per collection: what is in it, and how its questions were served."""
    shelves = stock.shelves()
    _, parts = quality.served(since)
    by_id = {one.collection_id: one for one in parts}
    teams = names_of("team", [shelf.team_id for shelf in shelves])
    known = {shelf.collection_id for shelf in shelves}
    # Questions over attached files stand in the line that sums those up.
    others = _sum([one for one in parts if one.collection_id not in known])
    rows = [
        _collection(
            shelf,
            teams[shelf.team_id].text if shelf.team_id else "",
            by_id.get(shelf.collection_id, _NONE) if shelf.collection_id else others,
        )
        for shelf in shelves
    ]
    columns = (
        "Collection", "Team", "Documents", "Failed", "Size", "Pages", "Passages", "Questions", "Nothing found",
        "Not cited", "Good", "Bad",
    )  # fmt: skip
    return table_of(columns, rows)


def _collection(shelf: Shelf, team: str, found: Served) -> list[Cell]:
    return [
        Cell(shelf.name, muted=shelf.collection_id is None),
        named(team),
        *(_count(number) for number in (shelf.documents, shelf.failed)),
        Cell(size(shelf.size), str(shelf.size), muted=not shelf.size),
        *(_count(number) for number in (shelf.pages, shelf.chunks, found.questions)),
        _part(found.nothing_found, found.questions),
        _part(found.uncited, found.questions),
        _count(found.good),
        _count(found.bad),
    ]


def _sum(rows: list[Served]) -> Served:
    """Of collections that are attached files, of whom one question rarely searches two."""
    return Served(
        collection_id=None,
        questions=sum(row.questions for row in rows),
        nothing_found=sum(row.nothing_found for row in rows),
        uncited=sum(row.uncited for row in rows),
        good=sum(row.good for row in rows),
        bad=sum(row.bad for row in rows),
    )


def _failures(since: datetime) -> Table:
    rows = [
        [
            Cell(reason.code.replace("_", " ") or "unknown", reason.code),
            named(reason.step),
            _count(reason.documents),
            Cell(", ".join(reason.kinds) or "not looked at", words=True),
            Cell(reason.message, words=True),
            _moment(reason.latest),
        ]
        for reason in stock.reasons(since)
    ]
    return table_of(("Reason", "While", "Documents", "Kinds of file", "What it said last", "Last"), rows)


def _queue(_: datetime) -> Table:
    rows = [
        [
            Cell(one.status),
            _count(one.documents),
            Cell(size(one.size), str(one.size)),
            Cell("") if one.since is None else _moment(one.since),
            Cell("") if one.stalled_since is None else _moment(one.stalled_since),
        ]
        for one in stock.waiting()
    ]
    return table_of(("Step", "Documents", "Size", "First came", "Slowest moved"), rows)


def _feedback(since: datetime) -> Table:
    found = quality.complaints(since)
    total = sum(number for _, number in found)
    rows = [
        [Cell(_REASONS.get(reason, reason)), _count(number), Cell(share(Decimal(number), Decimal(total)))]
        for reason, number in found
    ]
    return table_of(("Why it was rated bad", "Answers", "Share"), rows)


_TABLES: Mapping[str, Callable[[datetime], Table]] = {
    "queue": _queue,
    "failures": _failures,
    "collections": _collections,
    "feedback": _feedback,
}
_NOTES = {"Failed": "{} failed", "Pages": "{} pages"}
"""Columns that stand below others on the page."""


def _count(number: int) -> Cell:
    return Cell(count(number), str(number), muted=not number)


def _part(part: int, whole: int) -> Cell:
    """A count with its share below."""
    note = share(Decimal(part), Decimal(whole)) if part else ""
    return Cell(count(part), str(part), muted=not part, note=note)


def _moment(at: datetime) -> Cell:
    local = at.astimezone(ZoneInfo(settings.INSTALLATION_ZONE))
    return Cell(f"{local:%-d %b %H:%M}", at.isoformat())
