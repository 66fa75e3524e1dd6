"""Where the recorded answers are, and how one is compared with what it should give."""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from inference_client.replay import Recording, recording_read

WIRE = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "wire" / "open"


@cache
def recordings() -> tuple[Recording, ...]:
    """All recordings that are there; none where the shared data is not."""
    return tuple(recording_read(path) for path in sorted(WIRE.glob("*.meta.json")))


def parametrised(*, streams_only: bool = False) -> list[Any]:
    """One test parameter per recording, or one skipped where there are none."""
    found = [
        pytest.param(recording, id=recording.file.removesuffix(".meta.json"))
        for recording in recordings()
        if not streams_only or recording.mode == "stream"
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason="no recordings: set TESSERA_SHARED"))]


def differences(recording: Recording, got: dict[str, Any]) -> dict[str, Any]:
    """name → (expected, got) for every fact that differs."""
    found: dict[str, Any] = {}
    for name, expected, value in _facts(recording, got):
        if expected != value:
            found[name] = (expected, value)
    return found


def _facts(recording: Recording, got: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    expected = recording.expected
    plain = {"text": "text", "finish_reason": "finish_reason", "model": "served_model"}
    plain |= {name: name for name in ("vectors", "order", "scores")}
    if not expected.get("base64"):
        plain |= {"dimensions": "dimensions", "first3": "first3"}
    for name, key in plain.items():
        if name in expected:
            yield name, expected[name], got.get(key)
    if "reasoning_chars" in expected:
        yield "reasoning", expected["reasoning_chars"], len(got["reasoning"])
    if "tool_calls" in expected:
        yield (
            "tool_calls",
            [_call(call) for call in expected["tool_calls"]],
            [_call(call) for call in got["tool_calls"]],
        )
    yield "error", bool(expected.get("error") or "error_json" in expected), got["error"] is not None
    if "usage" in expected:
        yield from _usage(expected["usage"], got)


def _call(call: dict[str, Any]) -> tuple[str, Any]:
    """Name and arguments; a value and its JSON text are the same arguments."""
    arguments = next(call[key] for key in ("arguments", "input", "args") if key in call)
    return call["name"], json.loads(arguments) if isinstance(arguments, str) else arguments


def _usage(expected: dict[str, Any] | None, got: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    usage = got["usage"]
    yield "usage told", expected is not None, usage is not None
    if expected is None or usage is None:
        return
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cache_read",
        "cache_write_tokens": "cache_write",
        "reasoning_tokens": "reasoning",
    }
    for name, key in names.items():
        if name in expected:
            yield f"usage.{key}", expected[name] or 0, usage[key] or 0
