"""Routes that take one prompt instead of messages: TGI's `generate` and Triton's generate extension. Answers only."""

from collections.abc import Mapping
from typing import Any

from inference_client.adapters.base import SseParser
from inference_client.adapters.failures import from_value
from inference_client.adapters.json_tools import json_object, obj, text_of
from inference_client.adapters.kinds import Kind
from inference_client.sse import SseEvent
from inference_client.types import Event, TextDelta, Usage
from inference_client.usage import TGI, TRITON, number, usage_read


class TgiParser(SseParser):
    """Reads `/generate_stream`: one event per token, numbers on the last one when `details` were asked for."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._details: Mapping[str, Any] = {}

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._details, TGI, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        message = json_object(event.data)
        if message.get("error"):
            self.error = self.error or from_value(message)
        token = obj(message.get("token"))
        text = text_of(token.get("text"))
        if text and token.get("special") is not True:
            out.append(TextDelta(text))
        self._take(message)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self.error = from_value(answer)
        if text := text_of(answer.get("generated_text")):
            out.append(TextDelta(text))
        self._take(answer)

    def _take(self, message: Mapping[str, Any]) -> None:
        details = message.get("details")
        if isinstance(details, dict):
            self._details = details
            self.finish_raw = text_of(details.get("finish_reason"))
        if isinstance(message.get("generated_text"), str):
            self.ended = True


class TritonParser(SseParser):
    """Reads `/generate_stream` of Triton. Output numbers are per event and added, input numbers repeat."""

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__()
        self._usage: dict[str, Any] = {}

    def usage(self, precount: int | None = None) -> Usage:
        return usage_read(self._usage, TRITON, precount=precount)

    def _on_event(self, event: SseEvent, out: list[Event]) -> None:
        self._whole(json_object(event.data), out)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        if answer.get("error"):
            self.error = self.error or from_value(answer)
        if text := text_of(answer.get("text_output")):
            out.append(TextDelta(text))
        self.served_model = text_of(answer.get("model_name")) or self.served_model
        self.finish_raw = text_of(answer.get("finish_reason")) or self.finish_raw
        inp, more = number(answer.get("num_input_tokens")), number(answer.get("num_output_tokens"))
        if inp is not None:
            self._usage["num_input_tokens"] = inp
        if more is not None:
            self.usage_is_running = True
            self._usage["num_output_tokens"] = self._usage.get("num_output_tokens", 0) + more
