"""Both commands of the client by hand: every error is one sentence, and a reader may leave when it has seen enough."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from inference_client import __main__ as command
from inference_client.__main__ import main
from inference_client.testing import fault_server

META = {"provider": "openai", "api": "chat.completions", "mode": "json", "status": 200, "body_file": "a.json"}
BODY = '{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'


def _write(folder: Path, meta: Any, body: str | None = BODY, name: str = "a.json") -> str:
    path = folder / "a.meta.json"
    path.write_text(meta if isinstance(meta, str) else json.dumps(meta))
    if body is not None:
        (folder / name).write_text(body)
    return str(path)


@pytest.mark.parametrize(
    ("meta", "body", "said"),
    [
        ({}, None, "a.meta.json describes no recording: it lacks provider, api, mode."),
        ({**META, "mode": 7}, BODY, "it lacks mode."),
        ("[1]", None, "holds no JSON object"),
        ("nonsense", None, "is not JSON"),
        (
            {**META, "body_file": "b.json"},
            BODY,
            "b.json, the body that a.meta.json describes, cannot be read",
        ),
        ({name: META[name] for name in ("provider", "api", "mode")}, None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_recording_is_named_with_what_it_lacks(
    meta: Any, body: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", _write(tmp_path, meta, body)]) == 1
    out, err = capsys.readouterr()
    assert said in json.loads(out)["error"]["message"]
    assert said in err
    assert err.count("\n") == 1


def test_a_recording_needs_no_more_than_who_what_and_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: META[name] for name in ("provider", "api", "mode")}
    assert main(["replay", _write(tmp_path, {**few, "response_headers": None})]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "Hi"
    assert main(["replay", _write(tmp_path, {**few, "mode": "error"}, '{"error":{"code":"x"}}')]) == 0
    assert json.loads(capsys.readouterr().out)["error"]["class"] == "InvalidRequest"


def test_what_a_recording_holds_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {**META, "expected": {"text": "Hi", "finish_reason": "stop", "usage": None}}
    path = _write(tmp_path, meta)
    assert main(["replay", "--check", path]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split("\t") == ["same", "a.meta.json", "text", '"Hi"', '"Hi"']
    assert out[-1] == "1 recordings, 4 facts, 0 differ, 0 recordings unreadable"
    _write(tmp_path, {**meta, "expected": {"text": "x" * 99}})
    assert main(["replay", "--check", path, "nowhere.meta.json"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith('DIFFERS\ta.meta.json\ttext\t"xxx')
    assert out[-1] == "2 recordings, 2 facts, 1 differ, 1 recordings unreadable"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gpu:8000"], "is no address"),
        (["http://["], "is no address"),
        (["http://h", "--key-file", "/nowhere"], "The key file /nowhere cannot be read: No such file"),
        (["http://h", "--key-file", sys.executable], "it holds no text"),
        (["http://127.0.0.1:9"], "http://127.0.0.1:9: The inference server cannot be reached."),
    ],
)
def test_a_probe_that_cannot_be_made_ends_in_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", *arguments]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_refused_key_is_said_and_told_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("wrong\n")
    assert main(["probe", settings.INFERENCE_URL, "--key-file", str(key)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["key_refused"] is True
    assert "refused our key" in err
    key.write_text(settings.INFERENCE_API_KEY)
    assert main(["probe", settings.INFERENCE_URL, "--key-file", str(key)]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["key_refused"], err) == (False, "")


def test_a_reader_who_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """As in `replay … | head -1`: more than a pipe holds, read once, then closed."""
    path = _write(tmp_path, META, json.dumps({"choices": [{"message": {"content": "x" * 300_000}}]}))
    with subprocess.Popen(
        [sys.executable, "-m", "inference_client", "replay", path, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_pipe_nobody_reads_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["replay", _write(tmp_path, META)]) == 0
        pipe.write("into nothing")


def test_stopping_by_hand_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "recording_read", stopped)
    assert main(["replay", "a.meta.json"]) == 1
    assert capsys.readouterr().err == "Stopped.\n"
    monkeypatch.setattr(fault_server, "server_of", stopped)
    assert fault_server.main([]) == 0


def test_a_taken_port_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    taken = settings.INFERENCE_URL.rpartition(":")[2].partition("/")[0]
    assert fault_server.main(["--port", taken]) == 1
    assert "cannot listen" in capsys.readouterr().err
