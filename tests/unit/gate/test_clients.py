"""A deployment's server as the client sees it."""

import asyncio
from dataclasses import replace

import pytest

from app.catalog.models import Backend, Deployment
from app.catalog.selectors import targets
from app.gate.clients import client, lone_client, server_of
from inference_client.client import Client

pytestmark = pytest.mark.django_db


def test_a_server_is_called_with_its_options_and_its_key() -> None:
    backend = Backend(
        name="Azure", kind="azure-deployments", base_url="https://example.test", options={"api_version": "x"}
    )
    backend.set_api_key("secret")
    backend.save()
    Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="m")
    target = next(t for t in targets("chat") if t.backend_name == "Azure")
    server = server_of(target)
    assert (server.kind, server.api_key, server.options) == (
        "azure-deployments",
        "secret",
        {"api_version": "x"},
    )
    assert "secret" not in repr(server)
    assert server_of(replace(target, api_key="")).api_key is None


def test_calls_that_overlap_share_a_client_which_ends_with_the_last() -> None:
    async def story() -> None:
        async with lone_client():
            first = client()
        leave, inside = asyncio.Event(), asyncio.Event()

        async def other() -> Client:
            async with lone_client():
                inside.set()
                await leave.wait()
                return client()

        async with lone_client():
            mine = client()
            task = asyncio.ensure_future(other())
            await inside.wait()
        assert mine is not first
        leave.set()
        assert await task is mine
        async with lone_client():
            assert client() is not mine

    asyncio.run(story())
