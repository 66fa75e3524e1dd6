"""What a real Triton (2.51.0, nvidia-pytriton 0.7.0) sent, from a model with the tensors of its vLLM backend."""

import pytest

from inference_client import errors
from inference_client.adapters.failures import failure
from inference_client.types import TextDelta
from tests.unit.inference_client.asking import sent
from tests.unit.inference_client.streams import parser

T = TextDelta
EVENTS = (
    (
        b'data: {"finish_reason":"None","model_name":"tiny","model_version":"1","num_input_tokens":2,'
        b'"num_output_tokens":1,"text_output":"Z\xc3\xa4h"}\n\n'
    ),
    (
        b'data: {"finish_reason":"None","model_name":"tiny","model_version":"1","num_input_tokens":2,'
        b'"num_output_tokens":2,"text_output":"e \xf0\x9f\xa6\x80 zum"}\n\n'
    ),
    (
        b'data: {"finish_reason":"stop","model_name":"tiny","model_version":"1","num_input_tokens":2,'
        b'"num_output_tokens":1,"text_output":""}\n\n'
    ),
)
NO_REASON = b'data: {"model_name":"tiny","model_version":"1","text_output":"Z\xc3\xa4hling"}\n\n'
TOO_LONG = (
    b'data: {"error":"Error generating stream: You passed 5000 input tokens, the model\'s maximum context '
    b'length is 4096"}\n\n'
)


def test_the_word_none_is_no_reason_and_no_end() -> None:
    reader = parser("triton/generate_stream")
    assert [event for data in EVENTS[:2] for event in reader.feed(data)] == [T("Zäh"), T("e 🦀 zum")]
    # Were it taken for the end, what comes after the grace of 2 s would be cut off without a word.
    assert (reader.complete, reader.finish_reason, reader.usage().output_tokens) == (False, None, 3)
    assert reader.feed(EVENTS[2]) == []
    assert (reader.complete, reader.finish_reason, reader.finish_raw) == (True, "stop", "stop")
    assert (reader.usage().input_tokens, reader.usage().output_tokens) == (2, 4)


def test_a_body_that_ends_while_reasons_are_owed_is_broken_off() -> None:
    reader = parser("triton/generate_stream")
    reader.feed(EVENTS[0])
    reader.flush()
    assert not reader.complete


def test_a_model_that_tells_no_reasons_ends_with_its_body() -> None:
    reader = parser("triton/generate_stream")
    assert (reader.feed(NO_REASON), reader.complete) == ([T("Zähling")], False)
    reader.flush()
    assert (reader.complete, reader.finish_reason) == (True, None)
    silent = parser("triton/generate_stream")
    silent.flush()
    assert not silent.complete


def test_an_error_in_the_middle_is_kept() -> None:
    reader = parser("triton/generate_stream")
    reader.feed(EVENTS[0] + b'data: {"error":"Error generating stream: engine died"}\n\n')
    assert isinstance(reader.error, errors.ServerFault)
    assert reader.error.upstream == "Error generating stream: engine died"
    assert (reader.complete, reader.usage().output_tokens) == (False, 1)


def test_generate_refuses_what_streams_under_status_200() -> None:
    reader = parser("triton/generate")
    told = (
        "generate expects model to produce exactly 1 response, use generate stream for model that generates"
    )
    assert reader.whole(f'{{"error":"{told} various number of responses"}}'.encode()) == []
    assert isinstance(reader.error, errors.ServerFault)


def test_a_streamed_request_is_refused_by_an_event() -> None:
    found = failure(400, {"content-type": "text/event-stream; charset=utf-8"}, TOO_LONG)
    assert isinstance(found, errors.ContextTooLong)
    assert found.upstream is not None
    assert found.upstream.startswith("Error generating stream: You passed")
    missing = failure(404, {}, b'{"error":"Request for unknown model: \'nope\' is not found"}')
    assert isinstance(missing, errors.ModelMissing)


@pytest.mark.parametrize(
    ("model", "path"),
    # Triton said of `tiny%3A1`: unknown model 'tiny%3A1', and answered as `tiny:1`.
    [("tiny:1", "tiny:1"), ("m+x", "m+x"), ("a@b", "a@b"), ("../x", "..%2Fx"), ("a b?#", "a%20b%3F%23")],
)
def test_a_models_name_goes_out_as_it_is(model: str, path: str) -> None:
    wire, _ = sent("triton-vllm", model=model)
    assert wire.url == f"http://h:1/v2/models/{path}/generate_stream"
