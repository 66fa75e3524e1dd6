"""What runs on top of the services: migrations, the first run, workers, beat, the web server."""

import http.client
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg
from django.contrib.staticfiles.finders import get_finders
from django.db.migrations.loader import MigrationLoader

from app.embedded.children import Program
from app.embedded.errors import PartFailed
from app.embedded.paths import write_private
from app.embedded.services import REPOSITORY, http_ok
from app.embedded.supervisor import Supervisor

WEB_SECONDS = 60.0
INGEST_SECONDS = 60
_LISTENERS_SECONDS = 10
_PYTHON = (sys.executable, "-m")
_CELERY = (*_PYTHON, "celery", "-A", "app.celery")
_PROCESSES = {"ingest": 2}
"""Where more than one task at a time: the embedder works for one file while another is read or committed."""
# The web server first, so that answers under way can still be finished and booked.
STOP_ORDER = (
    ("web",),
    ("worker", "ingest", "ingest-small", "beat"),
    ("embedder", "chat"),
    ("valkey",),
    ("postgres",),
)


@dataclass(frozen=True, slots=True)
class Product:
    """How the product's own processes run."""

    port: int
    drain_seconds: int
    queues: Mapping[str, tuple[str, ...]]
    """Queues by the worker that serves them."""


def manage(*arguments: str) -> tuple[str, ...]:
    """A command line of this project's manage.py."""
    return (sys.executable, str(REPOSITORY / "manage.py"), *arguments)


def web_program(product: Product) -> Program:
    """uvicorn with the ASGI application, on loopback."""
    options = f"--host 127.0.0.1 --port {product.port} --no-access-log --no-server-header"
    # The application itself waits for running answers first; this is for connections that only listen.
    drain = f"--timeout-graceful-shutdown {_LISTENERS_SECONDS}"
    return Program(
        name="web",
        argv=(
            *_PYTHON,
            "uvicorn",
            "app.asgi:application",
            "--lifespan",
            "on",
            *options.split(),
            # X-Forwarded-For is read by ourselves, through as many proxies as TRUSTED_PROXIES says.
            "--no-proxy-headers",
            "--log-level",
            "warning",
            *drain.split(),
        ),
        ready=lambda: http_ok(product.port, "/readyz"),
        stop_seconds=product.drain_seconds + _LISTENERS_SECONDS + 15,
        folder=REPOSITORY,
    )


def worker_program(name: str, queues: tuple[str, ...]) -> Program:
    """A Celery worker. Ingestion has its own: sweeping never waits for a long file."""
    options = f"--queues {','.join(queues)} --hostname {name}@tessera --loglevel WARNING"
    options += f" --concurrency {_PROCESSES.get(name, 1)}"
    return Program(
        name=name,
        argv=(*_CELERY, "worker", *options.split(), "--without-gossip", "--without-mingle"),
        ready=lambda: True,
        stop_seconds=30,
        folder=REPOSITORY,
    )


def beat_program() -> Program:
    """Celery's clock: starts the periodic tasks."""
    return Program(
        name="beat",
        argv=(*_CELERY, "beat", "--pidfile=", "--loglevel", "WARNING"),
        ready=lambda: True,
        folder=REPOSITORY,
    )


def static_gather(supervisor: Supervisor) -> Callable[[], None]:
    """Begin to gather static files if any has changed; the function returned waits for the end."""
    stamp, state = supervisor.layout.data / "staticfiles.stamp", static_stamp()
    if stamp.exists() and stamp.read_text() == state:
        return lambda: None
    finish = supervisor.begin("collectstatic", manage("collectstatic", "--no-input"))

    def wait() -> None:
        finish()
        write_private(stamp, state)

    return wait


def migrate(supervisor: Supervisor, settings: Mapping[str, str]) -> None:
    """Bring the schema up to date, as the role that owns it. Nothing is started for a schema that is."""
    owner = settings.get("DATABASE_OWNER_URL") or settings["DATABASE_URL"]
    if schema_is_current(owner):
        return
    supervisor.run("migrate", manage("migrate", "--no-input"), environment={"DATABASE_URL": owner})


def schema_is_current(url: str) -> bool:
    """Whether the database at that address has every migration of this program."""
    known = set(MigrationLoader(None).disk_migrations)
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            done = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    except psycopg.Error:
        # A new database has no such table; what else is wrong with this one `migrate` says best.
        return False
    return known <= set(done)


def static_stamp() -> str:
    """Changes whenever a static file of the project or of an installed app does."""
    state = sha256()
    for finder in get_finders():
        for path, storage in finder.list(ignore_patterns=None):
            about = Path(storage.path(path)).stat()
            state.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode())
    return state.hexdigest()


def handbook_wait(supervisor: Supervisor) -> Callable[[], str]:
    """Begin to wait until the first question can be answered: the handbook is searchable, or a minute is over."""
    return supervisor.begin("handbook", manage("first_run", "--wait", str(INGEST_SECONDS)))


def first_run(supervisor: Supervisor) -> dict[str, str]:
    """`manage.py first_run --json`: makes what an empty installation needs; its one line of JSON."""
    output = supervisor.run("first_run", manage("first_run", "--json"))
    lines = [line for line in output.splitlines() if line.startswith("{")]
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError as exc:
        raise PartFailed(f"first_run printed something that is not JSON: {lines[-1][:80]}") from exc
    return {str(name): str(value) for name, value in found.items() if value}


def product_start(supervisor: Supervisor, product: Product) -> None:
    """Start workers, beat and the web server."""
    for name, queues in product.queues.items():
        supervisor.start(worker_program(name, queues))
    supervisor.start(beat_program())
    supervisor.start(web_program(product))


def product_wait(supervisor: Supervisor, product: Product) -> None:
    """Until /readyz answers; what it says when it does not."""
    try:
        supervisor.wait_ready(["web"], WEB_SECONDS)
    except PartFailed as exc:
        raise PartFailed(f"{exc} {_readyz_words(product.port)}".strip()) from exc


def _readyz_words(port: int) -> str:
    """What /readyz itself says, when the web server runs but is not ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", "/readyz")
        return f"/readyz says: {connection.getresponse().read(400).decode(errors='replace')}"
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
