"""`POST /v1/chat/completions`: the same turn in OpenAI's shape, for any OpenAI client."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import orjson

from app.accounts.selectors import Caller
from app.api.errors import openai_error_body
from app.api.stream.http import Request, Responder, as_uuid, typed
from app.api.stream.openai_params import ignored, messages_of, options_of, refuse_unsupported
from app.api.stream.turns import positive
from app.chat.asking import ask_with_messages
from app.chat.events import TurnEvent
from app.chat.runs import Run, runs
from app.chat.turn import take_turn
from app.chat.types import Ask
from app.common.db import read_db, run_db
from app.common.errors import InvalidInput
from app.common.models import uuid7
from app.gate.rates import headers as rate_headers

SHORT_BODY_BYTES = 64 * 1024
_FINISH = {"stopped": "stop", "interrupted": "stop"}


async def chat_completions(request: Request, respond: Responder, caller: Caller) -> None:
    """One call, streamed or not. Leaving or closing the connection stops the turn."""
    body = await request.json()
    caller.require_scope("chat")
    # Everything that may be refused is read before the turn begins: a refused call must not be asked and billed.
    streamed = typed(body, "stream", bool, "true or false")
    options = typed(body, "stream_options", dict, "an object") or {}
    # Pictures and long texts take their time to read; nobody else's stream waits for that.
    gather = read_db if len(await request.body()) <= SHORT_BODY_BYTES else run_db
    ask = await gather(_ask, caller, body, request.id)
    run = runs().start(ask.turn_id, lambda run: take_turn(ask, run), replayable=False)
    run.log.read_whole = not streamed
    leaving = asyncio.ensure_future(_stop_when_gone(request, run))
    headers = {"x-tessera-ignored": ", ".join(names)} if (names := ignored(body)) else {}
    try:
        if streamed:
            await _stream(respond, run, ask, headers, include_usage=bool(options.get("include_usage")))
        else:
            await _whole(respond, run, ask, headers)
    finally:
        _rated(respond, run)
        leaving.cancel()
        # However this request ends, nobody else reads the answer; a turn that has ended does not mind.
        run.signal.stop("stopped")


def _ask(caller: Caller, body: Mapping[str, Any], request_id: str) -> Ask:
    refuse_unsupported(body)
    messages = messages_of(body)
    if not any(m.role == "user" for m in messages):
        raise InvalidInput(
            "`messages` needs at least one message of role user.", detail={"field": "messages"}
        )
    collections = typed(body, "collections", list, "a list of collection ids")
    return ask_with_messages(
        caller=caller,
        turn_id=uuid7(),
        request_id=request_id,
        model=typed(body, "model", str, "a model's name") or "",
        messages=messages,
        collections=None if collections is None else [as_uuid(c, "collections") for c in collections],
        max_output_tokens=positive(dict(body), "max_completion_tokens") or positive(dict(body), "max_tokens"),
        options=options_of(body),
    )


async def _stop_when_gone(request: Request, run: Run) -> None:
    await request.gone()
    run.signal.stop("stopped")


class _Answer:
    """What the events of a turn add up to, in OpenAI's words."""

    def __init__(self, ask: Ask) -> None:
        self.head = {"id": f"chatcmpl-{ask.turn_id.hex}", "created": int(time.time()), "model": ask.model}
        self.turn_id = str(ask.turn_id)
        self.sources: list[dict[str, Any]] = []
        self.notices: list[Any] = []
        self.usage: Mapping[str, Any] | None = None
        self.finish: str | None = None

    def take(self, event: TurnEvent) -> None:
        """Note whatever is not a delta."""
        match event.name:
            case "turn":
                self.notices += event.data["notices"]
            case "notice":
                self.notices.append(event.data)
            case "sources":
                self.sources = event.data["items"]
            case "usage":
                self.usage = event.data
            case "done":
                reason = event.data["finish_reason"]
                self.finish = _FINISH.get(reason, reason)

    def annotations(self) -> list[dict[str, Any]]:
        """Sources as file citations."""
        return [
            {"type": "file_citation", "index": s["n"], "file_id": s["document_id"], "filename": s["title"]}
            for s in self.sources
        ]

    def own(self) -> dict[str, Any]:
        """What OpenAI's shape has no place for."""
        price = self.usage.get("price") if self.usage else None
        return {"turn_id": self.turn_id, "sources": self.sources, "price": price, "notices": self.notices}

    def usage_block(self) -> dict[str, Any] | None:
        """OpenAI's usage object; None while nothing is known."""
        known = self.usage
        if known is None or known["input_tokens"] is None:
            return None
        return {
            "prompt_tokens": known["input_tokens"],
            "completion_tokens": known["output_tokens"],
            "total_tokens": known["input_tokens"] + known["output_tokens"],
            "prompt_tokens_details": {"cached_tokens": known["cached_input_tokens"]},
            "completion_tokens_details": {"reasoning_tokens": known["reasoning_tokens"]},
        }


