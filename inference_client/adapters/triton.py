"""NVIDIA Triton's generate extension, which takes one prompt instead of messages.

Triton writes no prompt, so it needs a template. Its tensors have the names the model gave them: a map says which of
our fields goes where.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from inference_client.adapters.adapter import Adapter
from inference_client.adapters.addresses import model_url, option
from inference_client.adapters.base import SseParser
from inference_client.adapters.json_tools import text_of
from inference_client.adapters.kind import Kind
from inference_client.adapters.prompts import prompt_text
from inference_client.adapters.requests import given
from inference_client.adapters.scripted import MODEL, Answer, sse
from inference_client.errors import Unsupported
from inference_client.servers import Server
from inference_client.types import ChatRequest, Event, TextDelta
from inference_client.usage import UsageShape, number

TENSORS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {
        "prompt": "text_input",
        # A JSON text, because Triton's own parameters hold no lists, and `stop` is one.
        "sampling": "sampling_parameters",
        "max_output_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "seed",
        "stop": "stop",
        "always": {
            "stream": True,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
            "return_finish_reason": True,
        },
    },
    "trtllm": {
        "prompt": "text_input",
        "max_output_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "random_seed",
        "stop": "stop_words",
        "always": {
            "stream": True,
            "exclude_input_in_output": True,
            "return_num_input_tokens": True,
            "return_num_output_tokens": True,
        },
    },
}
"""By backend: our field to the model's tensor, the tensor that takes all `sampling` as one text, and what is
`always` sent. A server's option `tensors` may be such a map."""
_SAMPLING = ("max_output_tokens", "temperature", "top_p", "seed", "stop")
_AS_THEY_ARE = ":@!$&'()*+,;="
"""What may stand in a path. Triton never decodes a model's name, so the name goes out as it is."""


class TritonParser(SseParser):
    """Reads `/generate_stream` of Triton. Output numbers are per event and added, input numbers repeat.

    The vLLM backend writes Python's word `None` as the finish reason of every event but the last.
    """

    shape = UsageShape(input=("num_input_tokens",), output=("num_output_tokens",))

    def __init__(self, kind: Kind | None = None) -> None:
        super().__init__(kind)
        self._answered = False
        self._tells_reasons = False

    def _flush(self, out: list[Event]) -> None:
        super()._flush(out)
        # Many models tell no reason, and there is no end mark: then the proper end of the body is the end.
        self.ended = self.ended or (self._answered and not self._tells_reasons)

    def _whole(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        self._on_message(answer, None, out)

    def _on_message(self, answer: Mapping[str, Any], name: str | None, out: list[Event]) -> None:
        if answer.get("error"):
            self._fail(answer)
        if text := text_of(answer.get("text_output")):
            out.append(TextDelta(text))
        self.served_model = text_of(answer.get("model_name")) or self.served_model
        self._answered = self._answered or "text_output" in answer
        if reason := text_of(answer.get("finish_reason")):
            self._tells_reasons = True
            self.finish_raw = reason if reason != "None" else self.finish_raw
        inp, more = number(answer.get("num_input_tokens")), number(answer.get("num_output_tokens"))
        if inp is not None or more is not None:
            self._add_tensors(inp, more)

    def _add_tensors(self, inp: int | None, more: int | None) -> None:
        known = self._usage = self._usage or {}
        if inp is not None:
            known["num_input_tokens"] = inp
        if more is not None:
            self.usage_is_running = True
            known["num_output_tokens"] = known.get("num_output_tokens", 0) + more


_TRITON = Kind(
    name="triton-vllm",
    title="Triton, generate route of its vLLM backend",
    grade="tried",
    version_path=None,
    chat_path="/v2/models/{model}/generate_stream",
    embed_path=None,
    models_path=None,
    refuses=frozenset({"tools", "tool_choice", "response_format"}),
    images=None,
    options={"template": "plain", "tensors": "vllm"},
    health_path="/v2/health/ready",
)


class Triton(Adapter):
    """Requests to `/v2/models/NAME/generate_stream`."""

    name = "triton"
    parsers = dict.fromkeys(
        ("generate_stream", "generate", "triton/generate_stream", "triton/generate"), TritonParser
    )
    kinds = (
        _TRITON,
        replace(
            _TRITON,
            name="triton-trtllm",
            title="Triton, generate route of its TensorRT-LLM backend",
            grade="documented",
            options={"template": "plain", "tensors": "trtllm"},
        ),
    )

    def chat_url(self, server: Server, kind: Kind, model: str) -> str:
        """Where it is sent."""
        return model_url(server, kind, kind.chat_path, model, safe=_AS_THEY_ARE)

    def chat_body(self, server: Server, kind: Kind, request: ChatRequest) -> dict[str, Any]:
        """What is sent for a streamed answer. Raises Unsupported."""
        tensors = _tensors(option(server, kind, "tensors", request.model))
        sampling = _sampling(request, tensors)
        if name := tensors.get("sampling"):
            sampling = {name: orjson.dumps(sampling).decode()}
        template = option(server, kind, "template", request.model)
        prompt = {tensors["prompt"]: prompt_text(request.messages, template)}
        return {**request.extra, **tensors.get("always", {}), **sampling, **prompt}

    def scripted(self, answer: Answer) -> Iterator[bytes]:
        """Responses of the generate extension; each says how many tokens it adds."""
        extra = answer.output_tokens - len(answer.words)
        for place, word in enumerate(answer.words, 1):
            last = place == len(answer.words)
            told = {"num_input_tokens": answer.input_tokens, "num_output_tokens": 1 + (extra if last else 0)}
            row = {"model_name": MODEL, "model_version": "1", "text_output": word}
            reason = {"finish_reason": answer.finish if last else "None"}
            yield sse({**row, **(told if answer.usage != "none" else {}), **reason})


ADAPTER = Triton()


def _tensors(said: object) -> Mapping[str, Any]:
    found = TENSORS.get(said) if isinstance(said, str) else said
    if not isinstance(found, Mapping) or "prompt" not in found:
        raise Unsupported(
            f"There is no tensor map called {said!r}. Known: {', '.join(TENSORS)}; or a map with the key prompt.",
            code="unknown_tensors",
        )
    return found


def _sampling(request: ChatRequest, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, by the model's names. A field the map does not name is refused, not dropped."""
    fields = given(**{name: getattr(request, name) for name in _SAMPLING})
    fields["stop"] = list(request.stop)
    wanted = {name: value for name, value in fields.items() if value != []}
    if missing := sorted(set(wanted) - set(tensors)):
        raise Unsupported(
            f"This model's tensor map has no place for {', '.join(missing)}. Leave it out, or complete the map.",
            code="unsupported_option",
        )
    return {tensors[name]: value for name, value in wanted.items()}
