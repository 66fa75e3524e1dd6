"""Answers made by hand, and the parser of a route."""

from typing import Any

import orjson

from inference_client.adapters.base import Parser
from inference_client.adapters.kinds import GENERIC, parser_for


def parser(api: str, kind: str = GENERIC.name) -> Parser:
    made = parser_for(api, kind)
    assert made is not None
    return made


def sse(*values: Any) -> bytes:
    return b"".join(b"data: " + orjson.dumps(value) + b"\n\n" for value in values)


def lines(*values: Any) -> bytes:
    return b"".join(orjson.dumps(value) + b"\n" for value in values)


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def call(**fields: Any) -> dict[str, Any]:
    return {"function": fields}
