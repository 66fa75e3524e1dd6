"""kill -9 of the ingestion worker at random points: nothing is lost, doubled, or paid for twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.db import connection
from pytest_django import Settings

from app.accounts.models import Team
from app.billing.services import bootstrap_defaults, price_set
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put
from retrieval import services
from retrieval.models import Chunk, ChunkVector, Document, DocumentText, EmbeddingDraft
from retrieval.tasks import document_ingest
from tests.e2e.live import until
from tests.factories import EMBEDDING_PRICE, collection_make, team_make, user_make
from tests.integration.retrieval.counting import CountingProxy
from tests.stack import PROCESS_ENV, REPOSITORY

pytestmark = [pytest.mark.prove, pytest.mark.django_db(transaction=True)]
DOCUMENTS = 100
KILLS = 20
LEASE_SECONDS = 4
HOLD_SECONDS = 0.05
_KEEPING_SECONDS = 1.0
"""From an answer handed over to its vectors committed, on a busy machine."""


class Workers:
    """The product's own ingestion worker and clock, as processes of their own."""

    def __init__(self, originals: Path, logs: Path) -> None:
        database = connection.settings_dict["NAME"]
        url = urlsplit(os.environ.get("DATABASE_URL") or _written("DATABASE_URL"))
        self._env = {
            **PROCESS_ENV,
            "DJANGO_SETTINGS_MODULE": "app.settings.dev",
            "TESSERA_DATA": os.environ["TESSERA_DATA"],
            "REDIS_URL": os.environ["REDIS_URL"],
            "DATABASE_URL": url._replace(path=f"/{database}").geturl(),
            "ORIGINALS_DIR": str(originals),
            "INGEST_LEASE_SECONDS": str(LEASE_SECONDS),
        }
        self._log = (logs / "workers.log").open("w")
        self._schedule = logs / "schedule"
        self.worker = self.start()
        self._beat = self._run("beat", "--schedule", str(self._schedule), "--pidfile=")

    def start(self) -> subprocess.Popen[bytes]:
        self.worker = self._run(
            "worker", "-Q", "default,ingest,ingest.small", "-c", "1", "--without-gossip", "--without-mingle"
        )
        return self.worker

    def kill(self) -> None:
        """The worker with its children, without a word."""
        os.killpg(self.worker.pid, signal.SIGKILL)
        self.worker.wait()

    def close(self) -> None:
        for process in (self.worker, self._beat):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()
        # Shown by pytest when the test fails.
        sys.stdout.write(Path(self._log.name).read_text()[-6000:])

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "app.celery", *arguments, "--loglevel", "WARNING"],
            cwd=REPOSITORY,
            env=self._env,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )


def _written(name: str) -> str:
    from app.settings import env

    return env.text(name)


@pytest.fixture
def proxy(db: None) -> Iterator[CountingProxy]:
    with CountingProxy(HOLD_SECONDS).running() as proxy:
        yield proxy


@pytest.fixture
def workers(proxy: CountingProxy, broker: object, originals_dir: Path, tmp_path: Path) -> Iterator[Workers]:
    found = Workers(originals_dir, tmp_path)
    yield found
    found.close()


@pytest.fixture
def embedding_server(settings: Settings, proxy: CountingProxy) -> None:
    bootstrap_defaults()
    backend = backend_put(name="Counted", kind="openai", base_url=proxy.url, api_key="")
    row, _ = deployment_put(
        backend=backend,
        upstream_model=settings.EMBEDDING_MODEL,
        purpose=Deployment.Purpose.EMBEDDING.value,
        public_name=settings.EMBEDDING_MODEL,
        price_key="embedding/counted",
    )
    price_set(price_key=row.price_key, rates=EMBEDDING_PRICE, approved_by="tests")


