"""What each wire format sends for one and the same conversation, kept as a file to be looked at.

python -m tests.unit.inference_client.golden NAME…    write the files of these adapters; look at them before keeping
"""

import json
import sys
from pathlib import Path
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.counts import count_request
from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.wire import WireRequest
from inference_client.errors import Unsupported
from inference_client.servers import Server
from inference_client.types import ChatRequest, EmbedRequest, ImagePart, Message, TextPart, ToolCall

GOLDENS = Path(__file__).parent / "goldens"
_TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}},
}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
_CALLS = (ToolCall("c1", "now", '{"zone":"UTC"}'), ToolCall("c2", "now", "{}"))


def path_of(adapter: Adapter) -> Path:
    return GOLDENS / f"{adapter.name}.json"


def given_of(adapter: Adapter) -> dict[str, Any]:
    """What the file says is asked: `embed_model`, where the model's name matters."""
    path = path_of(adapter)
    found: dict[str, Any] = json.loads(path.read_text())["given"] if path.exists() else {}
    return {"embed_model": "e", **found}


def sent_of(adapter: Adapter, given: dict[str, Any]) -> dict[str, Any]:
    """The requests of the adapter's first kind: a chat with everything it takes, vectors, a count."""
    kind = adapter.kinds[0]
    server = Server(kind=kind.name, base_url="http://h:1", api_key="sesame")
    chat = _chat(adapter)
    wire = adapter.chat_request(server, kind, chat)
    found = {"chat": _shown(wire)}
    if wire.first is not None:
        found["first"] = _shown(wire.first.request)
    try:
        inputs = EmbedRequest(model=given["embed_model"], inputs=("one",), input_type="query")
        found["embed"] = _shown(adapter.embed_request(server, kind, inputs))
    except Unsupported as exc:
        found["embed"] = {"refused": exc.message}
    if kind.counts is not None:
        found["count"] = _shown(count_request(adapter, server, kind, chat))
    return found


def _chat(adapter: Adapter) -> ChatRequest:
    kind = adapter.kinds[0]
    wanted: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": ("END",),
        "tools": (_TOOL,),
        "tool_choice": "required",
        "response_format": _SCHEMA,
    }
    fields = {name: value for name, value in wanted.items() if name not in kind.refuses}
    question: tuple[Any, ...] = (TextPart("What is this?"),)
    if kind.images is not None:
        question += (ImagePart(b"\x89PNG", "image/png"),)
    messages = [Message("system", "Be brief."), Message("user", question)]
    if "tools" in fields:
        messages.append(Message("assistant", "", tool_calls=_CALLS))
        messages += [Message("tool", "12:00", tool_call_id=call.id) for call in _CALLS]
    messages += [Message("assistant", "Noon."), Message("user", "Thanks.")]
    return ChatRequest(model="m/x:1", messages=tuple(messages), max_output_tokens=4711, **fields)


def _shown(wire: WireRequest) -> dict[str, Any]:
    return {"url": wire.url, "headers": wire.headers, "body": orjson.loads(wire.body)}


def main(names: list[str]) -> None:
    for name in names:
        given = given_of(ADAPTERS[name])
        text = json.dumps({"given": given, "sent": sent_of(ADAPTERS[name], given)}, indent=2)
        path_of(ADAPTERS[name]).write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
