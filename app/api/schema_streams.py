"""The stream routes in OpenAPI terms. OpenAPI 3.0 cannot say what a stream holds, so each event has a component."""

from collections.abc import Mapping
from typing import Any

_TEXT = {"type": "string"}
_NULL_TEXT = {"type": "string", "nullable": True}
_WHOLE = {"type": "integer", "nullable": True}
_ANY = {"type": "object", "additionalProperties": True}
_MONEY = {"allOf": [{"$ref": "#/components/schemas/Money"}], "nullable": True}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _array(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _choice(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_ATTACHMENT = _object(
    document_id=_TEXT,
    name=_TEXT,
    status=_TEXT,
    way={**_choice("whole", "searched", "picture"), "nullable": True},
    tokens=_WHOLE,
    error=_NULL_TEXT,
)

EVENTS: Mapping[str, Any] = {
    "EventTurn": _object(
        turn_id=_TEXT,
        conversation_id=_NULL_TEXT,
        parent_id=_NULL_TEXT,
        model=_TEXT,
        payer=_object(team_id=_TEXT, name=_TEXT),
        attachments=_array(_ATTACHMENT),
        estimate=_ANY,
        notices=_array(_ANY),
    )
    | {"description": "Event `turn`: the first one."},
    "EventNotice": _object(code=_TEXT, message=_TEXT)
    | {"description": "Event `notice`: trimmed, cap lowered, fallback, demonstration model, …"},
    "EventStatus": _object(phase=_choice("queued", "retrieving", "waiting", "generating"))
    | {"description": "Event `status`."},
    "EventSources": _object(
        items=_array(
            _object(
                n={"type": "integer"},
                passage_id=_TEXT,
                document_id=_TEXT,
                title=_TEXT,
                page=_WHOLE,
                heading=_TEXT,
                start=_WHOLE,
                end=_WHOLE,
                text=_TEXT,
                score={"type": "number"},
            )
        )
    )
    | {"description": "Event `sources`: the passages that were sent, by number."},
    "EventQuotes": _object(items=_array(_object(n={"type": "integer"}, text=_TEXT, score={"type": "number"})))
    | {"description": "Event `quotes`: sentences of the passages, word for word."},
    "EventMatches": _object(
        items=_array(_object(n={"type": "integer"}, text=_TEXT, score={"type": "number"}))
    )
    | {"description": "Event `matches`: unmarked sentences that a passage says in nearly the same words."},
    "EventDelta": _object(text=_TEXT, reasoning=_TEXT, tool=_ANY)
    | {"description": "Event `delta`: one of text, reasoning, tool."},
    "EventUsage": _object(
        input_tokens=_WHOLE,
        output_tokens=_WHOLE,
        cached_input_tokens=_WHOLE,
        reasoning_tokens=_WHOLE,
        estimated={"type": "boolean", "nullable": True},
        price=_MONEY,
    )
    | {"description": "Event `usage`: before the end, once a model was called."},
    "EventDone": _object(finish_reason=_choice("stop", "length", "stopped", "interrupted", "content_filter"))
    | {"description": "Event `done`: one of the two ends."},
    "EventError": _object(
        code=_TEXT,
        message=_TEXT,
        detail=_ANY,
        retryable={"type": "boolean"},
        retry_after={"type": "number", "nullable": True},
    )
    | {"description": "Event `error`: the other end."},
}
_EVENT = {
    "type": "object",
    "description": "One event of the stream as text/event-stream has it; `data` is JSON.",
    "properties": {
        "id": {"type": "string", "description": "A number that grows by one. The last event may have none."},
        "event": _choice(*(name.removeprefix("Event").lower() for name in EVENTS)),
        "data": _TEXT,
    },
    "required": ["event", "data"],
}
_DOCUMENT_EVENT = _EVENT | {
    "description": "One event about a document as text/event-stream has it; `data` is JSON.",
    "properties": {
        "id": {"type": "string", "description": "The moment, in milliseconds since 1970."},
        "event": _choice("following", "document", "removed", "done", "error"),
        "data": _TEXT,
    },
}
COMPONENTS: Mapping[str, Any] = {**EVENTS, "StreamEvent": _EVENT, "DocumentEvent": _DOCUMENT_EVENT}

_DOCUMENT_STREAM = {
    "description": "Events `document` with a Document as data, as often as it changes; `removed` with {id}; for a "
    "single document then `done` with {status}; for a collection first `following` with its {id}. `id` is the moment "
    "in milliseconds; a comment comes every 15 s.",
    "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/DocumentEvent"}}},
}
_STREAM = {
    "description": "Events `turn`, `notice`, `status`, `sources`, `quotes`, `delta`, `matches`, `usage`, then one of "
    "`done` and `error`; data as in the components Event…. `id` increases; a comment comes every 15 s.",
    "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/StreamEvent"}}},
}
_REFUSED = {
    "description": "Refused.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def _json(schema: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _parameter(name: str, place: str, schema: Mapping[str, Any] = _TEXT, words: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": dict(schema),
        "description": words,
    }


