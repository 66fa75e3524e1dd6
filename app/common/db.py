"""The one way from async code to the database: `run_db`, and `read_db` for what is mostly remembered.

A bounded number of threads keeps a fixed number of connections however many streams are open. Tests set
`DATABASE_THREADS = 0`: the call then runs in the test's own thread and sees its transaction.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    reset_queries,
)
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper

from app.common.errors import PartFailed
from app.common.meters import database_call
from app.common.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")

_BOUND_BY_SERVER: Any = ServerBindingCursor
"""Its stubs know no argument."""


@cache
def _threads() -> Threads:
    return Threads(settings.DATABASE_THREADS, "db")


def _lost(exc: Exception) -> bool:
    """Whether the connection itself broke, rather than the statement."""
    if connection.in_atomic_block:
        return False
    return connection.connection is None or connection.connection.closed or "connection" in str(exc)


def _attempt(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `fn` on this thread's connection; a connection that the server closed while idle is replaced once.

    Running twice is harmless because every write reached through here names the id of its row.
    """
    if settings.DEBUG:
        # What Django keeps for whoever debugs would grow for ever in a thread that serves no request.
        reset_queries()
    try:
        return fn(*args, **kwargs)
    except (OperationalError, InterfaceError) as exc:
        if not _lost(exc):
            raise _unavailable() from exc
        connection.close()
    try:
        return fn(*args, **kwargs)
    except (OperationalError, InterfaceError) as exc:
        if _lost(exc):
            connection.close()
        raise _unavailable() from exc


def _unavailable() -> PartFailed:
    """For a database that is away, and for one that cannot do this now: a full disk, a deadlock, a restart."""
    return PartFailed(
        "database",
        "The database does not answer. Nothing was lost; try again in a moment.",
        code="database_unavailable",
    )


async def run_db(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `fn(*args, **kwargs)` run in a database thread.

    Errors: whatever `fn` raises; `PartFailed("database")` when no connection can be had or it cannot do this now.
    """
    if settings.DATABASE_THREADS == 0:
        return await sync_to_async(_attempt, thread_sensitive=True)(fn, *args, **kwargs)
    with database_call():
        return await _threads().call(partial(_attempt, fn, *args, **kwargs))


async def read_db(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`run_db` for a function that only reads, and mostly remembers what it would read (`app.common.cache`).

    It is tried here first. Django refuses every query on a thread with an event loop; then it runs in a database
    thread from its beginning. Errors: as of `run_db`.
    """
    try:
        return fn(*args, **kwargs)
    except SynchronousOnlyOperation:
        return await run_db(fn, *args, **kwargs)


def in_loop() -> bool:
    """Whether this thread runs an event loop, where nothing may be read. Never in tests that keep to one thread."""
    if settings.DATABASE_THREADS == 0:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def read_aside(fn: Callable[[], object]) -> None:
    """Begin a read in a database thread; what it raises is nobody's to hear: who needs it reads again."""
    _threads().aside(partial(_attempt, fn))


class _Spare(threading.local):
    """This thread's cursor for prepared statements. What it learnt of types is worth more than the statement's own
    time, so it is used again as long as its connection lasts."""

    cursor: Any = None


_spare = _Spare()


@contextmanager
def prepared() -> Iterator[CursorWrapper]:
    """A cursor for statements that every turn repeats: the database parses and plans them once a connection.

    Parameters travel beside the statement instead of in it, so it must say their types: `%s::jsonb`.
    """
    django = connections[DEFAULT_DB_ALIAS]
    django.close_if_health_check_failed()
    django.ensure_connection()
    django.validate_no_broken_transaction()
    cursor, _spare.cursor = _spare.cursor, None
    if cursor is None or cursor.connection is not django.connection:
        cursor = _BOUND_BY_SERVER(django.connection)
    try:
        if django.queries_logged:
            yield django.make_debug_cursor(cursor)
        else:
            with django.wrap_database_errors:
                yield cursor
    finally:
        _spare.cursor = cursor
