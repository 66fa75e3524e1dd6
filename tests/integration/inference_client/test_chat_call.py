"""Reading to the end, whatever the end is: one record that says what it was."""

import asyncio
from typing import Any

import pytest

from inference_client import errors
from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import MODEL, Answer
from inference_client.chat_call import ChatCall
from inference_client.retry import Retry
from inference_client.servers import Timeouts
from inference_client.testing.fault_server import Script
from inference_client.types import CallRecord
from tests.integration.inference_client.answers import WORDS, kind, leave_after, read, script
from tests.integration.inference_client.scenes import QUICK, Outcome, Scene, run_scene, until


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_call_read_to_its_end(name: str) -> None:
    got = run_scene(read, script(), kind=kind(name))
    assert got.text == "".join(WORDS)
    record = got.record
    assert (record.outcome, record.finish_reason, record.error) == ("completed", "stop", None)
    assert (record.usage.input_tokens, record.usage.output_tokens) == (40, 5)
    parser = ADAPTERS[name].parser(ADAPTERS[name].kinds[0])
    assert record.usage.cache_read == (8 if parser.shape.cache_read else None)
    assert (record.estimated, record.attempts, record.never_sent) == (False, 1, False)
    told = MODEL.encode() in b"".join(ADAPTERS[name].scripted(script().answer))
    assert record.served_model == (MODEL if told else None)
    assert record.output_chars == len("".join(WORDS))
    timing = record.timing
    assert timing.connected_s is not None
    assert timing.first_token_s is not None
    assert timing.total_s is not None
    assert 0 <= timing.connected_s <= timing.first_token_s <= timing.total_s


async def _by_batches(scene: Scene) -> tuple[list[Any], CallRecord]:
    events = []
    async with scene.call() as call:
        while batch := await call.batch():
            events += batch
        assert await call.batch() == []
    return events, call.record


def test_batches_give_the_same_events() -> None:
    events, record = run_scene(_by_batches, script())
    assert events == run_scene(read, script()).events
    assert record.outcome == "completed"


