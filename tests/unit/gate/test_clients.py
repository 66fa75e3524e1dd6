"""A deployment's server as the client sees it."""

from dataclasses import replace

import pytest

from app.catalog.models import Backend, Deployment
from app.catalog.selectors import targets
from app.gate.clients import server_of

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
