"""Who answers to which name: aliases, fallbacks, successors, levels, windows, prices; and what is told about it."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from pytest_django import Settings

from app.accounts.selectors import Caller
from app.billing.models import Budget, UsageAttempt
from app.billing.pausing import spending_pause, spending_resume
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.models import Backend, Deployment
from app.catalog.services import backend_put, deployment_put, route_put
from app.chat import asking
from app.chat.asking import ask_draft, ask_with_messages, models_for
from app.chat.model_cards import model_cards
from app.chat.models import Conversation, Turn
from app.chat.planning import fitted
from app.chat.quoting import verdict_of
from app.chat.runs import Runs
from app.chat.turn import take_turn
from app.chat.types import Ask, Options
from app.common.errors import AppError, InvalidInput, NotAllowed, NotFound
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate import health
from app.gate.clients import client_close
from app.gate.routing import Wish, decide, memories_forget
from inference_client.breaker import BreakerLimits
from inference_client.errors import Unreachable
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.types import ImagePart, Message
from tests.integration.chat.conftest import Taken
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY = "http://127.0.0.1:9/v1"
CAPABLE = ["tools", "json_schema"]


def model(
    name: str, *, price: str | None = "1", on: str = "", url: str = NOBODY, **fields: Any
) -> Deployment:
    """A chat model on a server of its own."""
    backend = backend_put(name=on or f"{name}-server", kind="openai", base_url=url)
    row, _ = deployment_put(
        backend=backend,
        upstream_model=name,
        purpose="chat",
        **{"public_name": name, "price_key": f"chat/{name}", "context_window": 8000} | fields,
    )
    if price is not None:
        rates = (
            Rate(component="input", price=Decimal(price)),
            Rate(component="output", price=Decimal(price)),
        )
        price_set(price_key=row.price_key, rates=rates, approved_by="tests")
    return row


def order(name: str, **needs: Any) -> list[str]:
    """Who would be asked, in order."""
    memories_forget()
    return [target.public_name for target in decide(Wish(model=name, level="internal", **needs)).targets]


def fail(row: Deployment) -> None:
    """Let the server of a model fail until it is left alone."""
    target = next(t for t in decide(Wish(model=row.public_name, level="public")).targets)
    for _ in range(BreakerLimits().failures):
        health.failed(target, Unreachable())


@pytest.fixture
def models(servers: None) -> dict[str, Deployment]:
    """A small, a middle and a large one."""
    Deployment.objects.filter(purpose="chat").update(enabled=False)
    return {
        "small": model("small", price="0.1", parameters_b=Decimal(1), context_window=2000),
        "middle": model("middle", price="1", parameters_b=Decimal(8)),
        "large": model("large", price="9", parameters_b=Decimal(70), context_window=100_000),
    }


def test_an_alias_stands_for_its_models_and_never_for_dearer_ones_unless_allowed(models: Any) -> None:
    route_put(name="auto", models=["middle", "large", "small"])
    assert order("auto") == ["middle", "small"]
    route_put(name="auto", models=["middle", "large", "small"], allow_dearer=True)
    assert order("auto") == ["middle", "large", "small"]


def test_a_first_choice_that_is_left_alone_is_replaced_by_no_dearer_model(models: Any) -> None:
    route_put(name="middle", models=["middle", "large"])
    fail(models["middle"])
    assert order("middle") == ["middle"]
    route_put(name="middle", models=["middle", "large"], allow_dearer=True)
    memories_forget()
    routed = decide(Wish(model="middle", level="internal"))
    assert [t.public_name for t in routed.targets] == ["large"]
    assert [(n["code"], n["model"]) for n in routed.notices] == [("fallback", "large")]


def test_the_smallest_that_can_do_it(models: Any) -> None:
    route_put(name="least", models=["large", "middle", "small"], smallest=True, allow_dearer=True)
    assert order("least") == ["small", "middle", "large"]
    assert order("least", input_tokens=5000) == ["middle", "large"]
    Deployment.objects.filter(public_name="small").update(capabilities=[])
    assert order("least", capabilities=frozenset({"tools"})) == ["middle", "large"]


def test_a_window_too_small_leads_on_and_at_the_end_of_all_to_the_count(models: Any) -> None:
    route_put(name="auto", models=["small", "large"], allow_dearer=True)
    assert order("auto", input_tokens=1900) == ["large"]
    assert order("small", input_tokens=1900) == ["small"], "a shorter answer fits"
    assert order("small", input_tokens=50_000) == ["small"], "the count says what is wrong"


@pytest.mark.parametrize(("allowed", "expected"), [(False, ["middle"]), (True, ["middle", "free"])])
def test_without_a_price_by_rule_or_alone(models: Any, allowed: bool, expected: list[str]) -> None:
    model("free", price=None)
    route_put(name="auto", models=["middle", "free"], allow_unpriced=allowed, allow_dearer=True)
    assert order("auto") == expected
    assert order("free") == ["free"], "whether that is paid for is billing's question"


def test_two_servers_of_one_model_share_its_name_and_the_free_one_goes_first(models: Any) -> None:
    Deployment.objects.filter(public_name="small").delete()
    model("s1", public_name="small", on="one", price="0.2")
    model("s2", public_name="small", on="two", price="0.1")
    names = [c.name for c in decide(Wish(model="small", level="internal")).decision.chosen]
    assert names == ["small on two", "small on one"]


def test_a_retired_model_is_answered_for_and_that_is_said(models: Any, caller: Caller) -> None:
    route_put(name="old", successor="middle")
    routed = decide(Wish(model="old", level="internal"))
    assert [t.public_name for t in routed.targets] == ["middle"]
    assert [(n["code"], n["model"]) for n in routed.notices] == [("model_successor", "middle")]
    model("gone")
    route_put(name="gone", successor="middle")
    memories_forget()
    assert not {"old", "gone"} & {t.public_name for t in models_for(caller)}


def wish_refused(kind: type[AppError], **needs: Any) -> AppError:
    memories_forget()
    with pytest.raises(kind) as caught:
        decide(Wish(**{"level": "internal"} | needs))
    return caught.value


def test_refusals_say_what_and_what_instead(models: Any) -> None:
    unknown = wish_refused(NotFound, model="ghost")
    assert (unknown.name, "small" in unknown.message) == ("model_not_found", True)
    Deployment.objects.filter(public_name="small").update(clearance="public")
    level = wish_refused(NotAllowed, model="small", level="private")
    assert (level.name, level.detail) == ("not_cleared", {"level": "private", "model": "small"})
    Deployment.objects.filter(public_name="large").update(capabilities=[*CAPABLE, "images"])
    needs = wish_refused(InvalidInput, model="middle", capabilities=frozenset({"images"}))
    assert needs.detail == {"field": "messages", "missing": ["images"], "models": ["large"]}
    assert "cannot do images. Models that can: large." in needs.message


# ------------------------------------------------------------------------------------------------ asked


def v1(caller: Caller, name: str, text: str = "Hello", **more: Any) -> Ask:
    memories_forget()
    content = more.pop("content", text)
    messages = (Message(role="user", content=content),)
    return ask_with_messages(
        caller=caller, turn_id=uuid7(), request_id="", model=name, messages=messages, **more
    )


@pytest.mark.parametrize(
    ("options", "content", "field"),
    [
        (Options(tools=({"type": "function", "function": {"name": "f"}},)), "x", "tools"),
        (Options(response_format={"type": "json_schema", "json_schema": {}}), "x", "response_format"),
        (Options(), (ImagePart(b"x", "image/png"),), "messages"),
    ],
)
def test_v1_asks_for_what_its_body_needs(
    models: Any, caller: Caller, options: Options, content: Any, field: str
) -> None:
    Deployment.objects.filter(public_name="small").update(capabilities=[])
    with pytest.raises(InvalidInput) as caught:
        v1(caller, "small", options=options, content=content)
    assert caught.value.detail["field"] == field
    plain = Options(response_format={"type": "json_object"})
    assert v1(caller, "small", options=plain).model == "small"


def test_a_key_is_bound_to_the_name_it_asks_for(models: Any, caller: Caller) -> None:
    route_put(name="auto", models=["middle"])
    bound = replace(caller, models_allowed=frozenset({"auto"}))
    assert v1(bound, "auto").model == "middle"
    assert [t.public_name for t in models_for(bound)] == ["auto"]
    with pytest.raises(NotAllowed):
        v1(bound, "middle")


def test_aliases_are_listed_after_models(models: Any, caller: Caller) -> None:
    route_put(name="auto", models=["middle", "small"])
    route_put(name="middle", models=["middle", "small"])
    cards = model_cards(models_for(caller))
    assert [card["id"] for card in cards] == ["small", "middle", "large", "auto"]
    assert cards[-1]["context_window"] == 8000


def test_the_count_drops_windows_that_are_too_small_and_leads_to_a_larger_one(
    models: Any, caller: Caller
) -> None:
    route_put(name="auto", models=["middle", "small"])
    words = "word " * 3000
    ask, _ = fitted(v1(caller, "auto", words))
    assert [t.public_name for t in ask.targets] == ["middle"]
    route_put(name="up", models=["small", "large"], allow_dearer=True)
    # Single letters are a token each, which the rough guess does not see.
    first = v1(caller, "up", "q " * 2400)
    ask, estimate = fitted(first)
    assert (first.model, ask.model) == ("small", "large")
    assert estimate.total_max > 2000


def test_the_precount_says_who_answers_instead(models: Any, caller: Caller) -> None:
    route_put(name="old", successor="middle")
    draft = ask_draft(
        caller=caller, conversation_id=None, team_id=None, turn_id=uuid7(), request_id="", text="Hello", model="old",
        collections=None,
    )  # fmt: skip
    shown = verdict_of(*fitted(draft))
    assert (shown["model"], shown["notices"][0]["code"]) == ("middle", "model_successor")


def test_the_precount_says_what_bars_a_call_besides_its_limits(
    models: Any, caller: Caller, settings: Settings
) -> None:
    settings.ALLOW_UNLIMITED_SPEND = False

    def shown(name: str) -> tuple[str, str | None]:
        draft = ask_draft(
            caller=caller, conversation_id=None, team_id=None, turn_id=uuid7(), request_id="", text="Hello",
            model=name, collections=None,
        )  # fmt: skip
        answer = verdict_of(*fitted(draft))
        return answer["verdict"], (answer["reason"] or {}).get("code")

    assert shown("middle") == ("ok", None)
    spending_pause(set_by="tests", reason="audit")
    assert shown("middle") == ("refused", "paused")
    spending_resume(set_by="tests")
    limits = Budget.objects.filter(active=True)
    standing = list(limits.values_list("id", flat=True))
    limits.update(active=False)
    assert shown("middle") == ("refused", "budget_exhausted")
    settings.ALLOW_UNLIMITED_SPEND = True
    assert shown("middle") == ("ok", None)
    Budget.objects.filter(id__in=standing).update(active=True)
    Deployment.objects.filter(public_name="middle").update(price_key="unknown")
    memories_forget()
    asking._cached_targets.forget()
    asking._cached_named.forget()
    assert shown("middle") == ("refused", "price_missing")


def turned(gather: Callable[..., Ask], name: str, *scripts: Script, at: str) -> Taken:
    """A turn for which the server of the model `at` answers as scripted; other servers are dead."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    Backend.objects.filter(name=f"{at}-server").update(base_url=f"http://127.0.0.1:{port}/v1")
    memories_forget()
    ask = gather("Say", model=name)

    async def story() -> Taken:
        async with FaultServer(*scripts, port=port):
            run = Runs().start(ask.turn_id, lambda run: take_turn(ask, run), replayable=False)
            taken = Taken(ask, run)
            async for batch in run.log.follow():
                taken.events += batch
            await run.task
            await client_close()
            await redis_close()
            return taken

    return async_to_sync(story)()