def contents(team: str) -> list[tuple[str, bytes]]:
    """A hundred small files, five of them unreadable, ten of several chunks; every paragraph is there once."""
    found: list[tuple[str, bytes]] = []
    for number in range(DOCUMENTS):
        length = 18 if number % 10 == 0 else 2
        paragraphs = [
            f"{team} {number}.{part}: " + f"the valve {number * 7 + part} opens at noon. " * length
            for part in range(3)
        ]
        if number % 20 == 19:
            found.append((f"{number}.pdf", b"%PDF-1.4 " + paragraphs[0].encode()))
        elif number % 3:
            found.append((f"{number}.md", ("# " + "\n\n".join(paragraphs)).encode()))
        else:
            found.append((f"{number}.html", "".join(f"<p>{p}</p>" for p in paragraphs).encode()))
    return found


def upload(team: Team, user: object, name: str) -> list[UUID]:
    collection = collection_make(team=team, user=user)  # type: ignore[arg-type]
    ids = []
    for file, content in contents(name):
        row, _ = services.document_create(
            collection=collection, name=file, content=content, created_by=collection.created_by
        )
        document_ingest.apply_async((str(row.pk),), queue="ingest.small")
        ids.append(row.pk)
    return ids


def ended(ids: list[UUID]) -> bool:
    return not Document.objects.filter(pk__in=ids).exclude(status__in=("ready", "failed")).exists()


def outcome(ids: list[UUID]) -> list[tuple[str, str, int, int, int]]:
    """Status, reason, chunks, vectors and pages of each document, in the order of upload."""
    rows = Document.objects.in_bulk(ids)
    return [
        (
            rows[pk].status,
            rows[pk].error_code,
            Chunk.objects.filter(document_id=pk).count(),
            ChunkVector.objects.filter(document_id=pk).count(),
            DocumentText.objects.filter(document_id=pk).count(),
        )
        for pk in ids
    ]


def working(ids: list[UUID]) -> bool:
    return Document.objects.filter(pk__in=ids, status__in=("parsing", "chunking", "embedding")).exists()


def test_twenty_kills_while_a_hundred_documents_are_read(
    proxy: CountingProxy, embedding_server: None, workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    person = user_make()
    calm = upload(team_make(owner=person), person, "calm")
    until(lambda: ended(calm), "the undisturbed run ends", 300)
    undisturbed = outcome(calm)
    assert set(proxy.counts().values()) == {1}
    assert {row[0] for row in undisturbed} == {"ready", "failed"}

    proxy.requests.clear()
    chance, kills = random.Random(20), []
    stormy = upload(team_make(owner=person), person, "storm")
    for _ in range(KILLS):
        until(lambda: working(stormy) or ended(stormy), "the worker works", 120)
        time.sleep(chance.uniform(0.0, 0.4))
        assert not ended(stormy), "it was over before the last kill"
        kills.append(time.monotonic())
        workers.kill()
        workers.start()
    until(lambda: ended(stormy), "every document ends", 240)

    assert outcome(stormy) == undisturbed
    assert not EmbeddingDraft.objects.exists()
    again = {text: n for text, n in proxy.counts().items() if n > 1}
    lost = [asked for asked in proxy.requests if _was_lost(asked.began, asked.ended, kills)]
    # Only a request that a kill caught at the server or on its way into the database is made again.
    assert len(lost) <= KILLS
    assert set(again) <= {text for asked in lost for text in asked.texts}
    with capsys.disabled():
        sys.stdout.write(
            f"\n{KILLS} kills, {DOCUMENTS} documents, {len(proxy.counts())} texts: {len(again)} asked for twice, "
            f"in {len(lost)} requests that a kill caught at the server; chunks as in the undisturbed run.\n"
        )


def _was_lost(began: float, ended: float | None, kills: list[float]) -> bool:
    """Whether a kill came between a request's arrival and the commit of its vectors."""
    return any(began - 0.01 <= kill <= (ended or kill) + _KEEPING_SECONDS for kill in kills)
