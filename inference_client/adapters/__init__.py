"""Wire formats: a request into bytes, bytes into events. No IO anywhere in this package."""

from inference_client.adapters.base import Adapter
from inference_client.adapters.kinds import Kind
from inference_client.adapters.openai_chat import OpenAIChat

_ADAPTERS: dict[str, Adapter] = {adapter.name: adapter for adapter in (OpenAIChat(),)}


def adapter_for(kind: Kind) -> Adapter:
    """The adapter that speaks the wire format of `kind`."""
    return _ADAPTERS[kind.format]
