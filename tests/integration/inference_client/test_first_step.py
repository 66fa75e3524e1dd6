"""What comes before a call: a prompt that the server writes, pictures that are fitted. It costs nothing."""

import base64
import io
from typing import Any

import orjson
import pytest
from PIL import Image

from inference_client import errors
from inference_client.retry import Retry
from inference_client.testing.fault_server import Script
from inference_client.types import ChatRequest, ImagePart, Message, TextPart
from tests.integration.inference_client.answers import script
from tests.integration.inference_client.scenes import Outcome, Scene, run_scene

SERVER_TEMPLATE: dict[str, Any] = {"template": "server"}


def _run(*scripts: Script, **options: Any) -> tuple[Outcome, list[Any]]:
    async def scene(scene: Scene) -> tuple[Outcome, list[Any]]:
        return await scene.read(**options), scene.upstream.seen

    return run_scene(scene, *scripts, kind="tgi-native", options=SERVER_TEMPLATE)


def test_the_prompt_is_the_one_the_server_wrote() -> None:
    got, seen = _run(script())
    assert [request.path for request in seen] == ["/chat_tokenize", "/generate_stream"]
    assert seen[1].json["inputs"] == "<user>Hello"
    assert seen[1].headers["authorization"] == "Bearer secret"
    assert (got.record.attempts, got.record.usage.input_tokens) == (1, 40)
    assert not got.record.estimated


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (Script(status=401, body=(b'{"error":"no"}',), content_type="application/json"), errors.BadAuth),
        (Script(status=422, body=(b'{"error_type":"template_error"}',)), errors.InvalidRequest),
        (Script(body=(b"{}",), content_type="application/json"), errors.MalformedAnswer),
        (Script(answers=False, ending="drop"), errors.BrokenStream),
    ],
)
def test_without_a_prompt_nothing_is_asked_and_nothing_owed(first: Script, expected: type[Exception]) -> None:
    got, seen = _run(first, script())
    assert isinstance(got.error, expected)
    assert {request.path for request in seen} == {"/chat_tokenize"}
    assert (got.record.never_sent, got.record.estimated) == (True, False)


def test_a_refused_first_step_is_tried_again_as_often_as_any_other() -> None:
    refusal = Script(status=429, body=(b"{}",), content_type="application/json")
    got, seen = _run(refusal, retry=Retry(attempts=3, base_s=0.001))
    assert isinstance(got.error, errors.Throttled)
    assert (len(seen), got.record.attempts) == (3, 3)


def test_a_provider_finds_a_broken_call_by_its_header() -> None:
    broken = script(cut_at=0, ending="reset", headers={"x-generation-id": "gen-7"})

    async def scene(scene: Scene) -> Outcome:
        return await scene.read()

    got = run_scene(scene, broken, kind="openrouter")
    assert (got.record.outcome, got.record.upstream_id) == ("failed", "gen-7")


def test_an_answer_that_is_not_streamed_has_its_input_in_a_header() -> None:
    details = {"finish_reason": "length", "generated_tokens": 3, "seed": None}
    body = orjson.dumps({"generated_text": "abc", "details": details})
    whole = Script(body=(body,), content_type="application/json", headers={"x-prompt-tokens": "21"})

    async def scene(scene: Scene) -> Outcome:
        return await scene.read()

    got = run_scene(scene, whole, kind="tgi-native")
    assert (got.text, got.record.finish_reason) == ("abc", "length")
    assert (got.record.usage.input_tokens, got.record.usage.output_tokens) == (21, 3)


def test_pictures_are_fitted_before_they_are_sent() -> None:
    out = io.BytesIO()
    Image.new("RGB", (5000, 50)).save(out, "PNG")

    def asked(data: bytes) -> ChatRequest:
        content = (TextPart("?"), ImagePart(data, "image/png"))
        talk = (Message("user", content), Message("assistant", "A."), Message("user", "Sure?"))
        return ChatRequest(model="m", messages=talk, max_output_tokens=9)

    async def scene(scene: Scene) -> tuple[int, int]:
        async with scene.client.chat(scene.server, asked(out.getvalue())) as call:
            async for _ in call:
                pass
        url = scene.upstream.seen[0].json["messages"][0]["content"][1]["image_url"]["url"]
        sent = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        broken = scene.client.chat(scene.server, asked(b"no picture"))
        with pytest.raises(errors.InvalidRequest):
            await anext(broken)
        assert broken.record.never_sent
        assert len(scene.upstream.seen) == 1
        return sent.size

    assert run_scene(scene, script()) == (2048, 20)


def test_pictures_that_cannot_go_are_refused_at_once() -> None:
    content = (TextPart("?"), ImagePart(b"any", "image/png"))
    request = ChatRequest(model="m", messages=(Message("user", content),), max_output_tokens=9)

    async def scene(scene: Scene) -> None:
        with pytest.raises(errors.Unsupported, match="pictures"):
            scene.client.chat(scene.server, request)

    run_scene(scene, script(), kind="tgi-native")
