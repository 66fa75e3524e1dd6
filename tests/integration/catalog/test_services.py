"""Rows of servers and models: what a look at a server may change and what stays as people set it."""

import pytest

from app.catalog.models import Backend, Deployment
from app.catalog.services import backend_connect, backends_switch, model_put
from inference_client.servers import ModelFacts
from tests.integration.catalog.listing import PROVIDER

pytestmark = pytest.mark.django_db

LOCAL = "http://10.0.0.5:8000/v1"


def connect(
    backend: Backend | None = None, url: str = LOCAL, kind: str = "vllm", **fields: object
) -> Backend:
    return backend_connect(backend=backend, base_url=url, kind=kind, **fields)


@pytest.mark.parametrize(
    ("url", "kind", "said", "leaves", "clearance"),
    [
        (LOCAL, "vllm", None, False, "private"),
        (PROVIDER, "vllm", None, True, "internal"),
        (LOCAL, "openai", None, True, "internal"),
        (PROVIDER, "vllm", False, False, "private"),
        (LOCAL, "vllm", True, True, "internal"),
    ],
)
def test_a_server_elsewhere_sees_internal_content_at_most(
    url: str, kind: str, said: bool | None, leaves: bool, clearance: str
) -> None:
    backend = connect(url=url, kind=kind, leaves_premises=said)
    row, _ = model_put(backend=backend, model=ModelFacts(name="m"))
    assert (backend.leaves_premises, row.clearance) == (leaves, clearance)


def test_a_server_that_moves_out_sees_nothing_private_any_more() -> None:
    backend = connect()
    model_put(backend=backend, model=ModelFacts(name="a"))
    model_put(backend=backend, model=ModelFacts(name="b"), clearance="public")
    connect(backend, url=PROVIDER)
    found = dict(Deployment.objects.values_list("public_name", "clearance"))
    assert found == {"a": "internal", "b": "public"}


def test_what_people_said_of_the_premises_stays_while_the_address_does() -> None:
    backend = connect(url=PROVIDER, leaves_premises=False)
    assert connect(Backend.objects.get(pk=backend.pk), url=PROVIDER).leaves_premises is False


def test_the_key_is_kept_encrypted_and_stays_unless_another_is_given() -> None:
    backend = connect(api_key="s3cret")
    assert "s3cret" not in backend.secret
    assert connect(backend, region="Leiden").api_key == "s3cret"
    assert connect(backend, api_key="").api_key == ""


def test_two_servers_at_one_address_have_two_names() -> None:
    assert [connect().name for _ in range(3)] == ["10.0.0.5:8000", "10.0.0.5:8000 (2)", "10.0.0.5:8000 (3)"]


@pytest.mark.parametrize(
    ("stored", "known", "expected"),
    [(None, 8192, 8192), (4096, 8192, 4096), (8192, 4096, 4096), (4096, None, 4096), (None, None, None)],
)
def test_a_window_never_exceeds_the_servers(
    stored: int | None, known: int | None, expected: int | None
) -> None:
    backend = connect()
    model_put(backend=backend, model=ModelFacts(name="m", context_window=stored))
    row, created = model_put(backend=backend, model=ModelFacts(name="m", context_window=known))
    row.refresh_from_db()
    assert (created, row.context_window) == (False, expected)


def test_what_an_administrator_changed_of_a_model_stays() -> None:
    backend = connect(kind="gemini")
    row, _ = model_put(backend=backend, model=ModelFacts(name="m", max_output_tokens=300), priority=5)
    assert (row.max_output_tokens, row.abort_stops_billing, row.price_key) == (300, False, "chat/m")
    Deployment.objects.update(
        public_name="ours", price_key="x", enabled=False, priority=1, clearance="public", max_output_tokens=9
    )
    row, _ = model_put(backend=backend, model=ModelFacts(name="m"), priority=7)
    row.refresh_from_db()
    assert (row.public_name, row.price_key, row.enabled, row.priority) == ("ours", "x", False, 1)
    assert (row.clearance, row.max_output_tokens) == ("public", 9)


def test_switching_leaves_other_servers_and_all_models_as_they_are() -> None:
    names = ("Inside one", "Inside two", "Outside at x", "Somebody's")
    inside, _, outside, own = [connect(name=name) for name in names]
    for backend in (inside, outside, own):
        model_put(backend=backend, model=ModelFacts(name="m"), enabled=backend != inside)
    backends_switch(to=outside, prefixes=("Inside", "Outside at"))
    enabled = dict(Backend.objects.values_list("name", "enabled"))
    assert enabled == dict(zip(names, (False, False, True, True), strict=True))
    backends_switch(to=inside, prefixes=("Inside", "Outside at"))
    enabled = dict(Backend.objects.values_list("name", "enabled"))
    assert enabled == dict(zip(names, (True, False, False, True), strict=True))
    assert not Deployment.objects.get(backend=inside).enabled
