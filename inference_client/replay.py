"""Replays a recorded answer through the parsers, without a network.

A recording is NAME.meta.json (provider, api, mode; status, response_headers and body_file where they are known)
with the body beside it, byte for byte as the server sent it.
"""

import glob
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from inference_client.adapters.base import Parser
from inference_client.adapters.cohere import cohere_rerank
from inference_client.adapters.failures import failure
from inference_client.adapters.json_tools import obj, text_of
from inference_client.adapters.kinds import GENERIC, Kind, adapter_for, kind_of, parser_for
from inference_client.errors import InferenceError, MalformedAnswer, Unsupported
from inference_client.types import (
    Embeddings,
    Event,
    JsonObject,
    ReasoningDelta,
    TextDelta,
    Usage,
)

_NEEDED = ("provider", "api", "mode")
_STATUS_UNTOLD = {"error": 400}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorded response."""

    file: str
    provider: str
    api: str
    mode: str
    """stream, json or error."""
    status: int
    headers: JsonObject
    body: bytes = field(repr=False)
    expected: JsonObject = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class _Call:
    id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class UnreadableRecording(Exception):
    """A file that describes no recording; the message names it and says what it lacks."""


def recording_read(path: Path) -> Recording:
    """The recording described by the file at `path`. Raises UnreadableRecording."""
    meta = _meta(path)
    lacking = [name for name in _NEEDED if not isinstance(meta.get(name), str)]
    if lacking:
        raise UnreadableRecording(
            f"{path.name} describes no recording: it lacks {', '.join(lacking)}. Name the NAME.meta.json file that "
            "stands beside the answer's body."
        )
    status = meta.get("status")
    headers = obj(meta.get("response_headers"))
    return Recording(
        file=path.name,
        provider=meta["provider"],
        api=meta["api"],
        mode=meta["mode"],
        status=status if isinstance(status, int) else _STATUS_UNTOLD.get(meta["mode"], 200),
        headers={name.lower(): str(value) for name, value in headers.items()},
        body=_bytes(_body_path(path, meta), f", the body that {path.name} describes,"),
        expected=obj(meta.get("expected")),
    )


def replayed(recording: Recording, *, cuts: Iterable[int] = ()) -> dict[str, Any]:
    """What the parsers make of `recording`, cut into reads at the byte offsets `cuts` (ascending)."""
    result: dict[str, Any] = {
        "file": recording.file,
        "text": "",
        "reasoning": "",
        "tool_calls": [],
        "finish_reason": None,
        "finish": None,
        "usage": None,
        "usage_state": "absent",
        "served_model": None,
        "error": None,
    }
    try:
        if recording.status >= 400:
            raise failure(recording.status, recording.headers, recording.body)
        result |= _answer(recording, cuts)
    except InferenceError as exc:
        result["error"] = error_json(exc)
    return result


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = orjson.loads(_bytes(path))
    except orjson.JSONDecodeError:
        raise UnreadableRecording(f"{path.name} is not JSON, so it describes no recording.") from None
    if not isinstance(meta, dict):
        raise UnreadableRecording(f"{path.name} holds no JSON object, so it describes no recording.")
    return meta


def _body_path(path: Path, meta: Mapping[str, Any]) -> Path:
    """The file the recording names, else the one beside it that has its name with another ending."""
    if named := text_of(meta.get("body_file")):
        return path.parent / named
    stem = path.name.removesuffix(".meta.json")
    beside = sorted(other for other in path.parent.glob(f"{glob.escape(stem)}.*") if other != path)
    return beside[0] if beside else path.with_name(stem)


def _bytes(path: Path, what: str = "") -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UnreadableRecording(f"{path}{what} cannot be read: {exc.strerror}.") from None


def error_json(exc: InferenceError) -> dict[str, Any]:
    """A failure for printing: our class, and what the server said."""
    return {
        "class": type(exc).__name__,
        "message": exc.upstream or exc.message,
        "code": exc.code,
        "status": exc.status,
        "retryable": exc.retryable,
    }


def usage_json(usage: Usage) -> dict[str, Any] | None:
    """The usage for printing; None where the server told nothing."""
    if usage.state == "absent":
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "ambiguous": usage.ambiguous,
        "detail": dict(usage.detail),
    }


def _answer(recording: Recording, cuts: Iterable[int]) -> dict[str, Any]:
    if recording.api == "rerank":
        ranks = cohere_rerank(recording.body)
        return {"order": [number for number, _ in ranks], "scores": [score for _, score in ranks]}
    if "embed" in recording.api.lower():
        found = _embeddings(recording)
        return {
            "vectors": len(found.vectors),
            "dimensions": len(found.vectors[0]) if found.vectors else 0,
            "first3": found.vectors[0][:3] if found.vectors else [],
            "usage": usage_json(found.usage),
            "usage_state": found.usage.state,
            "served_model": found.served_model,
        }
    parser = parser_for(recording.api, recording.provider)
    if parser is None:
        raise Unsupported(
            f"Answers of the API {recording.api!r} of {recording.provider!r} cannot be read yet."
        )
    parser.on_headers(recording.headers)
    events = parser.whole(recording.body) if _is_whole(recording) else _streamed(parser, recording.body, cuts)
    usage = parser.usage()
    return {
        **_joined(events),
        "finish_reason": parser.finish_raw,
        "finish": parser.finish_reason,
        "usage": usage_json(usage),
        "usage_state": usage.state,
        "served_model": parser.served_model,
        "error": error_json(parser.error) if parser.error is not None else None,
        "complete": parser.complete,
    }


def _embeddings(recording: Recording) -> Embeddings:
    """Read as its provider's own, else in the OpenAI shape, which many speak beside theirs."""
    kind = _kind(recording.provider)
    try:
        return adapter_for(kind).embeddings(recording.body, kind, None, recording.headers)
    except (MalformedAnswer, Unsupported):
        return adapter_for(GENERIC).embeddings(recording.body, GENERIC, None, recording.headers)


def _kind(provider: str) -> Kind:
    try:
        return kind_of(provider)
    except LookupError:
        return GENERIC


def _is_whole(recording: Recording) -> bool:
    """Some streams were noted as `json` because the recorder saw no stream flag, and the other way round."""
    first = recording.body.lstrip()[:1]
    return first == b"[" or (first == b"{" and (recording.mode == "json" or not _lines(recording)))


def _lines(recording: Recording) -> bool:
    """Whether the body is lines of JSON rather than one value."""
    return "application/json" not in recording.headers.get("content-type", "application/json") or (
        b"\n{" in recording.body.strip()
    )


def _streamed(parser: Parser, body: bytes, cuts: Iterable[int]) -> list[Event]:
    events: list[Event] = []
    start = 0
    for cut in (*cuts, len(body)):
        events += parser.feed(body[start:cut])
        start = cut
    return events + parser.flush()


def _joined(events: Iterable[Event]) -> dict[str, Any]:
    text: list[str] = []
    reasoning: list[str] = []
    calls: dict[int, _Call] = {}
    for event in events:
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            reasoning.append(event.text)
        else:
            call = calls.setdefault(event.index, _Call())
            call.id = call.id or event.id
            call.name = call.name or event.name or ""
            call.arguments.append(event.arguments)
    return {
        "text": "".join(text),
        "reasoning": "".join(reasoning),
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": "".join(call.arguments)}
            for call in calls.values()
        ],
    }
