"""Looks for inference servers that already run on this machine, and for provider keys in the environment.

Nothing is used unasked: servers are listed, keys are only mentioned.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from inference_client.probe import probe

LIMIT_S = 0.6
_USUAL = ("http://127.0.0.1:11434", "http://127.0.0.1:8000", "http://127.0.0.1:8080")
"""Ollama, vLLM, llama.cpp."""
_OLLAMA_PORT = 11434
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PROVIDER_KEYS = {
    "OPENAI_API_KEY": "OpenAI",
    "ANTHROPIC_API_KEY": "Anthropic",
    "GEMINI_API_KEY": "Google",
    "MISTRAL_API_KEY": "Mistral",
    "OPENROUTER_API_KEY": "OpenRouter",
    "AZURE_OPENAI_API_KEY": "Azure OpenAI",
}
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "bge-", "e5-")


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answered, and the chat models it names."""

    url: str
    """The address of its OpenAI-shaped API."""
    kind: str
    models: tuple[str, ...]

    def settings(self, model: str) -> dict[str, str]:
        """The variables that make Tessera use it."""
        return {"INFERENCE_URL": self.url, "INFERENCE_KIND": self.kind, "INFERENCE_MODEL": model}

    def command(self, model: str) -> str:
        """The one command that takes it."""
        words = " ".join(f"{name}={value}" for name, value in self.settings(model).items())
        return f"{words} python manage.py up"


def ollama_address(value: str) -> str | None:
    """OLLAMA_HOST as Ollama reads it: host, host:port or a URL; 0.0.0.0 means this machine."""
    text = value.strip().strip("\"'")
    if not text:
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS:
        return None
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else str(parts.hostname)  # noqa: S104
    host = f"[{host}]" if ":" in host else host
    default = _DEFAULT_PORTS[parts.scheme] if "://" in text else _OLLAMA_PORT
    return f"{parts.scheme}://{host}:{port or default}"


def addresses(environment: Mapping[str, str], own_ports: Iterable[int]) -> tuple[str, ...]:
    """Where to look: OLLAMA_HOST, then the usual ports, without our own."""
    named = ollama_address(environment.get("OLLAMA_HOST", ""))
    own = set(own_ports)
    places = dict.fromkeys([*([named] if named else []), *_USUAL])
    return tuple(place for place in places if urlsplit(place).port not in own)


def servers_find(places: Iterable[str]) -> list[Found]:
    """Ask each address what it serves. Costs no tokens and at most about a second."""

    async def ask(place: str) -> Found | None:
        facts = await probe(f"{place}/v1", limit_s=LIMIT_S)
        names = tuple(
            m.name for m in facts.models if not any(word in m.name.lower() for word in _NOT_FOR_CHAT)
        )
        return Found(url=f"{place}/v1", kind=facts.kind or "openai", models=names) if names else None

    async def ask_all() -> list[Found]:
        answers = await asyncio.gather(*map(ask, places))
        return [found for found in answers if found]

    return asyncio.run(ask_all())


def provider_keys(environment: Mapping[str, str]) -> list[str]:
    """Names of providers whose key is in the environment; the keys themselves are not looked at."""
    return [name for variable, name in _PROVIDER_KEYS.items() if environment.get(variable)]
