"""Fixtures for everyone. The services are real; see `tests.services_plugin`."""

import fcntl
import ipaddress
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.core.cache import cache
from pytest_django import Settings
from pytest_django.plugin import blocking_manager_key
from rest_framework.test import APIClient

from app.accounts.models import Team, User
from app.accounts.selectors import Caller, caller_by_user
from app.billing.services import bootstrap_defaults
from app.catalog.selectors import Target, targets_named
from app.common.cache import forget_all
from app.common.redis_door import sync_redis
from app.gate.health import health_forget
from tests.factories import (
    IssuedKey,
    chat_deployment_make,
    embedding_deployment_make,
    key_make,
    team_make,
    user_make,
)
from tests.services_plugin import SERVICES, seat
from tests.stack import PROCESS_ENV, REPOSITORY, Stack, StackError


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: no test reaches beyond this machine, whatever library it goes through."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
    elif event == "socket.getaddrinfo":
        host = str(arguments[0] or "localhost")
    else:
        return
    try:
        allowed = ipaddress.ip_address(host).is_loopback or host in {"0.0.0.0", "::"}
    except ValueError:
        allowed = host == "localhost" or host.endswith(".localhost")
    if not allowed:
        raise PermissionError(f"A test tried to reach {host}; only this machine's own servers are there.")


sys.addaudithook(_loopback_only)


_LONGEST_FIRST = ("tests/e2e/", "tests/integration/embedded/", "tests/api/test_fuzz.py", "tests/integration/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process waits for another's last file at the end."""

    def rank(item: pytest.Item) -> int:
        return next((n for n, part in enumerate(_LONGEST_FIRST) if item.nodeid.startswith(part)), 9)

    items.sort(key=rank)


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """A test database per seat, so that runs beside each other never meet."""
    django_settings.DATABASES["default"].setdefault("TEST", {})["NAME"] = f"test_tessera_{seat()}"


@pytest.fixture(scope="session", autouse=True)
def _broker_of_this_seat() -> None:
    sync_redis().flushdb()


@pytest.fixture
def broker() -> redis.Redis:
    """This process's own, empty Valkey database."""
    client = sync_redis()
    client.flushdb()
    return client


@pytest.fixture
def user(db: None) -> User:
    """A person."""
    return user_make()


@pytest.fixture
def team(user: User) -> Team:
    """A team that `user` owns and spends from."""
    return team_make(owner=user)


@pytest.fixture
def caller(user: User, team: Team) -> Caller:
    """`user` signed in with a browser."""
    return caller_by_user(user)


@pytest.fixture
def api_key(user: User, team: Team) -> IssuedKey:
    """A key of `user` that `team` pays for, with every scope."""
    return key_make(user=user, team=team)


@pytest.fixture
def client_for() -> Callable[[IssuedKey | str], APIClient]:
    """Gives an HTTP client that sends a key with every request."""

    def make(key: IssuedKey | str) -> APIClient:
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key if isinstance(key, str) else key.plain}")
        return client

    return make


@pytest.fixture
def chat_target(db: None) -> Target:
    """The real chat server as a priced deployment, with the embedding server beside it, and the default budgets."""
    # Tests with real transactions empty every table, also what a migration put there.
    bootstrap_defaults()
    embedding_deployment_make()
    return targets_named(chat_deployment_make().public_name)[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test with real transactions empties every table; the budgets that a migration put there come back."""
    yield
    marker = item.get_closest_marker("django_db")
    real = marker is not None and marker.kwargs.get("transaction")
    # After the last test the database itself is gone.
    if nextitem is not None and (real or "transactional_db" in getattr(item, "fixturenames", ())):
        with item.config.stash[blocking_manager_key].unblock():
            bootstrap_defaults()


@pytest.fixture(autouse=True)
def _short_memories_are_empty() -> None:
    """What a process remembers for a second would outlive the transaction of one test."""
    forget_all()
    health_forget()
    # Attempts to sign in, which are counted by address: that of all tests is one.
    cache.clear()


@pytest.fixture
def originals_dir(settings: Settings, tmp_path: Path) -> Path:
    """Where uploads go, for one test."""
    settings.ORIGINALS_DIR = tmp_path / "originals"
    return tmp_path / "originals"


@pytest.fixture(scope="session")
def live_data() -> Path:
    """The data directory of the run's `live_stack`: one for all workers, open to PostgreSQL's own system user."""
    # pytest's own directory is closed to others, and the cluster would go to /var/lib and stay there.
    name = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"run-{os.getpid()}"
    path = Path(tempfile.gettempdir()) / f"tessera-live-{name}"
    path.mkdir(mode=0o755, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def live_stack(live_data: Path) -> Iterator[dict[str, Any]]:
    """The whole product as `manage.py up` starts it, one for all workers of this run; yields its run.json."""
    # The weights that the test services use are there already.
    cache = PROCESS_ENV.get("TESSERA_CACHE", str(SERVICES.data / "models"))
    # Webhooks of tests are heard on this machine.
    stack = Stack(live_data, env={"TESSERA_CACHE": cache, "OUTBOUND_ALLOW": "127.0.0.1"})
    try:
        stack.join()
        yield stack.run()
    except StackError as exc:
        pytest.fail(str(exc))
    finally:
        if stack.leave():
            shutil.rmtree(live_data, ignore_errors=True)


@pytest.fixture(autouse=True)
def _live_stack_is_whole(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers share the running product; a test marked `live(alone=True)` breaks a part of it, so has it alone."""
    if "live_stack" not in request.fixturenames:
        yield
        return
    mark = request.node.get_closest_marker("live")
    path: Path = request.getfixturevalue("live_data")
    with (path / "whole.lock").open("a") as handle:
        alone = mark is not None and mark.kwargs.get("alone")
        fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the tree."""
    return REPOSITORY
