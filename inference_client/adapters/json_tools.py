"""Reading JSON that a stranger wrote: helpers that give an empty value instead of an error. No IO."""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from inference_client.errors import MalformedAnswer
from inference_client.types import Json


def json_value(data: bytes) -> Json:
    """`data` as JSON. A broken character inside it becomes U+FFFD rather than costing the answer.

    Raises MalformedAnswer.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8", "replace")
    try:
        return _scrubbed(json.loads(text))
    except (ValueError, RecursionError) as exc:
        raise MalformedAnswer(code="not_json", upstream=text) from exc


def json_object(data: bytes) -> dict[str, Any]:
    """`data` as a JSON object. Raises MalformedAnswer."""
    # As json_value, without the way through it: this is done for every event of a stream.
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = json_value(data)
    if not isinstance(value, dict):
        raise MalformedAnswer(code="not_an_object")
    return value


def json_objects(data: bytes) -> list[dict[str, Any]]:
    """`data` as objects: one, or a list of them, as some servers wrap theirs. Raises MalformedAnswer."""
    value = json_value(data)
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in found):
        raise MalformedAnswer(code="not_an_object")
    return found


def obj(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one: a missing branch and a null one read alike."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dumped(value: object) -> str:
    """`value` as JSON text; a string is taken to be that already."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def text_of(value: object) -> str | None:
    """`value` if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def seconds(value: object, *, per_second: float) -> float | None:
    """A server's own measure of time, told in `per_second` parts of a second; None when it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < per_second * 1e6:
        return None
    return value / per_second


def _scrubbed(value: object) -> object:
    """Half surrogate pairs cannot be stored or sent on, so they become U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items()}
    return value