def test_a_fallback_that_answers_is_told_booked_and_stored(
    models: Any, gather: Callable[..., Ask], conversation: Conversation
) -> None:
    route_put(name="auto", models=["middle", "small"])
    taken = turned(gather, "auto", said("ok"), at="small")
    # The scripted server says that it read five tokens, which is a notice of its own.
    assert [(n["code"], n.get("model")) for n in taken.named("notice")] == [
        ("fallback", "small"),
        ("prompt_cut", None),
    ]
    turn = Turn.objects.get(id=taken.ask.turn_id)
    assert (turn.model, turn.deployment_id, turn.answer) == ("small", models["small"].id, "ok")
    assert turn.route["asked"] == "auto"
    assert turn.route["chosen"] == ["middle on middle-server", "small on small-server"]
    assert any("large" not in line and "middle" in line for line in turn.route["explanation"])
    conversation.refresh_from_db()
    assert conversation.model == "auto"
    rows = UsageAttempt.objects.filter(kind="chat").order_by("number").values_list("error", "billed")
    assert list(rows) == [("Unreachable", False), ("", True)]


def test_the_turn_event_says_who_answers_for_a_retired_model(
    models: Any, gather: Callable[..., Ask], conversation: Conversation
) -> None:
    route_put(name="old", successor="small")
    taken = turned(gather, "old", said("ok"), at="small")
    event = taken.named("turn")[0]
    assert event["model"] == "small"
    assert event["notices"][0]["code"] == "model_successor"
    conversation.refresh_from_db()
    assert conversation.model == "small"


