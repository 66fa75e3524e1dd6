"""What a recording says it holds beside what the parsers made of it."""

import json
from collections.abc import Iterator
from typing import Any

from inference_client.replay import Recording


def facts(recording: Recording, got: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, expected, got) of every fact that the recording knows; `got` is what `replayed` gave."""
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
