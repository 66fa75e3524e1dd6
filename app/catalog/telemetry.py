"""What the servers say of their own load, read from their Prometheus pages every few seconds and kept for two days."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import connection

from app.catalog.models import Backend, LoadSample
from app.catalog.probing import METRICS_URL
from app.common.clock import now
from app.common.errors import AppError
from app.common.outbound import Answer, Outbound, send
from inference_client.adapters.addresses import auth_headers, root_url
from inference_client.adapters.kinds import kind_of
from inference_client.metrics import between, metrics_read
from inference_client.servers import Server

KEPT = timedelta(hours=48)
LIMIT_S = 4.0
_MAX_BYTES = 8 * 1024 * 1024
_STALE = timedelta(minutes=5)
"""Rates are told between samples that are not further apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where one server shows its figures."""

    backend_id: UUID
    urls: tuple[tuple[str, Mapping[str, str]], ...]
    """Addresses with the headers to send; the key goes to the server itself only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One server at one moment."""

    backend_id: UUID
    taken_at: datetime
    figures: Mapping[str, float]
    """By the names of `inference_client.metrics`: running, waiting, kv_cache_share, gpu_share, output_tokens_per_s…
    Beside them `round_trip_s`: how long the quickest of its pages took to come, which is the way there and back."""
    problem: str = ""


def loads_scrape() -> int:
    """Read every page once, side by side; returns how many gave figures. A server that is away hinders no other."""
    pages = [page for row in Backend.objects.filter(enabled=True) if (page := page_of(row)).urls]
    moment = now()
    before = loads_latest()
    found = async_to_sync(_all)(pages) if pages else []
    rows = [_sample(page, moment, read, before) for page, read in zip(pages, found, strict=True)]
    LoadSample.objects.bulk_create(rows)
    LoadSample.objects.filter(taken_at__lt=moment - KEPT).delete()
    return sum(not row.problem for row in rows)


def page_of(row: Backend) -> Page:
    """The pages of a server; none where its kind has none and no option names one."""
    try:
        kind = kind_of(row.kind)
    except LookupError:
        return Page(backend_id=row.id, urls=())
    server = Server(kind=row.kind, base_url=row.base_url, api_key=row.api_key or None)
    named = row.options.get(METRICS_URL) or []
    urls: list[tuple[str, Mapping[str, str]]] = [
        (str(url), {}) for url in (named if isinstance(named, list) else [named])
    ]
    if kind.metrics_path is not None:
        urls.insert(0, (root_url(server, kind.metrics_path), auth_headers(server, kind)))
    return Page(backend_id=row.id, urls=tuple(urls))


async def load_read(page: Page) -> dict[str, float] | str:
    """A server's figures of this moment, or the sentence that says why there are none."""
    return await _read(page) if page.urls else "Servers of this kind have no page of figures."


def loads_latest() -> dict[UUID, Load]:
    """The newest sample of each server."""
    rows = LoadSample.objects.order_by("backend_id", "-taken_at").distinct("backend_id")
    return {
        row.backend_id: Load(
            backend_id=row.backend_id, taken_at=row.taken_at, figures=row.figures, problem=row.problem
        )
        for row in rows
    }


_SERIES = """
SELECT to_timestamp(floor(extract(epoch FROM taken_at) / %s) * %s) AS at, name, avg(value::float8), max(value::float8)
FROM catalog_loadsample, jsonb_each_text(figures) AS figure(name, value)
WHERE backend_id = %s AND taken_at >= %s AND name = ANY(%s)
GROUP BY 1, 2 ORDER BY 1
"""


def load_series(
    backend_id: UUID, names: Sequence[str], *, since: datetime, step: timedelta = timedelta(minutes=1)
) -> dict[str, list[tuple[datetime, float, float]]]:
    """For charts: for each figure (moment, mean, highest) of every step that has samples."""
    seconds = step.total_seconds()
    series: dict[str, list[tuple[datetime, float, float]]] = {name: [] for name in names}
    with connection.cursor() as cursor:
        cursor.execute(_SERIES, [seconds, seconds, backend_id, since, list(names)])
        for at, name, mean, highest in cursor.fetchall():
            series[name].append((at, mean, highest))
    return series


_SPAN = """
SELECT name, avg(value::float8), max(value::float8) - min(value::float8)
FROM catalog_loadsample, jsonb_each_text(figures) AS figure(name, value)
WHERE backend_id = %s AND taken_at >= %s AND taken_at < %s GROUP BY 1
"""


def load_means(backend_id: UUID, *, since: datetime, until: datetime) -> dict[str, float]:
    """What a server told in that time: means, and of figures that only grow (`…_total`) by how much they did."""
    with connection.cursor() as cursor:
        cursor.execute(_SPAN, [backend_id, since, until])
        return {
            name: grew if name.endswith("_total") else mean for name, mean, grew in cursor if mean is not None
        }


async def _all(pages: Sequence[Page]) -> list[dict[str, float] | str]:
    return await asyncio.gather(*map(_read, pages))


async def _read(page: Page) -> dict[str, float] | str:
    """The figures, or the sentence that says why there are none."""
    requests = [
        Outbound(
            url=url,
            headers=headers,
            timeout_s=LIMIT_S,
            max_bytes=_MAX_BYTES,
            # Staff configured these servers, so they may be on the own network and speak plain http.
            trusted=(urlsplit(url).hostname or "",),
        )
        for url, headers in page.urls
    ]
    try:
        timed = await asyncio.gather(*map(_timed, requests))
    except AppError as exc:
        return exc.message
    answers = [answer for answer, _ in timed]
    if bad := next((answer.status for answer in answers if answer.status != 200), None):
        return f"Its page of figures answers {bad}; some servers show it only when they are started for it."
    figures = metrics_read("\n".join(answer.body.decode("utf-8", "replace") for answer in answers))
    return figures | {"round_trip_s": round(min(seconds for _, seconds in timed), 6)}


async def _timed(request: Outbound) -> tuple[Answer, float]:
    began = time.perf_counter()
    return await send(request), time.perf_counter() - began


def _sample(
    page: Page, moment: datetime, read: dict[str, float] | str, before: Mapping[UUID, Load]
) -> LoadSample:
    if isinstance(read, str):
        return LoadSample(backend_id=page.backend_id, taken_at=moment, problem=read[:300])
    last = before.get(page.backend_id)
    figures: dict[str, Any] = dict(read)
    if last is not None and moment - last.taken_at < _STALE:
        figures = between(last.figures, read, (moment - last.taken_at).total_seconds())
    return LoadSample(backend_id=page.backend_id, taken_at=moment, figures=figures)
