"""OpenAI's embeddings format: bytes in, a request out; vectors in, bytes out. No network, no model."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson

MAX_BODY = 16 * 1024 * 1024
MAX_INPUTS = 2048
InputType = Literal["query", "passage"]


class WireError(Exception):
    """A refused request, with its HTTP status and OpenAI's error code."""

    def __init__(self, status: int, code: str, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.parameter = parameter

    def body(self) -> bytes:
        """OpenAI's error object."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": self.message, "type": kind, "param": self.parameter, "code": self.code}
        return orjson.dumps({"error": error})


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """One parsed request."""

    inputs: tuple[str, ...]
    """As the caller wrote them: prefixes such as "query: " are the caller's to put."""
    input_type: InputType
    """Queries run before passages. Absent in the body: one text is taken for a query, more for passages."""
    base64: bool
    """Vectors as little-endian float32 in base64, as OpenAI's clients ask by default."""


def _refuse(parameter: str, message: str) -> WireError:
    return WireError(400, "invalid_value", message, parameter=parameter)


def _inputs(value: object) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise _refuse("input", "`input` must be a text or a non-empty list of texts.")
    if len(found) > MAX_INPUTS:
        raise _refuse(
            "input", f"`input` has {len(found)} texts; at most {MAX_INPUTS} are taken in one request."
        )
    for number, text in enumerate(found):
        if isinstance(text, int | list):
            raise _refuse(
                "input", "`input` holds token ids; this model's ids differ from OpenAI's, so send texts."
            )
        if not isinstance(text, str):
            raise _refuse("input", f"`input[{number}]` is not a text.")
        if not text:
            raise _refuse("input", f"`input[{number}]` is empty; an empty text has no embedding.")
    return tuple(found)


def _input_type(value: object, inputs: tuple[str, ...]) -> InputType:
    if value is None:
        return "query" if len(inputs) == 1 else "passage"
    if value == "query":
        return "query"
    if value == "passage":
        return "passage"
    raise _refuse("input_type", "`input_type` must be `query` or `passage`.")


def call_parse(body: bytes, *, model: str, dimension: int) -> EmbedCall:
    """A request body as an EmbedCall. Raises WireError 400 or 404, naming the field."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise WireError(400, "invalid_json", f"The body is not JSON: {exc}.") from exc
    if not isinstance(value, dict):
        raise WireError(400, "invalid_json", "The body must be a JSON object.")
    if value.get("model") != model:
        raise WireError(404, "model_not_found", f"This server has one model, {model}.", parameter="model")
    if value.get("dimensions") not in (None, dimension):
        raise _refuse("dimensions", f"{model} has {dimension} dimensions and cannot be shortened.")
    encoding = value.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise _refuse("encoding_format", "`encoding_format` must be `float` or `base64`.")
    inputs = _inputs(value.get("input"))
    return EmbedCall(
        inputs=inputs, input_type=_input_type(value.get("input_type"), inputs), base64=encoding == "base64"
    )


def answer_render(
    call: EmbedCall, vectors: npt.NDArray[np.float32], *, model: str, tokens: int, truncated: Sequence[int]
) -> bytes:
    """The response body. `truncated` lists the inputs whose end was beyond the model's 512 tokens."""
    rows: Sequence[Any] = (
        [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        if call.base64
        else list(vectors)
    )
    data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": data, "model": model, "usage": usage, "truncated": list(truncated)}
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def models_render(model: str, *, dimension: int, max_tokens: int) -> bytes:
    """The one model of this server, with what a client wants to know about it."""
    row = {
        "id": model,
        "object": "model",
        "owned_by": "tessera",
        "dimension": dimension,
        "max_model_len": max_tokens,
    }
    return orjson.dumps({"object": "list", "data": [row]})
