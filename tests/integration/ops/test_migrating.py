"""A migration that was broken off: a web process says so in one sentence, and running it again heals it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings as installed

from tests.databases import database_beside
from tests.e2e.live import until
from tests.services_plugin import seat
from tests.stack import PROCESS_ENV, REPOSITORY

pytestmark = pytest.mark.prove


@pytest.fixture
def empty() -> Iterator[str]:
    """The address of a database with nothing in it."""
    name = f"test_migrating_{seat()}"
    with database_beside(installed.DATABASE_OWNER_URL, name):
        # On a busy machine a connection may take longer than the product waits for one.
        here = urlsplit(installed.DATABASE_OWNER_URL)
        yield here._replace(path=f"/{name}", query="connect_timeout=60").geturl()


def environment(url: str) -> dict[str, str]:
    own = {k: v for k, v in PROCESS_ENV.items() if k != "DJANGO_SETTINGS_MODULE"}
    return own | {"DATABASE_URL": url, "TESSERA_DATA": os.environ["TESSERA_DATA"]}


def migrated(url: str) -> int:
    with psycopg.connect(url) as connection:
        try:
            (count,) = connection.execute("SELECT count(*) FROM django_migrations").fetchone() or (0,)
        except psycopg.errors.UndefinedTable:
            return 0
    return int(count)


def served(url: str) -> subprocess.CompletedProcess[str]:
    """A web process of this database; one that refuses ends by itself."""
    words = [sys.executable, "-m", "uvicorn", "app.asgi:application", "--lifespan", "on", "--port", "0"]
    return subprocess.run(
        words, cwd=REPOSITORY, env=environment(url), capture_output=True, text=True, timeout=120, check=False
    )


def test_a_half_migrated_schema_is_refused_with_one_sentence_and_the_rerun_heals_it(empty: str) -> None:
    migrate = [sys.executable, "manage.py", "migrate", "--noinput"]
    first = subprocess.Popen(migrate, cwd=REPOSITORY, env=environment(empty), stdout=subprocess.DEVNULL)
    until(lambda: migrated(empty) >= 12, "some migrations are done")
    first.send_signal(signal.SIGKILL)
    first.wait()
    half = migrated(empty)
    refused = served(empty)
    assert refused.returncode != 0
    assert "The database lacks" in refused.stderr
    assert "run `manage.py migrate`" in refused.stderr
    assert "Traceback" not in refused.stderr
    subprocess.run(migrate, cwd=REPOSITORY, env=environment(empty), stdout=subprocess.DEVNULL, check=True)
    assert migrated(empty) > half
    check = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--check"],
        cwd=REPOSITORY,
        env=environment(empty),
        check=False,
    )
    assert check.returncode == 0
