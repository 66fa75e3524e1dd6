"""`manage.py backend_add`: a server looked at, added, brought up to date, or refused with a reason."""

import io
import sys
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.conf import settings as installed
from django.core.management import CommandError, call_command
from pytest_django import Settings

from app.billing.models import PriceVersion
from app.billing.selectors import price_current, spend
from app.billing.services import bootstrap_defaults
from app.catalog.models import Backend, Deployment
from app.catalog.selectors import targets
from tests.integration.catalog.listing import NOWHERE, PROVIDER, models, ollama, serving
from tests.integration.ops.conftest import Start

pytestmark = pytest.mark.django_db

Add = Callable[..., str]


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Add:
    """Runs the command; keywords are variables of its environment, `typed` is its standard input."""

    def run(*arguments: str, typed: str = "", **environment: str) -> str:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        out = io.StringIO()
        tested = [] if "--test-call" in arguments else ["--no-test"]
        call_command("backend_add", *(a for a in arguments if a != "--test-call"), *tested, stdout=out)
        return out.getvalue()

    return run


def offered() -> list[str]:
    return [target.public_name for target in targets("chat")]


def test_a_real_server_is_shown_and_added_with_its_window_and_price(add: Add) -> None:
    url, model = installed.INFERENCE_URL, installed.INFERENCE_MODEL
    said = add(
        url, "--name", "own", "--key-env", "MY_KEY", "--price-in", "0.25", "--price-out", "1",
        MY_KEY=installed.INFERENCE_API_KEY,
    )  # fmt: skip
    assert f"{url}: llamacpp, healthy" in said
    assert f"{model}: window 4096 tokens" in said
    assert "0.25 input / 1 output EUR per million tokens" in said
    assert installed.INFERENCE_API_KEY not in said
    target = targets("chat")[0]
    assert (target.backend_name, target.kind, target.api_key) == (
        "own",
        "llamacpp",
        installed.INFERENCE_API_KEY,
    )
    assert (target.leaves_premises, target.clearance, target.is_demonstration) == (False, "private", False)
    assert price_current(target.price_key).rates[0].price == Decimal("0.25")


def test_a_tiny_call_shows_usage_and_speed_and_the_installation_pays(add: Add) -> None:
    bootstrap_defaults()
    said = add(
        installed.INFERENCE_URL, "--key-env", "MY_KEY", "--price-in", "1", "--price-out", "2", "--test-call",
        MY_KEY=installed.INFERENCE_API_KEY,
    )  # fmt: skip
    assert "answers, tells its usage, first token after" in said
    assert "tokens/s; the test cost 0.0000" in said
    (row,) = spend(group_by="kind")
    assert (row.group, row.requests) == ("probe", 0)
    assert row.price > 0


def test_a_test_call_that_fails_says_why_and_the_server_stays(add: Add) -> None:
    bootstrap_defaults()
    with serving(ollama("m")) as url:
        unpriced = add(url, "--test-call")
        priced = add(url, "--price-in", "1", "--price-out", "2", "--test-call")
    assert "the test call was not answered." in unpriced
    assert "the test call was not answered." in priced
    assert offered() == ["m"]


def test_a_server_with_a_key_header_of_its_own_lists_its_models(add: Add) -> None:
    with serving({"/v1/models": models("claude-a", "claude-b")}) as url:
        said = add(url, "--kind", "anthropic", "--on-premises")
    assert "claude-a: window unknown" in said
    assert offered() == ["claude-a", "claude-b"]


def test_options_of_a_kind_are_kept_and_others_refused(add: Add) -> None:
    add(PROVIDER, "--kind", "azure-deployments", "--model", "m", "--option", "api_version=2026-01-01")
    assert Backend.objects.get().options == {"api_version": "2026-01-01"}
    with pytest.raises(CommandError, match="api_version, metrics_url"):
        add(PROVIDER, "--kind", "azure-deployments", "--model", "m", "--option", "version=1")


def test_a_missing_price_is_said_with_the_way_to_set_it(add: Add) -> None:
    with serving(ollama("m", "bge-m3")) as url:
        said = add(url)
    assert "price unknown" in said
    assert "--price-in" in said
    assert f"{installed.PUBLIC_URL}/admin/billing/priceversion/add/?price_key=chat%2Fm" in said
    assert offered() == ["m"]
    assert not PriceVersion.objects.filter(price_key="chat/m").exists()


