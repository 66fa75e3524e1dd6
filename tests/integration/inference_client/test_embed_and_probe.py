"""Embeddings, and what a probe makes of servers that are up, down, foreign or silent."""

import asyncio
import json
import runpy
import sys
from typing import Any

import orjson
import pytest

from inference_client import errors
from inference_client.__main__ import main
from inference_client.probe import probe
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.types import EmbedRequest, ModelFacts, ServerFacts, Timeouts
from tests.integration.inference_client.scenes import Scene, run_scene

REQUEST = EmbedRequest(model="e", inputs=("one", "three words here"), input_type="query", dimensions=4)


def _json(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


async def _embed(scene: Scene) -> Any:
    found = await scene.client.embed(scene.server, REQUEST)
    return found, scene.upstream.seen[0]


def test_embeddings_in_the_order_of_the_inputs() -> None:
    found, seen = run_scene(_embed, Script())
    assert found.vectors == [[3.0] * 4, [16.0] * 4]
    assert (found.usage.input_tokens, found.usage.state) == (4, "reported")
    assert seen.json["input_type"] == "query"
    assert (seen.json["encoding_format"], seen.json["dimensions"]) == ("float", 4)
    assert found.timing.total_s is not None


ROWS = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]


def test_embeddings_out_of_order_are_put_in_order() -> None:
    found, _ = run_scene(_embed, _json({"data": ROWS}))
    assert found.vectors == [[1.0], [2.0]]
    assert found.usage.state == "absent"


