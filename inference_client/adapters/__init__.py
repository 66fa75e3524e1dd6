"""Wire formats: a request into bytes, bytes into events. No IO anywhere in this package."""

from collections.abc import Callable

from inference_client.adapters.anthropic_messages import AnthropicMessages, AnthropicParser
from inference_client.adapters.base import Adapter, Parser
from inference_client.adapters.kinds import Kind
from inference_client.adapters.ollama import Ollama, OllamaParser
from inference_client.adapters.openai_chat import OpenAIChat, OpenAIChatParser

_ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter for adapter in (OpenAIChat(), AnthropicMessages(), Ollama())
}
_PARSERS: dict[str, Callable[[Kind], Parser]] = {
    "chat.completions": OpenAIChatParser,
    "completions": OpenAIChatParser,
    "messages": AnthropicParser,
    "api/chat": OllamaParser,
    "api/generate": OllamaParser,
}


def adapter_for(kind: Kind) -> Adapter:
    """The adapter that speaks the wire format of `kind`."""
    return _ADAPTERS[kind.format]


def parser_for_api(api: str, kind: Kind) -> Parser | None:
    """A parser for answers of the route called `api` in recordings; None where it cannot be read."""
    make = _PARSERS.get(api)
    return make(kind) if make else None
