"""Beginning and end of a web process: refuse a stale schema, keep the pulse, and go down without losing an answer."""

import asyncio
import gc
import logging
import signal
from types import FrameType

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable
from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from app.chat.heartbeat import beat
from app.chat.runs import Runs, runs
from app.chat.timings import write_for_ever
from app.common.db import run_db
from app.common.errors import PartFailed
from app.common.meters import LagMeter
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.tokens import TokenizerFileError, counter

log = logging.getLogger(__name__)

COLLECT_AFTER = (20_000, 20, 20)
"""Objects more than before: a streamed answer makes some thousands, and nearly all go without being collected."""


def _missing_migrations() -> list[str]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


async def _problem() -> str | None:
    """One sentence when this process could not do its work; None when it can, or when that cannot be asked yet."""
    try:
        counter("o200k_base").count("warm")  # loads its ranks now rather than in somebody's first question
        missing = await run_db(_missing_migrations)
    except PartFailed:
        # `/readyz` says so until it answers; refusing to start would turn a short outage into a long one.
        return None
    except TokenizerFileError as exc:
        return str(exc)
    except Error as exc:
        return f"The database refuses this process: {exc}. Check DATABASE_URL and the rights of its role."
    if missing:
        return f"The database lacks {len(missing)} migrations ({missing[0]} first); run `manage.py migrate`."
    return None


async def lifespan(receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Serve the ASGI lifespan protocol of this process."""
    await receive()
    if problem := await _problem():
        log.error(problem)
        await send({"type": "lifespan.startup.failed", "message": problem})
        return
    _collect_rarely()
    here = runs()
    works = (beat(here), here.listen(), write_for_ever(), here.watch.keep(), _lag_measure())
    tasks = [asyncio.ensure_future(work) for work in works]
    _drain_on_sigterm(here)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await here.drain(0 if here.draining else settings.DRAIN_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await client_close()
    await redis_close()
    await send({"type": "lifespan.shutdown.complete"})


async def _lag_measure() -> None:
    """See how late the event loop comes back, until cancelled."""
    meter = LagMeter()
    while True:
        meter.ask()
        await asyncio.sleep(meter.EVERY_SECONDS)
        meter.back()


def _collect_rarely() -> None:
    """What is loaded by now stays: looking through it again and again took a tenth of the CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _drain_on_sigterm(here: Runs) -> None:
    """On SIGTERM refuse new turns but keep the port open, let running ones finish, and only then let the server stop.

    The server's own handler would close the port at once, and a caller would see a refused connection instead of
    `restarting` with a time to come back. A second SIGTERM ends the wait.
    """
    before = signal.getsignal(signal.SIGTERM)
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    async def drain() -> None:
        log.info("Going down: new turns are refused, %d running ones may finish.", len(here.running()))
        await here.drain(settings.DRAIN_SECONDS)
        stop()

    def stop() -> None:
        if callable(before):
            frame: FrameType | None = None
            before(signal.SIGTERM, frame)

    def on_sigterm() -> None:
        if draining:
            draining[0].cancel()
            for run in here.running():
                run.signal.stop("interrupted")
            draining[:] = [asyncio.ensure_future(drain_now())]
        else:
            draining.append(asyncio.ensure_future(drain()))

    async def drain_now() -> None:
        await here.drain(0)
        stop()

    loop.add_signal_handler(signal.SIGTERM, on_sigterm)