def test_a_repeat_brings_up_to_date_and_keeps_what_is_not_said(add: Add) -> None:
    with serving(ollama("m"), key="k") as url:
        add(url, "--key", "-", "--region", "Leiden", "--price-in", "1", "--price-out", "2", typed="k\n")
        Deployment.objects.update(public_name="ours", priority=3)
        assert "Updated the server" in add(url, "--price-in", "1", "--price-out", "2")
        assert PriceVersion.objects.filter(price_key="chat/m").count() == 1
        assert "cleared for internal" in add(
            url, "--clearance", "internal", "--price-in", "1", "--price-out", "3"
        )
    assert PriceVersion.objects.filter(price_key="chat/m").count() == 2
    row = Deployment.objects.get(upstream_model="m")
    assert (row.public_name, row.priority, row.clearance) == ("ours", 3, "internal")
    assert (row.backend.region, row.backend.api_key) == ("Leiden", "k")


def test_models_that_are_no_longer_served_are_named_and_left(add: Add) -> None:
    with serving(ollama("a", "b")) as url:
        add(url)
        said = add(url, "--model", "b")
    assert "Left as it is: the model a," in said
    assert offered() == ["a", "b"]


@pytest.mark.parametrize(
    ("flags", "leaves", "clearance"),
    [
        ([], True, "internal"),
        (["--on-premises"], False, "private"),
        (["--clearance", "private"], True, "private"),
        (["--leaves-premises", "--clearance", "public"], True, "public"),
    ],
)
def test_where_content_goes_is_what_is_said_else_what_the_address_says(
    add: Add, flags: list[str], leaves: bool, clearance: str
) -> None:
    # Its kind has a key in a header of its own, so it is not asked and need not be reachable.
    add(PROVIDER, "--kind", "anthropic", "--model", "m", *flags)
    target = targets("chat")[0]
    assert (target.leaves_premises, target.clearance, target.kind) == (leaves, clearance, "anthropic")


def test_one_that_came_from_the_settings_is_kept_for_good(add: Add, start: Start, settings: Settings) -> None:
    with serving(ollama("m")) as url, serving(ollama("other")) as elsewhere:
        start(url)
        add(url)
        start(elsewhere)
        assert offered() == ["other", "m"]
    assert Backend.objects.filter(deployments__public_name="m").count() == 1


def test_a_name_may_move_to_another_address_but_its_key_is_not_sent_there(add: Add) -> None:
    with serving(ollama("m"), key="k") as first, serving(ollama("m"), key="k") as second:
        add(first, "--name", "gpu", "--key", "-", typed="k")
        with pytest.raises(CommandError, match="refused the key"):
            add(second, "--name", "gpu")
        add(second, "--name", "gpu", "--key", "-", typed="k")
        assert Backend.objects.get(name="gpu").base_url == second
    assert Deployment.objects.filter(purpose="chat").count() == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([NOWHERE], "cannot be reached"),
        (["nonsense"], "looks like http://host"),
        (["http://u:p@host/v1"], "no user"),
        ([NOWHERE, "--kind", "abacus"], "no kind of inference server"),
        ([NOWHERE, "--key", "sk-secret"], "--key-env NAME"),
        ([NOWHERE, "--key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
        ([NOWHERE, "--key", "-"], "No key came"),
        ([NOWHERE, "--price-in", "1"], "Give both"),
        ([NOWHERE, "--price-in", "1", "--price-out", "dear"], "A price is a number"),
        ([NOWHERE, "--price-in", "1", "--price-out", "-1"], "A price is a number"),
        ([PROVIDER, "--kind", "anthropic"], "Name one with --model"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_written(
    add: Add, arguments: list[str], words: str
) -> None:
    with pytest.raises(CommandError) as caught:
        add(*arguments)
    assert words in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert not Backend.objects.exists()


def test_a_refused_key_is_said(add: Add) -> None:
    with pytest.raises(CommandError, match="refused the key, or wants one"):
        add(installed.INFERENCE_URL, "--key", "-", typed="wrong")
    assert not Backend.objects.exists()


@pytest.mark.parametrize(
    ("names", "asked", "words"),
    [
        (["a"], ["--model", "z"], "does not list z"),
        (["nomic-embed-text"], [], "no chat model"),
        ([f"m{n}" for n in range(51)], [], "choose with --model"),
    ],
)
def test_models_that_cannot_be_chosen_are_refused(
    add: Add, names: list[str], asked: list[str], words: str
) -> None:
    with serving({"/v1/models": models(*names)}) as url, pytest.raises(CommandError, match=words):
        add(url, *asked)
    assert not Backend.objects.exists()