@pytest.mark.parametrize("ending", ["drop", "reset"])
@pytest.mark.parametrize("name", ADAPTERS)
def test_a_stream_cut_in_the_middle_is_broken(name: str, ending: Any) -> None:
    size = len(b"".join(ADAPTERS[name].scripted(script().answer)))
    got = run_scene(read, script(cut_at=size * 2 // 3, ending=ending), kind=kind(name))
    assert isinstance(got.error, errors.BrokenStream)
    assert got.record.outcome == "failed"
    assert got.record.error is not None
    assert got.record.error.name == "BrokenStream"
    assert got.record.never_sent is False
    assert got.record.output_chars == len(got.text)
    assert got.text == "".join(WORDS[: len(got.events)])
    assert got.events


def test_a_body_that_ends_properly_but_too_early_is_broken() -> None:
    got = run_scene(read, script(cut_at=500))
    assert isinstance(got.error, errors.BrokenStream)
    assert got.error.code == "ended_early"


def test_a_stream_cut_after_its_finish_is_whole_but_estimated() -> None:
    size = len(b"".join(list(ADAPTERS["openai_chat"].scripted(script().answer))[:-2]))
    got = run_scene(read, script(cut_at=size, ending="drop"))
    assert got.error is None
    assert (got.record.outcome, got.record.estimate_reason) == ("completed", "no_usage")


def test_usage_that_never_comes_is_waited_for_shortly() -> None:
    size = len(b"".join(list(ADAPTERS["openai_chat"].scripted(script().answer))[:-2]))
    got = run_scene(read, script(cut_at=size, ending="hang"))
    assert (got.record.outcome, got.record.estimate_reason) == ("completed", "no_usage")


def test_a_body_left_open_after_everything_was_said_is_whole() -> None:
    got = run_scene(read, script(ending="hang"))
    assert (got.record.outcome, got.record.estimated) == ("completed", False)


@pytest.mark.parametrize(
    ("usage", "reason"),
    [("right", None), ("twice", None), ("none", "no_usage"), ("zero", "zero_for_an_answer")],
)
def test_what_is_estimated(usage: Any, reason: str | None) -> None:
    assert run_scene(read, script(usage=usage)).record.estimate_reason == reason


def test_numbers_left_out_by_the_server_are_unknown_not_zero() -> None:
    lines = (
        b'{"model":"m","message":{"content":"Hi"},"done":false}\n',
        b'{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","eval_count":1}\n',
    )
    got = run_scene(read, Script(body=lines, content_type="application/x-ndjson"), kind="ollama")
    assert got.record.usage.input_tokens is None
    assert got.record.estimate_reason == "no_input_tokens"


def test_running_totals_need_no_estimate_when_the_reader_leaves() -> None:
    async def scene(scene: Scene) -> CallRecord:
        return await leave_after(scene, 3)

    record = run_scene(scene, script(usage="running", gap_s=0.02), kind="vllm")
    assert (record.estimated, record.usage.output_tokens) == (False, 3)


@pytest.mark.parametrize(
    ("phase", "played", "limits"),
    [
        ("headers", Script(wait_s=30), Timeouts(first_token=0.5)),
        (
            "first_token",
            Script(body=(b": still thinking\n\n",) * 1000, gap_s=0.02),
            Timeouts(first_token=1.0),
        ),
        ("idle", Script(cut_at=400, ending="hang"), Timeouts(idle=0.5)),
        ("total", Script(gap_s=0.02, answer=Answer(words=WORDS * 100)), Timeouts(total=1.0)),
    ],
)
def test_a_server_that_is_too_slow(phase: str, played: Script, limits: Timeouts) -> None:
    async def scene(scene: Scene) -> Outcome:
        outcome = await scene.read()
        await until(lambda: scene.upstream.seen[0].left_at is not None)
        return outcome

    got = run_scene(scene, played, timeouts=limits)
    assert isinstance(got.error, errors.TimedOut)
    assert (got.error.phase, got.record.outcome, got.record.estimated) == (phase, "failed", True)


def test_a_reader_that_is_slow_does_not_time_out() -> None:
    async def scene(scene: Scene) -> CallRecord:
        async with scene.call() as call:
            async for _ in call:
                await asyncio.sleep(0.05)
        return call.record

    limits = Timeouts(idle=0.03, first_token=5, total=20)
    assert run_scene(scene, script(), timeouts=limits).outcome == "completed"


@pytest.mark.parametrize(
    ("status", "body", "headers", "expected"),
    [
        (429, b'{"error":{"code":"rate_limit_exceeded"}}', {"retry-after": "3"}, errors.Throttled),
        (429, b'{"error":{"type":"insufficient_quota"}}', {}, errors.UpstreamMoneyExhausted),
        (503, b"<html><body>Bad gateway</body></html>", {}, errors.Overloaded),
        (401, b"", {}, errors.BadAuth),
        (302, b"", {"location": "http://elsewhere"}, errors.MalformedAnswer),
        (500, b"x" * 200_000, {}, errors.ServerFault),
    ],
)
def test_a_refusal(status: int, body: bytes, headers: dict[str, str], expected: type[Exception]) -> None:
    got = run_scene(read, Script(status=status, body=(body,), headers=headers))
    assert type(got.error) is expected
    assert got.error is not None
    assert got.record.error == got.error.info
    assert got.error.retry_after == (3.0 if headers.get("retry-after") else None)
    assert (got.record.outcome, got.record.estimated) == ("failed", expected is errors.MalformedAnswer)


def test_refused_calls_are_sent_again_where_that_was_asked_for() -> None:
    async def scene(scene: Scene) -> Outcome:
        return await scene.read(retry=Retry(attempts=3, base_s=0.01))

    busy = Script(status=503, body=(b"{}",))
    got = run_scene(scene, busy, busy, script())
    assert (got.record.outcome, got.record.attempts, got.text) == ("completed", 3, "".join(WORDS))
    got = run_scene(scene, busy)
    assert (got.record.outcome, got.record.attempts) == ("failed", 3)
    assert isinstance(got.error, errors.Overloaded)


def test_calls_that_broke_off_are_never_sent_again() -> None:
    async def scene(scene: Scene) -> Outcome:
        return await scene.read(retry=Retry(attempts=3, base_s=0.01))

    got = run_scene(scene, Script(answers=False))
    assert (got.record.attempts, type(got.error)) == (1, errors.BrokenStream)


def test_an_unknown_kind_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(errors.Unsupported, match="skynet"):
        run_scene(read, kind="skynet")


def test_an_answer_over_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference_client.answer.MAX_BODY_BYTES", 600)
    got = run_scene(read, script(gap_s=0.01))
    assert isinstance(got.error, errors.MalformedAnswer)
    assert got.error.code == "answer_too_large"
    assert got.text


def test_leaving_before_anything_was_sent_drains_nothing() -> None:
    async def scene(scene: Scene) -> CallRecord:
        return await leave_after(scene, 0)

    record = run_scene(scene, script(), abort_stops_billing=False)
    assert (record.outcome, record.attempts, record.never_sent) == ("stopped", 0, True)


def test_an_answer_that_tells_its_input_only() -> None:
    line = b'{"message":{"content":"Hi"},"done":true,"done_reason":"stop","prompt_eval_count":4}\n'
    got = run_scene(read, Script(body=(line,), content_type="application/x-ndjson"), kind="ollama")
    assert got.record.estimate_reason == "no_output_tokens"


@pytest.mark.parametrize("name", ADAPTERS)
def test_answers_without_usage(name: str) -> None:
    got = run_scene(read, script(usage="none"), kind=kind(name))
    assert (got.record.outcome, got.record.estimate_reason) == ("completed", "no_usage")


def test_an_error_inside_a_200_keeps_the_text_before_and_the_usage_after() -> None:
    pieces = list(ADAPTERS["openai_chat"].scripted(script().answer))
    pieces.insert(3, b'data: {"error":{"message":"GPU on fire","code":500}}\n\n')
    got = run_scene(read, Script(body=tuple(pieces)))
    assert isinstance(got.error, errors.ServerFault)
    assert got.text == "".join(WORDS)
    assert got.record.usage.output_tokens == 5


def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    body = (
        b'{"model":"m","choices":[{"message":{"content":"Whole."},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}'
    )
    got = run_scene(read, Script(body=(body,), content_type="application/json"))
    assert (got.text, got.record.outcome, got.record.usage.output_tokens) == ("Whole.", "completed", 2)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>Welcome</html>"),
        ("text/event-stream", b"data: {broken\n\n"),
        ("application/json", b"[1]"),
    ],
)
def test_an_answer_that_is_none(content_type: str, body: bytes) -> None:
    got = run_scene(read, Script(body=(body,), content_type=content_type))
    assert isinstance(got.error, errors.MalformedAnswer)


def test_the_record_exists_only_afterwards_and_usage_at_any_moment() -> None:
    async def scene(scene: Scene) -> ChatCall:
        call = scene.call()
        async with call:
            with pytest.raises(RuntimeError, match="still running"):
                _ = call.record
            assert call.usage.state == "absent"
            async for _ in call:
                assert call.usage.state in {"absent", "reported"}
        return call

    assert run_scene(scene, script()).usage.state == "reported"


def test_the_key_is_sent_and_the_cap_too() -> None:
    async def scene(scene: Scene) -> Any:
        await scene.read()
        return scene.upstream.seen[0]

    seen = run_scene(scene, script())
    assert seen.headers["authorization"] == "Bearer secret"
    assert (seen.json["max_tokens"], seen.json["stream"]) == (32, True)
    assert QUICK.drain > 0
