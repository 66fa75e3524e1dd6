"""The scripted server from the command line."""

import asyncio
import re
import sys

import pytest

from inference_client import errors
from inference_client.client import Client
from inference_client.servers import Server
from inference_client.testing.fault_server import server_of
from tests.integration.inference_client.scenes import REQUEST


async def _against(*arguments: str) -> str:
    """The text of one answer of a server started with `arguments`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "inference_client.testing.fault_server",
        "--port",
        "0",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    client = Client()
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        found = re.search(r"http://\S+", line)
        assert found is not None
        async with client.chat(Server(kind="openai", base_url=found[0]), REQUEST) as call:
            return "".join([getattr(event, "text", "") async for event in call])
    finally:
        await client.aclose()
        process.terminate()
        await process.wait()


def test_an_answer_word_by_word() -> None:
    assert asyncio.run(_against("--words", "3", "--gap-ms", "1")) == " word0 word1 word2"


def test_the_command_line_describes_the_script() -> None:
    script = server_of(
        ["--words", "2", "--usage", "wrong", "--status", "503", "--ending", "reset"]
    ).next_script()
    assert (script.answer.output_tokens, script.status, script.ending) == (1002, 503, "reset")
    assert script.body is not None
    plain = server_of([]).next_script()
    assert (plain.body, plain.headers, plain.cut_at) == (None, {}, None)


def test_it_serves_until_it_is_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene() -> None:
        async with asyncio.timeout(0.2):
            await server_of(["--port", "0"]).serve()

    with pytest.raises(TimeoutError):
        asyncio.run(scene())
    assert "listening on http://127.0.0.1:" in capsys.readouterr().out


def test_a_refusal_with_its_wait() -> None:
    with pytest.raises(errors.Throttled) as caught:
        asyncio.run(_against("--status", "429", "--retry-after", "4"))
    assert caught.value.retry_after == 4


def test_a_cut_stream() -> None:
    with pytest.raises(errors.BrokenStream):
        asyncio.run(_against("--cut-at", "400", "--ending", "drop"))