_KEY = _parameter(
    "Idempotency-Key", "header", words="Again with the same body: the same turn, its events from the start."
)
_UUID = {"type": "string", "format": "uuid"}
_ASK = {
    "text": _TEXT,
    "model": _TEXT,
    "collections": {"type": "array", "items": _UUID, "nullable": True, "description": "[]: no retrieval."},
    "attachments": {
        "type": "array",
        "items": _UUID,
        "description": "Documents of this conversation that go along from here on, beside those of the branch.",
    },
    "parent": {
        "type": "string",
        "nullable": True,
        "description": "The turn to go on from; null: a new root.",
    },
}


def _operation(operation_id: str, tag: str, summary: str, **rest: Any) -> dict[str, Any]:
    return {
        "operationId": operation_id,
        "tags": [tag],
        "summary": summary,
        "security": [{"apiKey": []}, {"cookieAuth": []}],
    } | rest


def _body(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties), "required": required}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


STREAM_PATHS: Mapping[str, Any] = {
    "/api/v1/precount/": {
        "post": _operation(
            "precount",
            "precount",
            "What a message will take and cost, before it is sent. Never embeds or searches.",
            requestBody=_body(_ASK | {"conversation": _UUID, "assistant": _UUID}, ["text"]),
            responses={
                "200": _json(
                    _object(
                        tokenizer=_TEXT,
                        counted_by=_choice("tessera", "server"),
                        accuracy=_object(kind=_choice("exact", "estimated"), error_pct={"type": "integer"}),
                        input_tokens=_ANY,
                        max_output_tokens={"type": "integer"},
                        left_out=_array(_TEXT),
                        price=_object(low=_MONEY, expected=_MONEY, high=_MONEY),
                        time={"type": "object", "nullable": True},
                        attachments=_array(_ATTACHMENT),
                        limits=_array(_ANY),
                        verdict=_choice("ok", "capped", "refused"),
                        reason={"type": "object", "nullable": True},
                    )
                ),
                "default": _REFUSED,
            },
        )
    },
    "/api/v1/conversations/{conversation_id}/turns/": {
        "post": _operation(
            "turns_create",
            "conversations",
            "Ask.",
            parameters=[_parameter("conversation_id", "path", _UUID), _KEY],
            requestBody=_body(
                _ASK
                | {
                    "stream": {"type": "boolean", "description": "false: the answer as one JSON."},
                    "background": {"type": "boolean"},
                },
                ["text"],
            ),
            responses={
                "200": _STREAM
                | {
                    "content": _STREAM["content"] | _json({"$ref": "#/components/schemas/Message"})["content"]
                },
                "202": _json(_object(id=_TEXT, status=_TEXT), "With `background`: Location names the turn."),
                "default": _REFUSED,
            },
        )
    },
    "/api/v1/turns/{turn_id}/events/": {
        "get": _operation(
            "turns_events",
            "turns",
            "The events of a turn, after Last-Event-ID.",
            parameters=[_parameter("turn_id", "path", _UUID), _parameter("Last-Event-ID", "header")],
            responses={"200": _STREAM, "default": _REFUSED},
        )
    },
    "/api/v1/turns/{turn_id}/stop/": {
        "post": _operation(
            "turns_stop",
            "turns",
            "End a running turn, in whichever process it runs; what was written is kept.",
            parameters=[_parameter("turn_id", "path", _UUID)],
            responses={"202": _json(_object(state=_TEXT)), "default": _REFUSED},
        )
    },
    "/api/v1/documents/{document_id}/events/": {
        "get": _operation(
            "documents_events",
            "documents",
            "The document now and whenever it changes, until it is ready, failed or cancelled.",
            parameters=[_parameter("document_id", "path", _UUID)],
            responses={"200": _DOCUMENT_STREAM, "default": _REFUSED},
        )
    },
    "/api/v1/collections/{collection_id}/events/": {
        "get": _operation(
            "collections_events",
            "collections",
            "What is being read in a collection, what changes and what is removed, for as long as one listens; with "
            "Last-Event-ID, or `after`, also what changed since.",
            parameters=[
                _parameter("collection_id", "path", _UUID),
                _parameter("Last-Event-ID", "header"),
                _parameter("after", "query", words="The same, for readers that cannot send headers."),
            ],
            responses={"200": _DOCUMENT_STREAM, "default": _REFUSED},
        )
    },
}
