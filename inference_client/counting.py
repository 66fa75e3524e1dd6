"""How many input tokens a call will have: asked of the server that will bill it, else counted here with a band.

Asking costs no tokens, but a little time: it is bounded, remembered, and after a failure not tried again at once.
"""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, TypeAlias

from inference_client.adapters.counts import count_read, count_request
from inference_client.adapters.kind import Counting, Kind
from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.adapters.requests import has_picture
from inference_client.adapters.wire import WireRequest
from inference_client.errors import (
    ContentBlocked,
    ContextTooLong,
    InferenceError,
    InvalidRequest,
    Unsupported,
)
from inference_client.images import picture_tokens, request_fitted, rule_of
from inference_client.learned import UNLEARNED, Learned
from inference_client.meter import Meter, request_facts
from inference_client.outgoing import Outgoing, answer_of
from inference_client.pool import Pool
from inference_client.servers import Server
from inference_client.tokens import TokenCounter, counter_for
from inference_client.types import ChatRequest, ImagePart

Source: TypeAlias = Literal["server", "local"]
_OF_THE_REQUEST = (InvalidRequest, ContextTooLong, ContentBlocked, Unsupported)
"""Refusals that tell nothing of the server: the next prompt is asked again."""
_TOOLS_PCT = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A prompt's length before the call."""

    input_tokens: int
    error_pct: float
    """The server's figure is not more than this many percent higher, in 19 of 20 cases; 0 where it is exact."""
    source: Source
    counter: str
    """Who counted: the kind of server, or the name of a tokenizer."""

    @property
    def upper(self) -> int:
        """What to reserve."""
        return self.input_tokens + -int(-self.input_tokens * self.error_pct // 100)


class ServerCounter:
    """Asks servers for counts. One per event loop; close it with `aclose`."""

    def __init__(
        self,
        *,
        limit_s: float = 1.0,
        remembered: int = 512,
        rest_s: float = 30.0,
        known: "OrderedDict[bytes, int] | None" = None,
    ) -> None:
        """`limit_s` for one count, `remembered` prompts (their hashes), `rest_s` after a server failed.

        `known` is a memory that outlives this counter, and that counters of other loops may share.
        """
        self._pool = Pool()
        self._limit_s = limit_s
        self._remembered = remembered
        self._rest_s = rest_s
        self._known: OrderedDict[bytes, int] = OrderedDict() if known is None else known
        self._resting: dict[tuple[str, str], float] = {}

    async def count(
        self,
        server: Server,
        request: ChatRequest,
        *,
        local: TokenCounter | None = None,
        learned: Learned = UNLEARNED,
    ) -> Counted:
        """The length of the prompt of `request`; never raises for what a server does.

        `local` and `learned` are for when the server cannot say. Raises InvalidRequest for unreadable pictures.
        """
        found = await self.asked(server, request)
        if found is None:
            meter = Meter(local or counter_for(request.model), request.model, learned)
            return await asyncio.to_thread(counted_here, request, kind_of(server.kind), meter)
        return found

    async def asked(self, server: Server, request: ChatRequest) -> Counted | None:
        """The server's own figure, or None where it has none to give now. Raises as `count` does."""
        kind = kind_of(server.kind)
        found = await self._asked(server, kind, request)
        return None if found is None else _told(kind, request, found)

    def remembered(self, server: Server, request: ChatRequest) -> Counted | None:
        """What the server said of this very prompt before; nobody is asked. None for prompts with pictures."""
        kind = kind_of(server.kind)
        if kind.counts is None or any(map(has_picture, request.messages)):
            return None
        found = self._known.get(_key(count_request(adapter_for(kind), server, kind, request)))
        return None if found is None else _told(kind, request, found)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def _asked(self, server: Server, kind: Kind, request: ChatRequest) -> int | None:
        """The server's figure, or None where it has none to give now."""
        place = (server.base_url, kind.name)
        now = asyncio.get_running_loop().time()
        if kind.counts is None or self._resting.get(place, 0.0) > now:
            return None
        try:
            wire = await _question(server, kind, kind.counts, request)
            key = _key(wire)
            if (told := self._known.get(key)) is None:
                transport = self._pool.transport(server, kind)
                async with asyncio.timeout(self._limit_s):
                    ready = await Outgoing(wire).ready(transport, self._limit_s)
                    told = count_read(await answer_of(transport, ready, self._limit_s))
        except _OF_THE_REQUEST:
            return None
        except (InferenceError, TimeoutError):
            self._resting[place] = now + self._rest_s
            return None
        self._known[key] = told
        self._known.move_to_end(key)
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return told


async def _question(server: Server, kind: Kind, way: Counting, request: ChatRequest) -> WireRequest:
    """What to ask. Pictures are fitted as for the call, in a thread, where the server counts them too."""
    adapter = adapter_for(kind)
    if way.text_only or not any(map(has_picture, request.messages)):
        return count_request(adapter, server, kind, request)
    return await asyncio.to_thread(
        lambda: count_request(adapter, server, kind, request_fitted(request, kind))
    )


def _told(kind: Kind, request: ChatRequest, found: int) -> Counted:
    assert kind.counts is not None
    pictures = _pictures(request, kind) if kind.counts.text_only else 0
    total = found + pictures
    error = kind.counts.error_pct + (100.0 * pictures / total if pictures else 0.0)
    return Counted(input_tokens=total, error_pct=error, source="server", counter=kind.name)


def counted_here(request: ChatRequest, kind: Kind, meter: Meter) -> Counted:
    """The prompt counted on our side: text, tools, pictures and the frame that a template puts around messages.

    Raises InvalidRequest for pictures that cannot be read, Unsupported for pictures where none are taken.
    """
    pictures, facts = _pictures(request, kind), request_facts(request, meter.facts)
    # How a server writes tools into the prompt, nobody publishes.
    error = max(meter.error_pct(facts), _TOOLS_PCT if request.tools else 0.0)
    return Counted(
        input_tokens=meter.expected(facts) + pictures,
        error_pct=error,
        source="local",
        counter=meter.counter.name,
    )


def _pictures(request: ChatRequest, kind: Kind) -> int:
    found = [
        part
        for message in request.messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, ImagePart)
    ]
    return sum(picture_tokens(part, rule_of(kind)) for part in found)


def _key(wire: WireRequest) -> bytes:
    """A prompt is remembered by its hash, never by its text."""
    asked = wire.first.request if wire.first is not None else wire
    return hashlib.sha256(f"{asked.url}\n".encode() + asked.body).digest()