def test_embeddings_of_other_kinds() -> None:
    found, seen = run_scene(
        _embed, _json({"embeddings": [[1.0], [2.0]], "prompt_eval_count": 9}), kind="ollama"
    )
    assert (found.usage.input_tokens, seen.path) == (9, "/api/embed")
    found, seen = run_scene(
        _embed, _json({"embeddings": [{"values": [1.0]}, {"values": [2.0]}]}), kind="gemini"
    )
    assert (found.vectors, found.usage.state) == ([[1.0], [2.0]], "absent")
    assert seen.json["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


@pytest.mark.parametrize(
    ("script", "kind", "expected"),
    [
        (_json({"error": {"code": 429}}, status=429), "openai-compatible", errors.Throttled),
        (
            _json({"error": {"message": "model not loaded", "code": 503}}),
            "openai-compatible",
            errors.Overloaded,
        ),
        (_json({"data": ROWS[:1]}), "openai-compatible", errors.MalformedAnswer),
        (
            _json({"data": [{"embedding": "***"}, {"embedding": []}]}),
            "openai-compatible",
            errors.MalformedAnswer,
        ),
        (_json({"data": [{"embedding": ["x"]}] * 2}), "openai-compatible", errors.MalformedAnswer),
        (Script(), "anthropic", errors.Unsupported),
        (Script(), "bedrock", errors.Unsupported),  # no maker of the model's name is known
        (Script(), "deepseek", errors.Unsupported),
    ],
)
def test_embeddings_that_fail(script: Script, kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        run_scene(_embed, script, kind=kind)


def test_more_texts_than_one_request_takes_go_in_several() -> None:
    async def scene(scene: Scene) -> Any:
        many = EmbedRequest(model="amazon.titan-embed-text-v2:0", inputs=tuple("abcdef"))
        found = await scene.client.embed(scene.server, many)
        return found, sorted(seen.json["inputText"] for seen in scene.upstream.seen)

    one = _json({"embedding": [1.0], "inputTextTokenCount": 3})
    found, texts = run_scene(scene, one, kind="bedrock")
    assert (len(found.vectors), found.usage.input_tokens, texts) == (6, 18, list("abcdef"))


def test_no_texts_at_all_are_asked_for_as_they_are() -> None:
    async def scene(scene: Scene) -> Any:
        return await scene.client.embed(scene.server, EmbedRequest(model="e", inputs=()))

    assert run_scene(scene, _json({"data": []})).vectors == []


def test_embeddings_that_take_too_long() -> None:
    with pytest.raises(errors.TimedOut):
        run_scene(_embed, Script(wait_s=30), timeouts=Timeouts(total=0.2))


# ------------------------------------------------------------------------------------------------ probing


class _Routes(FaultServer):
    """Answers by path instead of by turn."""

    def __init__(self, routes: dict[str, Script]) -> None:
        super().__init__()
        self._routes = routes

    def next_script(self) -> Script:
        path = self.seen[-1].path
        return self._routes.get(path, _json({"error": "no such route"}, status=404))


def _probed(routes: dict[str, Script]) -> ServerFacts:
    async def run() -> ServerFacts:
        async with _Routes(routes) as upstream:
            return await probe(upstream.url, "key", limit_s=0.5)

    return asyncio.run(run())


METRICS = b"""# HELP vllm:num_requests_running x
vllm:num_requests_running{model_name="a b",engine="0"} 3.0
vllm:num_requests_running{model_name="a b",engine="1"} 2.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:num_requests_waiting NaN
broken_line
"""
PAGES: list[tuple[str, dict[str, Script], dict[str, Any]]] = [
    (
        "vllm",
        {
            "/v1/models": _json({"data": [{"id": "big", "owned_by": "vllm", "max_model_len": 8192}]}),
            "/health": Script(body=(b"",)),
            "/version": _json({"version": "0.27"}),
            "/metrics": Script(body=(METRICS,), content_type="text/plain"),
        },
        {
            "healthy": True,
            "version": "0.27",
            "counts_tokens": True,
            "metrics": {"running": 5.0, "kv_cache_share": 0.5},
        },
    ),
    (
        "llamacpp",
        {
            "/v1/models": _json({"data": [{"id": "s", "owned_by": "llamacpp", "meta": {"n_ctx_train": 9}}]}),
            "/health": _json({"status": "loading"}, status=503),
            "/props": _json({"default_generation_settings": {"n_ctx": 4096}}),
        },
        {"healthy": False, "version": None, "counts_tokens": True},
    ),
    (
        "llamacpp",
        {
            "/props": _json({"default_generation_settings": {}}),
            "/v1/models": _json({"models": [{"name": "n"}]}),
        },
        {"healthy": None},
    ),
    (
        "ollama-v1",
        {
            "/v1/models": _json({"data": [{"id": "llama3"}, {"no": "id"}]}),
            "/api/version": _json({"version": "0.9"}),
        },
        {"version": "0.9", "counts_tokens": False},
    ),
    (
        "tgi-v1",
        {"/info": _json({"model_id": "m", "max_total_tokens": 2048, "version": "3"})},
        {"version": "3"},
    ),
    (
        "triton-vllm",
        {
            "/v2": _json(
                {"name": "mine", "version": "2.51.0", "extensions": ["sequence", "schedule_policy"]}
            ),
            "/v2/health/ready": Script(body=(b"",), content_type="text/plain"),
            "/v2/repository/index": _json(
                [
                    {"name": "tiny", "version": "1", "state": "READY"},
                    {"name": "b", "state": "UNAVAILABLE"},
                    {"name": "c"},
                ]
            ),
        },
        {"healthy": True, "version": "2.51.0", "models": (ModelFacts(name="tiny"),), "problem": None},
    ),
    ("openai-compatible", {"/v2": _json({"name": "mlserver", "extensions": []})}, {"models": ()}),
    ("openai-compatible", {"/v1/models": Script(body=(b"not json",))}, {"models": ()}),
    ("openai-compatible", {"/v1/models": _json({"error": {}}, status=401)}, {"models": ()}),
    ("vllm", {"/version": _json({"version": "1"})}, {}),
]


@pytest.mark.parametrize(("kind", "routes", "expected"), PAGES)
def test_a_server_is_known_by_what_only_it_answers(
    kind: str, routes: dict[str, Script], expected: dict[str, Any]
) -> None:
    facts = _probed(routes)
    assert (facts.kind, facts.reachable) == (kind, True)
    assert {name: getattr(facts, name) for name in expected} == expected


def test_windows_are_those_of_one_slot() -> None:
    assert _probed(PAGES[0][1]).models[0].context_window == 8192
    assert _probed(PAGES[1][1]).models[0].context_window == 4096
    assert _probed(PAGES[2][1]).models[0].context_window is None


def test_a_wrong_key_is_named() -> None:
    problem = _probed({"/v1/models": _json({"error": {"code": "invalid_api_key"}}, status=401)}).problem
    assert problem is not None
    assert "key" in problem


@pytest.mark.parametrize("script", [Script(wait_s=30), Script(answers=False)])
def test_a_server_that_does_not_answer(script: Script) -> None:
    async def run() -> ServerFacts:
        async with FaultServer(script) as upstream:
            return await probe(upstream.url, limit_s=0.2)

    facts = asyncio.run(run())
    assert (facts.reachable, facts.kind) == (False, None)
    assert facts.problem


def test_probe_from_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    assert main(["probe", "http://127.0.0.1:9", "--key-file", str(key)]) == 1
    assert json.loads(capsys.readouterr().out)["reachable"] is False


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", ["inference_client", "inference_client.testing.fault_server"])
def test_both_commands_explain_themselves(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(module, run_name="__main__")
    assert caught.value.code == 0
    assert f"python -m {module}" in capsys.readouterr().out
