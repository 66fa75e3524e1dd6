"""The servers that the settings name: what is offered after each start."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from pytest_django import Settings

from app.accounts.models import User
from app.billing.selectors import price_current
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.models import Backend, Deployment
from app.catalog.selectors import targets
from app.common.handbook import HANDBOOK
from app.ops.first_run import prepare
from app.ops.servers import EMBEDDED_CHAT, servers_prepare
from retrieval.models import Collection
from tests.integration.catalog.listing import NOWHERE, PROVIDER, models, ollama, serving
from tests.integration.ops.conftest import Start

pytestmark = pytest.mark.django_db

Packaged = Callable[[], list[str]]


def offered(purpose: str = "chat") -> list[str]:
    """Public names, the preferred first."""
    return [target.public_name for target in targets(purpose)]


def test_the_packaged_server_is_offered_with_a_visible_price(packaged: Packaged, settings: Settings) -> None:
    assert packaged() == []
    assert offered() == [settings.INFERENCE_MODEL]
    target = targets("chat")[0]
    assert (target.backend_name, target.is_demonstration, target.leaves_premises) == (
        EMBEDDED_CHAT,
        True,
        False,
    )
    assert {rate.price for rate in price_current(target.price_key).rates} == {Decimal("0.1"), Decimal("0.4")}
    assert offered("embedding") == [settings.EMBEDDING_MODEL]
    assert targets("embedding")[0].kind == "openai-compatible"


def test_all_chat_models_of_an_outside_server_are_offered_the_loaded_one_first(start: Start) -> None:
    with serving(ollama("a:1", "b:2", "nomic-embed-text:v1", loaded={"b:2": 16384})) as url:
        assert start(url) == []
    assert offered() == ["b:2", "a:1"]
    first = targets("chat")[0]
    assert (first.kind, first.context_window, first.is_demonstration) == ("ollama-v1", 16384, False)
    assert (first.leaves_premises, first.clearance) == (False, "private")
    assert all(price_current(target.price_key) for target in targets("chat"))


def test_there_and_back_again(packaged: Packaged, start: Start) -> None:
    packaged()
    demonstration = offered()
    Deployment.objects.filter(purpose="chat").update(max_output_tokens=77)
    with serving(ollama("qwen3:8b")) as url:
        start(url)
        assert offered() == ["qwen3:8b"]
        assert not Backend.objects.get(name=EMBEDDED_CHAT).enabled
        packaged()
        assert offered() == demonstration
        assert targets("chat")[0].max_output_tokens == 77
        start(url)
        assert offered() == ["qwen3:8b"]
    assert Deployment.objects.filter(purpose="chat").count() == 2


def test_another_outside_server_takes_the_place_of_the_first(start: Start) -> None:
    with serving(ollama("one")) as first, serving(ollama("two")) as second:
        start(first)
        start(second)
        assert offered() == ["two"]


def test_another_packaged_model_takes_the_place_of_the_demonstration(packaged: Callable[..., object]) -> None:
    packaged()
    packaged("own.gguf")
    assert offered() == ["own.gguf"]
    assert not targets("chat")[0].is_demonstration


def test_a_server_that_people_added_stays_offered(packaged: Packaged, start: Start) -> None:
    packaged()
    own = Backend.objects.create(name="gpu", kind="vllm", base_url=NOWHERE)
    Deployment.objects.create(backend=own, public_name="ours", upstream_model="ours", price_key="p")
    with serving(ollama("other")) as url:
        start(url)
    assert offered() == ["other", "ours"]


def test_the_model_that_is_named_is_the_one_and_goes_first(start: Start) -> None:
    with serving(ollama("a", "b", "c")) as url:
        start(url)
        assert offered() == ["a", "b", "c"]
        for name in ("c", "b", "c"):
            assert start(url, model=name) == []
            assert offered()[0] == name


@pytest.mark.parametrize(
    ("named", "kind"), [("", "vllm"), ("tgi-v1", "tgi-v1"), ("generic", "openai-compatible")]
)
def test_the_kind_is_the_one_named_else_what_it_looks_like(start: Start, named: str, kind: str) -> None:
    with serving({"/v1/models": models("m", owned_by="vllm")}) as url:
        start(url, kind=named)
    assert targets("chat")[0].kind == kind


def test_a_server_that_tells_nothing_is_a_generic_one(start: Start) -> None:
    with serving({"/v1/models": models("m")}) as url:
        start(url, context_window="9000")
    assert (targets("chat")[0].kind, targets("chat")[0].context_window) == ("openai-compatible", 9000)


def test_a_server_that_is_down_hinders_nothing(start: Start, packaged: Packaged) -> None:
    packaged()
    told = start(NOWHERE)
    assert offered() == []
    assert "cannot be reached" in told[0]
    assert "INFERENCE_MODEL" in told[1]
    told = start(NOWHERE, model="m")
    assert offered() == ["m"]
    assert len(told) == 1


def test_what_was_learnt_stays_while_a_server_is_down(start: Start) -> None:
    with serving(ollama("m", loaded={"m": 8192})) as url:
        start(url, api_key="k")
    assert "cannot be reached" in start(url, api_key="k")[0]
    target = targets("chat")[0]
    assert (target.public_name, target.kind, target.context_window) == ("m", "ollama-v1", 8192)


def test_a_refused_key_is_told_and_a_right_one_kept(start: Start) -> None:
    with serving({"/v1/models": models("m")}, key="right") as url:
        assert "key" in start(url, api_key="wrong")[0]
        assert offered() == []
        assert start(url, api_key="right") == []
        # Nothing is said of a key now: the one that was stored still serves.
        assert start(url) == []
    assert targets("chat")[0].api_key == "right"


@pytest.mark.parametrize("url", ["not an address", "http://user:pw@host/v1"])
def test_an_address_that_is_none_is_told(start: Start, url: str) -> None:
    assert "INFERENCE_URL" in start(url)[0]


def test_an_unknown_kind_is_told(start: Start) -> None:
    assert "abacus" in start(NOWHERE, kind="abacus", model="m")[0]


def test_a_provider_leaves_the_premises_and_has_no_price_until_somebody_sets_one(start: Start) -> None:
    told = start(PROVIDER, model="big")
    target = targets("chat")[0]
    assert (target.leaves_premises, target.clearance, price_current(target.price_key)) == (
        True,
        "internal",
        None,
    )
    assert "No price is known for big" in told[-1]
    price_set(price_key=target.price_key, rates=[Rate(component="input", price=Decimal(1))], approved_by="me")
    assert not any("price" in line for line in start(PROVIDER, model="big"))


def test_a_model_that_is_not_listed_is_told_and_offered_all_the_same(start: Start) -> None:
    with serving(ollama("a", "b")) as url:
        told = start(url, model="z")
    assert "does not list INFERENCE_MODEL z" in told[0]
    assert "a, b" in told[0]
    assert offered() == ["z"]


def test_a_whole_catalogue_is_not_offered_unasked(start: Start) -> None:
    with serving({"/v1/models": models(*(f"m{n}" for n in range(51)))}) as url:
        assert "51 models" in start(url)[0]
        assert offered() == []
        start(url, model="m7")
        assert offered() == ["m7"]


def test_a_command_beside_a_running_stack_knows_that_the_server_is_outside(
    start: Start, settings: Settings
) -> None:
    with serving(ollama("m")) as url:
        start(url, kind="vllm")
        # As in another shell: the address comes from what `up` wrote, and no variable is set.
        settings.EXTERNAL = {}
        servers_prepare()
    assert (offered(), targets("chat")[0].kind) == (["m"], "vllm")
    assert Backend.objects.filter(deployments__purpose="chat").count() == 1


def test_one_server_for_chat_and_embeddings_has_a_row_for_each(start: Start, settings: Settings) -> None:
    with serving(ollama("m", "nomic-embed-text")) as url:
        settings.EMBEDDING_URL, settings.EMBEDDING_MODEL, settings.EMBEDDING_API_KEY = (
            url,
            "nomic-embed-text",
            "",
        )
        start(url)
        settings.EXTERNAL |= {"EMBEDDING_URL": url}
        servers_prepare()
    assert {t.backend_name.partition(" at ")[0] for t in targets("chat")} == {"Chat server"}
    assert [(t.backend_name.partition(" at ")[0], t.public_name) for t in targets("embedding")] == [
        ("Embedding server", "nomic-embed-text")
    ]


def test_the_first_run_is_whole_with_a_server_that_is_down(
    start: Start, originals_dir: object, settings: Settings
) -> None:
    start(NOWHERE)
    made = prepare()
    assert any("cannot be reached" in note for note in made.notes)
    assert made.api_key is not None
    admin = User.objects.get(email=made.admin_email)
    handbook = Collection.objects.get(name=HANDBOOK)
    assert [(g.principal, g.verb) for g in handbook.grants.all()] == [
        (f"team:{admin.default_team_id}", "manage")
    ]
    again = prepare()
    assert (again.admin_password, again.api_key) == (None, None)
