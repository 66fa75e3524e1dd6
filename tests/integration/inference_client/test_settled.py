"""What OpenRouter says later that a call came to."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.adapters.settled import settled_read
from inference_client.servers import Timeouts
from inference_client.testing.fault_server import Script
from tests.integration.inference_client.scenes import QUICK, Scene, run_scene

ACCOUNT = {
    "id": "gen-q1",
    "model": "vendor/model-s",
    "provider_name": "Vendor",
    "total_cost": 0.00113,
    "upstream_inference_cost": 0,
    "native_tokens_prompt": 300,
    "native_tokens_completion": 20,
    "native_tokens_reasoning": 5,
    "native_tokens_cached": 256,
    "tokens_prompt": 290,
    "finish_reason": "stop",
    "native_finish_reason": "end_turn",
    "cancelled": True,
}


async def _settled(scene: Scene) -> Any:
    found = await scene.client.settled(scene.server, "gen/q1")
    return found, scene.upstream.seen[0]


def _script(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


def test_the_account_of_a_call() -> None:
    found, seen = run_scene(_settled, _script({"data": ACCOUNT}), kind="openrouter")
    assert (seen.method, seen.path) == ("GET", "/v1/generation?id=gen%2Fq1")
    assert seen.headers["authorization"] == "Bearer secret"
    assert (found.upstream_id, found.cost, found.upstream_cost) == ("gen-q1", Decimal("0.00113"), Decimal(0))
    usage = found.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read, usage.reasoning) == (300, 20, 256, 5)
    assert (found.served_model, found.provider, found.finish_raw) == ("vendor/model-s", "Vendor", "end_turn")
    assert found.cancelled


def test_a_call_that_is_not_settled_yet_is_none() -> None:
    assert run_scene(_settled, _script({"error": {"code": 404}}, status=404), kind="openrouter")[0] is None


@pytest.mark.parametrize(
    ("script", "kind", "expected"),
    [
        (_script({"error": {"code": "model_not_found"}}, status=400), "openrouter", errors.ModelMissing),
        (_script({}, status=401), "openrouter", errors.BadAuth),
        (_script({"data": None}), "openrouter", errors.MalformedAnswer),
        (_script({}), "openai", errors.Unsupported),
        (Script(wait_s=30), "openrouter", errors.TimedOut),
    ],
)
def test_an_account_that_cannot_be_had(script: Script, kind: str, expected: type[Exception]) -> None:
    limits = Timeouts(idle=0.3) if script.wait_s else QUICK
    with pytest.raises(expected):
        run_scene(_settled, script, kind=kind, timeouts=limits)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (b"1e-7", Decimal("1e-7")),
        (b"-1", None),
        (b"true", None),
        (b'"1"', None),
        (b"NaN", None),
        (b"null", None),
    ],
)
def test_what_is_no_amount_is_unknown(cost: bytes, expected: Decimal | None) -> None:
    assert settled_read(b'{"data":{"id":"g","total_cost":' + cost + b"}}").cost == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b"[]"])
def test_what_is_no_account(body: bytes) -> None:
    with pytest.raises(errors.MalformedAnswer):
        settled_read(body)
