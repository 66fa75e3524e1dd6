"""Every recorded answer of a real provider gives the text, finish reason, tool calls and usage it holds."""

import json
from collections import Counter

import pytest

from inference_client.__main__ import main
from inference_client.adapters.kinds import KINDS, adapter_for, parser_for
from inference_client.replay import Recording, replayed
from tests.unit.inference_client.recordings import WIRE, differences, parametrised, recordings

APIS_WITHOUT_PARSER: frozenset[str] = frozenset()
"""APIs whose answers cannot be read yet; a new one must be named here or built."""

NO_END = ("writer__completions__stream", "huggingface-tgi__generate_stream", "ac9d3c56")
"""Streams without any mark of their end: one provider sends none, one was cut, one was blocked."""


@pytest.mark.parametrize("recording", parametrised())
def test_recording_gives_what_it_holds(recording: Recording) -> None:
    assert differences(recording, replayed(recording)) == {}


@pytest.mark.parametrize("recording", parametrised(streams_only=True))
def test_a_stream_is_known_to_be_whole(recording: Recording) -> None:
    got = replayed(recording)
    assert got["error"] is not None or got["complete"] is not any(name in recording.file for name in NO_END)


@pytest.mark.skipif(not recordings(), reason="no recordings: set TESSERA_SHARED")
def test_no_api_is_left_out_unnamed() -> None:
    apart = {"embeddings", "rerank"}
    unread = {r.api for r in recordings() if r.api not in apart and parser_for(r.api, r.provider) is None}
    assert unread == APIS_WITHOUT_PARSER
    assert Counter(r.api for r in recordings())["chat.completions"] >= 70


@pytest.mark.skipif(not recordings(), reason="no recordings: set TESSERA_SHARED")
def test_replay_prints_one_line_of_json_each(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(WIRE / r.file) for r in recordings()[:3]]
    assert main(["replay", *paths]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = {
        "file",
        "text",
        "reasoning",
        "tool_calls",
        "finish_reason",
        "usage",
        "usage_state",
        "served_model",
        "error",
    }
    assert len(lines) == 3
    assert all(keys <= line.keys() for line in lines)


def test_replay_names_a_file_it_cannot_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "nowhere.meta.json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["class"] == "UnreadableRecording"


def test_a_recording_of_an_unknown_api_is_named() -> None:
    unknown = Recording(
        file="x", provider="p", api="telepathy", mode="json", status=200, headers={}, body=b"{}"
    )
    got = replayed(unknown)
    assert (got["error"]["class"], got["usage"]) == ("Unsupported", None)
    assert "telepathy" in got["error"]["message"]


def test_every_kind_has_an_adapter() -> None:
    assert all(adapter_for(kind).parser(kind) is not None for kind in KINDS.values())
