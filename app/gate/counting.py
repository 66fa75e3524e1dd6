"""How many input tokens a call will have: counted here at once, or asked of the server where somebody has the time.

Per deployment the best counter there is: the model's own tokenizer (tiktoken for OpenAI's, a tokenizer file), the
server's own route, else our tokenizer weighed with what earlier calls taught. Texts are counted once and remembered
by hash, so a long history costs nothing at the next question, and nobody's words stay in memory for it.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.catalog.selectors import Target
from app.catalog.tokenizers import tokenizer
from app.gate.clients import COUNT_S, server_counter, server_of
from inference_client.adapters.kinds import kind_of
from inference_client.counting import Counted
from inference_client.errors import InferenceError
from inference_client.images import picture_tokens, rule_of
from inference_client.learned import Facts, Learned, facts_of
from inference_client.meter import Meter, request_facts
from inference_client.types import ChatRequest, ImagePart, Message

_SHORT = 40
"""Characters that are counted faster than looked up."""
_MOST_KNOWN = 16_384
_LONG = 12_000
"""Characters before the last message from which on that message is counted apart."""
_AROUND = 600
"""Tokens that makers of models write around a prompt with tools, at most."""
_PROBE = Message("user", "?")

_known: OrderedDict[tuple[str, int, int], Facts] = OrderedDict()
_lock = threading.Lock()


def text_facts(name: str, text: str) -> Facts:
    """The facts of a text by the tokenizer called `name`, remembered."""
    if len(text) <= _SHORT:
        return facts_of(text, tokenizer(name).count(text))
    # Python's own hash is keyed by a secret of this process, so nobody can make two texts share one.
    key = (name, len(text), hash(text))
    with _lock:
        if (found := _known.get(key)) is not None:
            _known.move_to_end(key)
            return found
    found = facts_of(text, tokenizer(name).count(text))
    with _lock:
        _known[key] = found
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return found


def texts_forget() -> None:
    """Count every text anew."""
    with _lock:
        _known.clear()


def meter_of(target: Target) -> Meter:
    """How prompts for this deployment are counted here."""
    return _meter(target.tokenizer, target.upstream_model, target.learned)


@lru_cache(256)
def _meter(name: str, model: str, learned: Learned) -> Meter:
    return Meter(tokenizer(name), model, learned)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was counted of a prompt as it goes out."""

    facts: Facts
    text: int
    """Tokens of all that is text, by our count and what it has learned."""
    pictures: int
    error_pct: float

    @property
    def expected(self) -> int:
        """The whole of it."""
        return self.text + self.pictures

    @property
    def least(self) -> float:
        """A server that reads less than this has not read all of it."""
        return self.text * (1 - min(90.0, 2 * self.error_pct + 5) / 100)

    @property
    def most(self) -> float:
        """One that says it read more counts what nobody sent, or counts it twice."""
        return self.text * (1 + max(25.0, 2 * self.error_pct + 5) / 100) + 2 * self.pictures + _AROUND


def prompt_sent(target: Target, request: ChatRequest) -> Sent:
    """The count of a prompt as it is sent; texts that were counted before cost nothing.

    Errors: InvalidRequest for pictures that cannot be read, Unsupported where none are taken.
    """
    meter, facts = meter_of(target), request_facts(request, lambda text: text_facts(target.tokenizer, text))
    pictures = messages_pictures(target, request.messages)
    return Sent(facts, meter.expected(facts), pictures, meter.error_pct(facts))


def messages_pictures(target: Target, messages: Sequence[Message]) -> int:
    """Input tokens of all pictures, by the rule that the maker published. Errors: as of `prompt_sent`."""
    parts = [
        part
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, ImagePart)
    ]
    if not parts:
        return 0
    return sum(picture_tokens(part, rule_of(kind_of(target.kind))) for part in parts)


async def prompt_asked(
    target: Target, messages: Sequence[Message], options: Mapping[str, Any]
) -> Counted | None:
    """The server's own count of a prompt, costing no tokens; None where it has none or does not answer in time.

    Never raises for what a server does. The long part before the last message is asked once, not at every word that
    is typed: a chat's last message is counted apart, which the marks between messages make exact.
    """
    counter = server_counter()
    server, parts = server_of(target), _parts(target, messages, options)
    try:
        async with asyncio.timeout(COUNT_S):
            return _sum([await counter.asked(server, part) for part in parts])
    except (TimeoutError, InferenceError, LookupError):
        return None


def prompt_remembered(
    target: Target, messages: Sequence[Message], options: Mapping[str, Any]
) -> Counted | None:
    """What `prompt_asked` found out before for this very prompt. Nobody is asked, nothing is waited for."""
    counter, server = server_counter(), server_of(target)
    try:
        return _sum([counter.remembered(server, part) for part in _parts(target, messages, options)])
    except (InferenceError, LookupError):
        return None


def _request(target: Target, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatRequest:
    return ChatRequest(
        model=target.upstream_model, messages=tuple(messages), max_output_tokens=1, **dict(options)
    )


def _parts(
    target: Target, messages: Sequence[Message], options: Mapping[str, Any]
) -> tuple[ChatRequest, ...]:
    """The prompt; or, where much stands before its last message: that with a probe, the message, the probe."""
    *before, last = messages
    whole = _request(target, messages, options)
    if last.role != "user" or sum(len(m.content) for m in before if isinstance(m.content, str)) < _LONG:
        return (whole,)
    alone = replace(whole, messages=(last,), tools=None)
    return replace(whole, messages=(*before, _PROBE)), alone, replace(alone, messages=(_PROBE,))


def _sum(told: Sequence[Counted | None]) -> Counted | None:
    """First and second less the third."""
    known = [counted for counted in told if counted is not None]
    if len(known) < len(told) or len(known) == 1:
        return known[0] if len(known) == len(told) else None
    whole, last, probe = known
    total = whole.input_tokens + last.input_tokens - probe.input_tokens
    return replace(whole, input_tokens=total)
