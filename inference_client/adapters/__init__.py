"""Wire formats: a request into bytes, bytes into events. No IO anywhere in this package."""

from collections.abc import Callable

from inference_client.adapters.anthropic_messages import AnthropicMessages, AnthropicParser
from inference_client.adapters.base import Adapter, Parser
from inference_client.adapters.bedrock import Bedrock, ConverseParser, InvokeParser
from inference_client.adapters.cohere import Cohere, CohereParser, CohereV1Parser
from inference_client.adapters.gemini import Gemini, GeminiParser
from inference_client.adapters.generate import Tgi, TgiParser, Triton, TritonParser
from inference_client.adapters.kinds import Kind
from inference_client.adapters.ollama import Ollama, OllamaParser
from inference_client.adapters.openai_chat import OpenAIChat, OpenAIChatParser
from inference_client.adapters.openai_responses import OpenAIResponses, ResponsesParser

_ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        OpenAIChat(),
        OpenAIResponses(),
        AnthropicMessages(),
        Ollama(),
        Gemini(),
        Bedrock(),
        Cohere(),
        Tgi(),
        Triton(),
    )
}
_PARSERS: dict[str, Callable[[Kind], Parser]] = {
    "chat.completions": OpenAIChatParser,
    "completions": OpenAIChatParser,
    "responses": ResponsesParser,
    "messages": AnthropicParser,
    "api/chat": OllamaParser,
    "api/generate": OllamaParser,
    "generateContent": GeminiParser,
    "streamGenerateContent": GeminiParser,
    "converse": ConverseParser,
    "converse-stream": ConverseParser,
    "invoke": InvokeParser,
    "invoke-with-response-stream": InvokeParser,
    "v1/chat": CohereV1Parser,
    "v2/chat": CohereParser,
    "generate": TgiParser,
    "generate_stream": TgiParser,
    "triton/generate": TritonParser,
    "triton/generate_stream": TritonParser,
}


def adapter_for(kind: Kind) -> Adapter:
    """The adapter that speaks the wire format of `kind`."""
    return _ADAPTERS[kind.format]


def parser_for_api(api: str, kind: Kind) -> Parser | None:
    """A parser for answers of the route called `api` in recordings; None where it cannot be read."""
    make = _PARSERS.get(api)
    return make(kind) if make else None
