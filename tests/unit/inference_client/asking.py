"""What a kind of server would be sent, as a value."""

from typing import Any

import orjson

from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.servers import Server
from inference_client.types import ChatRequest, EmbedRequest, Message

PLAIN_TALK = (Message("system", "Be brief."), Message("user", "Hi."), Message("assistant", "Yes?"))
FULL = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ("a", "b")}


def sent(kind: str, *, base: str = "http://h:1", options: Any = None, key: str = "k", **fields: Any) -> Any:
    row = kind_of(kind)
    given: dict[str, Any] = {"model": "m/x:1", "messages": PLAIN_TALK, "max_output_tokens": 50}
    server = Server(kind=kind, base_url=base, api_key=key, options=options or {})
    wire = adapter_for(row).chat_request(server, row, ChatRequest(**(given | fields)))
    return wire, orjson.loads(wire.body)


def embed_sent(kind: str, *, options: Any = None, **fields: Any) -> Any:
    row = kind_of(kind)
    server = Server(kind=kind, base_url="http://h:1", api_key="k", options=options or {})
    wire = adapter_for(row).embed_request(server, row, EmbedRequest(model="e/1", inputs=("a",), **fields))
    return wire, orjson.loads(wire.body)
