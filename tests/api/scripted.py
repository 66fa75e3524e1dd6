"""Calls of the stream routes while a scripted model server answers in the same event loop."""

import asyncio
import socket
from typing import Any

import httpx
from asgiref.sync import async_to_sync

from app.api.stream.handler import handle, route
from app.catalog.models import Backend
from app.chat.runs import runs
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.testing.fault_server import FaultServer, Script, Seen
from tests.factories import IssuedKey


def bearer(key: IssuedKey | str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key if isinstance(key, str) else key.plain}"}


def scripted_port(only: str = "") -> int:
    """A free port, where every backend of the database, or `only` the one of this name, is from now on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    moved = Backend.objects.filter(name=only) if only else Backend.objects.all()
    moved.update(kind="openai", base_url=f"http://127.0.0.1:{port}/v1")
    return port


async def application(scope: Any, receive: Any, send: Any) -> None:
    found = route(scope)
    assert found is not None
    await handle(scope, receive, send, found)


def call(
    method: str, path: str, *scripts: Script, key: IssuedKey | None = None, only: str = "", **wishes: Any
) -> tuple[httpx.Response, list[Seen]]:
    """(answer, what the model server saw); turns that still run are waited for."""
    port = scripted_port(only)
    if key is not None:
        wishes["headers"] = bearer(key) | wishes.get("headers", {})

    async def one() -> tuple[httpx.Response, list[Seen]]:
        transport = httpx.ASGITransport(app=application)
        async with (
            FaultServer(*scripts, port=port) as server,
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client,
        ):
            response = await client.request(method, path, **wishes)
            if tasks := [run.task for run in runs()._by_id.values() if run.task is not None]:
                await asyncio.wait(tasks)
            await runs().store.drained()
            await client_close()
            await redis_close()
            return response, server.seen

    return async_to_sync(one)()
