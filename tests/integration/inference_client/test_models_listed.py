"""The models of a server whose kind is known: listed, or a sentence that says why there are none."""

import asyncio
from typing import Any

import orjson
import pytest

from inference_client.probe import models_listed
from inference_client.servers import ModelFacts, Server
from inference_client.testing.fault_server import FaultServer, Script


def listed(script: Script, kind: str) -> tuple[Any, Any, Any]:
    async def inside() -> tuple[Any, Any, Any]:
        async with FaultServer(script) as upstream:
            server = Server(kind=kind, base_url=upstream.url, api_key="k")
            models, problem = await models_listed(server, limit_s=0.5)
            return models, problem, upstream.seen

    return asyncio.run(asyncio.wait_for(inside(), 30))


def page(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


@pytest.mark.parametrize(
    ("kind", "body", "path", "key", "expected"),
    [
        ("anthropic", {"data": [{"id": "claude-x"}]}, "/v1/models", "x-api-key", ModelFacts(name="claude-x")),
        (
            "gemini",
            {"models": [{"name": "models/gemini-x", "inputTokenLimit": 1000, "outputTokenLimit": 5}]},
            "/v1beta/models",
            "x-goog-api-key",
            ModelFacts(name="gemini-x", context_window=1000),
        ),
    ],
)
def test_a_list_as_the_kind_gives_it(kind: str, body: Any, path: str, key: str, expected: ModelFacts) -> None:
    models, problem, seen = listed(page(body), kind)
    assert (models, problem) == ((expected,), None)
    assert (seen[0].path, seen[0].headers[key]) == (path, "k")


@pytest.mark.parametrize(
    ("kind", "script", "words"),
    [
        ("cohere", page({}), "no list of models"),
        ("anthropic", page({"error": {"message": "no"}}, status=401), "key"),
        ("anthropic", Script(answers=False, ending="reset"), ""),
        ("anthropic", Script(wait_s=20), "did not answer within 0.5 s"),
    ],
    ids=["no route", "refused", "dropped", "too slow"],
)
def test_a_list_that_is_not_there_says_why(kind: str, script: Script, words: str) -> None:
    models, problem, _ = listed(script, kind)
    assert models == ()
    assert problem
    assert words in problem
