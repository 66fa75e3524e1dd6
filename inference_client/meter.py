"""How the prompts of one model are counted on our side: by which tokenizer, and by which experience. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import orjson

from inference_client.adapters.requests import plain
from inference_client.learned import UNLEARNED, Facts, Learned, facts_of, joined
from inference_client.tokens import TokenCounter
from inference_client.types import ChatRequest, Message

FactsOf = Callable[[str], Facts]
_FILE_PCT = 3.0
"""What the frame around messages may differ by where the tokenizer comes from the model's own file."""
_TRUSTED_PCT = 0.5
"""An own tokenizer that is further off than this by experience is not what it is said to be."""


@dataclass(frozen=True)
class Meter:
    """Counts for one model. What follows from its fields is found out once."""

    counter: TokenCounter
    model: str
    """As its server knows it."""
    learned: Learned = UNLEARNED

    @cached_property
    def is_own(self) -> bool:
        """Whether the tokenizer is the model's own, and experience does not say otherwise."""
        return self.counter.exact_for(self.model) and self.learned.plain_pct <= (
            _TRUSTED_PCT if self.learned.n else float("inf")
        )

    def facts(self, text: str) -> Facts:
        """The facts of a piece of text."""
        return facts_of(text, self.counter.count(text))

    @cached_property
    def weighs(self) -> Learned:
        """What counts: where the tokenizer is the model's own, nothing is corrected."""
        return UNLEARNED if self.is_own else self.learned

    @cached_property
    def reply(self) -> int:
        """What is expected of a prompt without a message: the beginning of the answer."""
        return self.expected(Facts(prompts=1))

    def expected(self, facts: Facts) -> int:
        """What the server is likely to say."""
        return self.weighs.expected(facts)

    def error_pct(self, facts: Facts) -> float:
        """The band above it; 0 where the count is exact."""
        if not self.is_own:
            return self.learned.error_pct(facts)
        return _FILE_PCT if self.counter.own_file and not self.learned.n else 0.0


def request_facts(request: ChatRequest, facts: FactsOf) -> Facts:
    """The facts of everything in `request` that is text, with its messages. This is what is learned from."""
    tools = (orjson.dumps(tool, default=dict).decode() for tool in request.tools or ())
    return joined(
        [
            Facts(prompts=1),
            *(message_facts(message, facts) for message in request.messages),
            *(facts(tool) for tool in tools),
        ]
    )


def message_facts(message: Message, facts: FactsOf) -> Facts:
    """The facts of one message: its words and the tool calls in it."""
    words = (word for call in message.tool_calls for word in (call.name, call.arguments))
    return joined([Facts(messages=1), facts(plain(message)), *map(facts, words)])
