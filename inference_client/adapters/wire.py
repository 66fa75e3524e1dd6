"""A request ready to be sent."""

from collections.abc import Callable
from typing import NamedTuple


class WireRequest(NamedTuple):
    """A request ready to be sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    first: "FirstStep | None" = None
    """Something to ask before, where the server itself must turn messages into a prompt."""


class FirstStep(NamedTuple):
    """A request whose answer completes the next one. It calls no model, so it costs nothing."""

    request: WireRequest
    body: Callable[[bytes], bytes]
    """From the answer's body the body of the next request. Raises MalformedAnswer."""
