"""The same dozen things in every format, streamed and whole, each as its maker documents it."""

from typing import Any

import orjson
import pytest

from inference_client.replay import Recording, replayed
from tests.unit.inference_client.cases import Case
from tests.unit.inference_client.cases_clouds import BEDROCK, GEMINI
from tests.unit.inference_client.cases_openai import OPENAI
from tests.unit.inference_client.cases_others import COHERE, OLLAMA, PROMPTED
from tests.unit.inference_client.cases_responses import ANTHROPIC, RESPONSES

CASES = [*OPENAI, *RESPONSES, *ANTHROPIC, *GEMINI, *BEDROCK, *COHERE, *OLLAMA, *PROMPTED]


STREAMED = [case for case in CASES if not case.whole]


def _name(case: Case) -> str:
    return f"{case.provider}: {case.name}"


def _recording(case: Case) -> Recording:
    body = orjson.dumps(case.body) if case.whole else case.body
    mode = "json" if case.whole else "stream"
    return Recording(
        file="x", provider=case.provider, api=case.api, mode=mode, status=200, headers={}, body=body
    )


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_what_an_answer_holds(case: Case) -> None:
    got = replayed(_recording(case))
    usage = got["usage"]
    names = ("input_tokens", "output_tokens", "cache_read", "cache_write", "reasoning")
    assert (got["text"], got["reasoning"]) == (case.text, case.reasoning)
    assert tuple((call["name"], call["arguments"]) for call in got["tool_calls"]) == case.calls
    assert got["finish"] == case.finish
    assert (usage and tuple(usage[name] for name in names)) == case.usage
    assert (usage["detail"] if usage else {}) == case.detail
    assert (got["error"] and got["error"]["class"]) == case.error


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.whole], ids=lambda case: f"{case.provider}: {case.name}"
)
def test_it_is_the_same_however_it_is_cut(case: Case) -> None:
    recording = _recording(case)
    assert replayed(recording, cuts=range(1, len(recording.body))) == replayed(recording)


EMBEDDINGS = [
    ("openai", "embeddings", {"data": [{"index": 0, "embedding": [1.5]}], "usage": {"prompt_tokens": 3}}, 3),
    ("voyage", "embeddings", {"data": [{"embedding": "AADAPw=="}], "usage": {"total_tokens": 18}}, 18),
    ("ollama", "embeddings", {"data": [{"embedding": [1.5]}], "usage": {"prompt_tokens": 3}}, 3),
    ("ollama", "api/embed", {"embeddings": [[1.5]], "prompt_eval_count": 4}, 4),
    ("ollama", "api/embeddings", {"embedding": [1.5]}, None),
    ("gemini", "batchEmbedContents", {"embeddings": [{"values": [1.5]}]}, None),
    ("gemini", "embedContent", {"embedding": {"values": [1.5]}}, None),
    (
        "cohere",
        "embeddings",
        {"embeddings": {"float": [[1.5]]}, "meta": {"billed_units": {"input_tokens": 2}}},
        2,
    ),
    ("cohere", "v1/embed", {"embeddings": [[1.5]], "meta": {"billed_units": {"input_tokens": 2}}}, 2),
    ("bedrock", "embeddings", {"embedding": [1.5], "inputTextTokenCount": 6}, 6),
]


@pytest.mark.parametrize(("provider", "api", "body", "tokens"), EMBEDDINGS)
def test_vectors_of_every_provider(provider: str, api: str, body: Any, tokens: int | None) -> None:
    recording = Recording(
        file="x", provider=provider, api=api, mode="json", status=200, headers={}, body=orjson.dumps(body)
    )
    got = replayed(recording)
    assert (got["vectors"], got["first3"], got["error"]) == (1, [1.5], None)
    assert (got["usage"] and got["usage"]["input_tokens"]) == tokens


@pytest.mark.parametrize(
    ("provider", "body", "error"),
    [
        ("openai", {"error": {"code": "rate_limit_exceeded"}}, "Throttled"),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE"}}, "Overloaded"),
        ("cohere", {"message": "invalid api token"}, "ServerFault"),
        ("ollama", {"error": "this model does not support embeddings"}, "ServerFault"),
        ("anthropic", {}, "MalformedAnswer"),
    ],
)
def test_errors_instead_of_vectors(provider: str, body: Any, error: str) -> None:
    recording = Recording(
        file="x",
        provider=provider,
        api="embeddings",
        mode="json",
        status=200,
        headers={},
        body=orjson.dumps(body),
    )
    assert replayed(recording)["error"]["class"] == error