# ------------------------------------------------------------------------------------------------ route_test


def tried(tmp_path: Path, *cases: Any, explain: bool = False) -> tuple[int, str]:
    """(exit code, output)."""
    memories_forget()
    file, out = tmp_path / "cases.jsonl", StringIO()
    file.write_text("\n".join(c if isinstance(c, str) else json.dumps(c) for c in cases) + "\n\n")
    try:
        call_command("route_test", str(file), explain=explain, stdout=out)
    except SystemExit as exc:
        return int(exc.code), out.getvalue()
    return 0, out.getvalue()


def case(name: str, expected: str | None, **more: Any) -> dict[str, Any]:
    return {"model": name, "prompt": "Hello", "expected": expected} | more


def test_route_test_agrees_or_fails(models: Any, tmp_path: Path) -> None:
    route_put(name="auto", models=["small", "large"], allow_dearer=True)
    Deployment.objects.filter(public_name="small").update(clearance="public", capabilities=[])
    good = (
        case("auto", "large"),
        case("auto", "small on small-server", level="public"),
        case("auto", "large", level="public", prompt="word " * 3000),
        case("auto", "large", level="public", capabilities=["tools"]),
        case("ghost", None),
        case("small", None, level="private"),
    )
    assert tried(tmp_path, *good)[0] == 0
    code, text = tried(tmp_path, *good, case("auto", "small"), case("ghost", "small"), explain=True)
    assert code == 1
    assert "FAIL 7: auto → large on large-server, expected small" in text
    assert "cleared for public only" in text
    assert "FAIL 8: ghost → nobody, expected small" in text
    assert text.count("ok ") == 6


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ({"model": "small", "prompt": "x"}, "expected"),
        (case("small", "small", prompt=1), "`prompt`"),
        (case("small", "small", level="secret"), "`level`"),
        (case("small", "small", capabilities=["magic"]), "`capabilities`"),
        (case("small", "small", max_output_tokens=0), "`max_output_tokens`"),
    ],
)
def test_route_test_names_the_line_that_is_wrong(
    models: Any, tmp_path: Path, line: Any, complaint: str
) -> None:
    with pytest.raises(CommandError, match=r"Line 2.*" + complaint):
        tried(tmp_path, case("small", "small"), line)
