import base64
from typing import Any

import numpy as np
import orjson
import pytest

from app.embedded.embed_wire import MAX_INPUTS, EmbedCall, WireError, answer_render, call_parse

MODEL = "multilingual-e5-small"


def parse(**body: Any) -> EmbedCall:
    return call_parse(orjson.dumps({"model": MODEL, **body}), model=MODEL, dimension=384)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"input": "a"}, EmbedCall(("a",), "query", False)),
        ({"input": ["a"]}, EmbedCall(("a",), "query", False)),
        ({"input": ["a", "b"]}, EmbedCall(("a", "b"), "passage", False)),
        ({"input": "a", "input_type": "passage"}, EmbedCall(("a",), "passage", False)),
        ({"input": ["a", "b"], "input_type": "query"}, EmbedCall(("a", "b"), "query", False)),
        ({"input": "a\0b", "encoding_format": "base64"}, EmbedCall(("a\0b",), "query", True)),
        ({"input": " ", "dimensions": 384, "user": "x"}, EmbedCall((" ",), "query", False)),
        ({"input": "a", "encoding_format": None, "dimensions": None}, EmbedCall(("a",), "query", False)),
    ],
)
def test_requests(body: dict[str, Any], expected: EmbedCall) -> None:
    assert parse(**body) == expected


@pytest.mark.parametrize(
    ("body", "status", "code", "parameter"),
    [
        ({}, 400, "invalid_value", "input"),
        ({"input": []}, 400, "invalid_value", "input"),
        ({"input": ""}, 400, "invalid_value", "input"),
        ({"input": ["a", ""]}, 400, "invalid_value", "input"),
        ({"input": [1, 2]}, 400, "invalid_value", "input"),
        ({"input": [[1, 2]]}, 400, "invalid_value", "input"),
        ({"input": ["a", None]}, 400, "invalid_value", "input"),
        ({"input": {"a": 1}}, 400, "invalid_value", "input"),
        ({"input": ["a"] * (MAX_INPUTS + 1)}, 400, "invalid_value", "input"),
        ({"input": "a", "input_type": "document"}, 400, "invalid_value", "input_type"),
        ({"input": "a", "dimensions": 256}, 400, "invalid_value", "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, 400, "invalid_value", "encoding_format"),
        ({"input": "a", "model": "other"}, 404, "model_not_found", "model"),
    ],
)
def test_refusals_name_the_field(body: dict[str, Any], status: int, code: str, parameter: str) -> None:
    with pytest.raises(WireError) as caught:
        parse(**body)
    error = orjson.loads(caught.value.body())["error"]
    assert (caught.value.status, error["code"], error["param"]) == (status, code, parameter)
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(WireError) as caught:
        call_parse(body, model=MODEL, dimension=384)
    assert caught.value.status == 400


@pytest.mark.parametrize("as_base64", [False, True])
def test_answer_in_both_encodings(as_base64: bool) -> None:
    vectors = np.array([[0.25, -1.0], [1e-3, 0.5]], np.float32)
    call = EmbedCall(("a", "b"), "passage", as_base64)
    answer = orjson.loads(answer_render(call, vectors, model=MODEL, tokens=7, truncated=[1]))
    rows = [row["embedding"] for row in answer["data"]]
    if as_base64:
        rows = [np.frombuffer(base64.b64decode(row), "<f4") for row in rows]
    assert np.array_equal(np.array(rows, np.float32), vectors)
    assert [row["index"] for row in answer["data"]] == [0, 1]
    assert (answer["usage"], answer["truncated"]) == ({"prompt_tokens": 7, "total_tokens": 7}, [1])