async def _whole(respond: Responder, run: Run, ask: Ask, headers: Mapping[str, str]) -> None:
    answer = _Answer(ask)
    tools: dict[int, dict[str, Any]] = {}
    async for batch in run.log.follow():
        for event in batch:
            if event.name == "delta" and "tool" in event.data:
                _join_tool(tools, event.data["tool"])
            answer.take(event)
    if run.failure is not None:
        raise run.failure.as_error()
    message: dict[str, Any] = {"role": "assistant", "content": run.log.text or (None if tools else "")}
    if run.log.reasoning:
        message["reasoning_content"] = run.log.reasoning
    if tools:
        message["tool_calls"] = [tools[index] for index in sorted(tools)]
    if answer.sources:
        message["annotations"] = answer.annotations()
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    body = {
        **answer.head,
        "object": "chat.completion",
        "choices": [choice],
        "usage": answer.usage_block(),
        "tessera": answer.own(),
    }
    _rated(respond, run)
    await respond.json(200, body, headers)


def _rated(respond: Responder, run: Run) -> None:
    """Say how the rate limits stood when this call was counted, whether it is answered or refused, and the time."""
    respond.timing = run.stages()
    respond.extra |= rate_headers(run.rates or ())


def _join_tool(tools: dict[int, dict[str, Any]], piece: Mapping[str, Any]) -> None:
    call = tools.setdefault(
        piece["index"], {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = call["id"] or piece["id"]
    call["function"]["name"] += piece["name"] or ""
    call["function"]["arguments"] += piece["arguments"]


async def _stream(
    respond: Responder, run: Run, ask: Ask, headers: Mapping[str, str], *, include_usage: bool
) -> None:
    answer = _Answer(ask)
    chunk = _Chunks(answer.head, include_usage=include_usage)
    async for batch in run.log.follow():
        out: list[bytes] = []
        for event in batch:
            if event.name == "delta":
                out.append(chunk.delta(event.data))
            elif event.name == "error":
                if run.failure is not None and not respond.started:
                    await _ended(run)
                    raise run.failure.as_error()
                out.append(_error_chunk(run, ask))
            else:
                answer.take(event)
                if event.name == "done":
                    out += chunk.last(answer)
        if out and not respond.started:
            _rated(respond, run)
            await respond.stream(headers)
        if out:
            await respond.write(b"".join(out))
    await respond.end()


async def _ended(run: Run) -> None:
    if run.task is not None:
        await asyncio.shield(run.task)


def _error_chunk(run: Run, ask: Ask) -> bytes:
    assert run.failure is not None
    _, body, _ = openai_error_body(run.failure.as_error(), ask.request_id)
    return error_end(body)


def error_end(body: Mapping[str, Any]) -> bytes:
    """The last chunks of a stream that ends with an error."""
    return b"data: " + orjson.dumps(body) + b"\n\ndata: [DONE]\n\n"


class _Chunks:
    """`chat.completion.chunk` objects; the frame around a plain piece of text is encoded once a call."""

    def __init__(self, head: Mapping[str, Any], *, include_usage: bool) -> None:
        self._head = {**head, "object": "chat.completion.chunk"}
        self._include_usage = include_usage
        extra = {"usage": None} if include_usage else {}
        frame = orjson.dumps(
            {
                **self._head,
                **extra,
                "choices": [{"index": 0, "delta": {"content": "\x01"}, "finish_reason": None}],
            }
        )
        self._before, self._after = frame.split(b'"\\u0001"')
        self._first = True

    def delta(self, data: Mapping[str, Any]) -> bytes:
        """A piece of text, reasoning or a tool call."""
        if "text" in data and not self._first:
            return b"data: " + self._before + orjson.dumps(data["text"]) + self._after + b"\n\n"
        if "text" in data:
            delta: dict[str, Any] = {"content": data["text"]}
        elif "reasoning" in data:
            delta = {"reasoning_content": data["reasoning"]}
        else:
            piece = data["tool"]
            function = {"name": piece["name"], "arguments": piece["arguments"]}
            delta = {
                "tool_calls": [
                    {"index": piece["index"], "id": piece["id"], "type": "function", "function": function}
                ]
            }
        if self._first:
            self._first = False
            delta = {"role": "assistant", **delta}
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def last(self, answer: _Answer) -> list[bytes]:
        """The finish chunk with sources, the usage chunk for who asked for it, and the end mark."""
        delta = {"annotations": answer.annotations()} if answer.sources else {}
        out = [
            self._chunk([{"index": 0, "delta": delta, "finish_reason": answer.finish}], tessera=answer.own())
        ]
        if self._include_usage:
            out.append(self._chunk([], usage=answer.usage_block()))
        return [*out, b"data: [DONE]\n\n"]

    def _chunk(self, choices: list[dict[str, Any]], **extra: Any) -> bytes:
        usage = {"usage": None} if self._include_usage else {}
        return b"data: " + orjson.dumps({**self._head, "choices": choices, **usage, **extra}) + b"\n\n"
