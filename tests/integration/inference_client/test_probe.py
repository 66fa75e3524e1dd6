"""What a probe makes of servers that are up, down, foreign or silent."""

import asyncio
import json
import runpy
import sys
from typing import Any

import orjson
import pytest

from inference_client.__main__ import main
from inference_client.probe import probe
from inference_client.servers import ModelFacts, ServerFacts
from inference_client.testing.fault_server import FaultServer, Script


def _json(value: Any, **options: Any) -> Script:
    return Script(body=(orjson.dumps(value),), content_type="application/json", **options)


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
            # Every path is answered, so a machine under load is waited for and nothing else.
            return await probe(upstream.url, "key", limit_s=60)

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
        {
            "healthy": True,
            "version": "2.51.0",
            "models": (ModelFacts(name="tiny", status="loaded"),),
            "problem": None,
        },
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


# ------------------------------------------------------------------- what is in memory, and in which form

PROPS = {"default_generation_settings": {"n_ctx": 4096}, "model_ftype": "Q4_1"}
STATES: list[tuple[str, dict[str, Script], list[tuple[str, int | None, str | None, str | None]]]] = [
    (
        "llama.cpp with one model",
        {"/v1/models": _json({"data": [{"id": "s", "owned_by": "llamacpp"}]}), "/props": _json(PROPS)},
        [("s", 4096, "Q4_1", "loaded")],
    ),
    (
        "llama.cpp that still loads it",
        {
            "/v1/models": _json(
                {"data": [{"id": "s", "owned_by": "llamacpp", "meta": {"n_ctx": 8192, "ftype": "F16"}}]}
            ),
            "/health": _json({"error": {"type": "unavailable_error"}}, status=503),
        },
        [("s", 8192, "F16", "loading")],
    ),
    (
        "llama.cpp as a router",
        {
            "/v1/models": _json(
                {
                    "data": [
                        {"id": "a", "owned_by": "llamacpp", "status": {"value": "loaded"}},
                        {"id": "b", "owned_by": "llamacpp", "status": {"value": "loading"}},
                        {"id": "c", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
                    ]
                }
            )
        },
        [("a", None, None, "loaded"), ("b", None, None, "loading"), ("c", None, None, "absent")],
    ),
    (
        "ollama",
        {
            "/v1/models": _json({"data": [{"id": "big"}, {"id": "small"}]}),
            "/api/version": _json({"version": "0.9"}),
            "/api/ps": _json({"models": [{"name": "small", "context_length": 8192}]}),
            "/api/tags": _json(
                {
                    "models": [
                        {"name": "small", "details": {"quantization_level": "Q8_0"}},
                        {"name": "big", "details": {"quantization_level": "Q4_K_M"}},
                    ]
                }
            ),
        },
        [("small", 8192, "Q8_0", "loaded"), ("big", None, "Q4_K_M", "absent")],
    ),
    (
        "ollama that tells nothing more",
        {"/v1/models": _json({"data": [{"id": "m"}]}), "/api/version": _json({"version": "0.1"})},
        [("m", None, None, None)],
    ),
    (
        "vllm",
        {"/v1/models": _json({"data": [{"id": "v", "owned_by": "vllm", "max_model_len": 32768}]})},
        [("v", 32768, None, "loaded")],
    ),
    (
        "tgi without a list",
        {
            "/info": _json(
                {"model_id": "t", "max_total_tokens": 2048, "model_dtype": "float16", "quantize": None}
            ),
            "/health": Script(body=(b"",)),
        },
        [("t", 2048, "float16", "loaded")],
    ),
    (
        "tgi that quantises",
        {
            "/v1/models": _json({"data": [{"id": "t"}]}),
            "/info": _json({"model_id": "t", "max_total_tokens": 2048, "quantize": "awq"}),
            "/health": _json({}, status=503),
        },
        [("t", 2048, "awq", "loading")],
    ),
    (
        "triton",
        {
            "/v2": _json({"extensions": ["schedule_policy"]}),
            "/v2/repository/index": _json(
                [
                    {"name": "a", "state": "READY"},
                    {"name": "b", "state": "LOADING"},
                    {"name": "c", "state": "UNLOADING"},
                ]
            ),
        },
        [("a", None, None, "loaded"), ("b", None, None, "loading")],
    ),
    ("anything else", {"/v1/models": _json({"data": [{"id": "x"}]})}, [("x", None, None, None)]),
    (
        "tgi that does not say its model's name",
        {"/info": _json({"model_id": None, "max_total_tokens": 1})},
        [],
    ),
]


@pytest.mark.parametrize(("routes", "expected"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_what_is_in_memory_in_which_form_and_with_which_window(routes: Any, expected: Any) -> None:
    found = _probed(routes).models
    assert [(m.name, m.context_window, m.quantisation, m.status) for m in found] == expected
