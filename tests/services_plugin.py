"""Loaded by `-p tests.services_plugin`: the real services run before Django reads its settings.

The process that the tests were started in runs `manage.py up --services-only` under `.local/test`; its workers inherit
where. Several runs may share one stack: each process takes a numbered seat, which gives it a Valkey
database and a test database of its own, and the last run to leave takes the stack down.
`TESSERA_KEEP_SERVICES=1` leaves it running, which saves the start of the next run.
"""

import fcntl
import gc
import os
from collections.abc import Generator, Sequence
from urllib.parse import urlsplit

import pytest

from tests.stack import REPOSITORY, Stack, StackError, command

__all__ = ["REPOSITORY", "SERVICES", "command", "seat"]

SERVICES = Stack(
    REPOSITORY / ".local" / "test", "--services-only", keep="TESSERA_KEEP_SERVICES" in os.environ
)
SEATS = range(1, 16)
"""Valkey has 16 databases; 0 is left to whoever looks at the stack by hand."""


def seat() -> int:
    """The number of this process among all that share the stack."""
    return int(os.environ["TESSERA_TEST_SEAT"])


# While pytest rewrites test modules, a finalizer that runs in the middle of a syntax tree can end the whole
# run: CPython 3.11.7 then miscounts the tree's depth and raises a SystemError (CPython gh-106905).
gc.disable()


def pytest_collection_finish() -> None:
    """All modules are loaded: collect again."""
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Plugins load and rewrite more modules of theirs when they sum up."""
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> Generator[None]:
    """A wrapper runs before pytest-django's own hook, which reads the settings."""
    if not {"-h", "--help", "-V", "--version", "--markers", "--fixtures"}.intersection(args):
        os.environ["TESSERA_DATA"] = str(SERVICES.data)
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        if not is_worker:
            _join(early_config)
        # A controller that hands all tests to workers runs none itself.
        if is_worker or not getattr(early_config.known_args_namespace, "numprocesses", None):
            _seat_take()
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Markers beside those of the project file."""
    config.addinivalue_line(
        "markers", "live(alone=False): needs the whole product (`live_stack`); alone when it breaks a part"
    )


def _join(config: pytest.Config) -> None:
    try:
        SERVICES.join()
    except StackError as exc:
        raise pytest.UsageError(str(exc)) from exc
    config.add_cleanup(SERVICES.leave)


def _seat_take() -> None:
    """Claim the first free number; settings then read this process's own Valkey database."""
    for number in SEATS:
        # Never closed: the seat is free again when this process ends, however it ends.
        descriptor = os.open(SERVICES.data / f"seat-{number}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        url = urlsplit(SERVICES.urls()["REDIS_URL"])
        os.environ |= {
            "TESSERA_TEST_SEAT": str(number),
            "REDIS_URL": url._replace(path=f"/{number}").geturl(),
        }
        return
    raise pytest.UsageError(
        f"All {len(SEATS)} seats at the test services are taken: {SERVICES.data}/seat-*.lock."
    )
