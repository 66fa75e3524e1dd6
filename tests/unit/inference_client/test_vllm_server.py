"""What a real vLLM (0.32.0, on the CPU, SmolLM2-135M-Instruct) sent."""

from inference_client import errors
from inference_client.adapters.failures import failure
from inference_client.types import TextDelta
from tests.unit.inference_client.streams import parser

CHUNKS = (
    (
        b'data: {"id":"chatcmpl-a2000b59ccdb673a","object":"chat.completion.chunk","created":179603472'
        b'0,"model":"smol","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":'
        b'null,"finish_reason":null}],"usage":{"prompt_tokens":33,"total_tokens":33,"completion_tokens'
        b'":0,"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}\n\n'
    ),
    (
        b'data: {"id":"chatcmpl-a2000b59ccdb673a","object":"chat.completion.chunk","created":179603472'
        b'0,"model":"smol","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_r'
        b'eason":null,"token_ids":null}],"usage":{"prompt_tokens":33,"total_tokens":34,"completion_tok'
        b'ens":1,"completion_tokens_details":null}}\n\n'
    ),
    (
        b'data: {"id":"chatcmpl-a2000b59ccdb673a","object":"chat.completion.chunk","created":179603472'
        b'0,"model":"smol","choices":[{"index":0,"delta":{"content":" there"},"logprobs":null,"finish_'
        b'reason":"length","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":33,"total_to'
        b'kens":35,"completion_tokens":2,"completion_tokens_details":null}}\n\n'
    ),
    (
        b'data: {"id":"chatcmpl-a2000b59ccdb673a","object":"chat.completion.chunk","created":179603472'
        b'0,"model":"smol","choices":[],"usage":{"prompt_tokens":33,"total_tokens":35,"completion_toke'
        b'ns":2,"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}},"system_fingerpr'
        b'int":"vllm-0.32.0-1b8595ac"}\n\n'
    ),
    b"data: [DONE]\n\n",
)
TOO_LONG = (
    b'{"error":{"message":"This model\'s maximum context length is 1024 tokens. However, your prompt contains '
    b"at least 1025 input tokens, which exceeds this limit even without any output tokens. Please reduce the "
    b'length of the input prompt. (parameter=input_tokens, value=1025)","type":"BadRequestError",'
    b'"param":"input_tokens","code":400}}'
)


def test_running_totals_hold_at_every_chunk() -> None:
    reader, seen, events = parser("chat.completions", "vllm"), [], []
    for chunk in CHUNKS:
        events += reader.feed(chunk)
        usage = reader.usage()
        seen.append((usage.input_tokens, usage.output_tokens, reader.usage_is_running))
    assert events == [TextDelta("Hello"), TextDelta(" there")]
    assert seen == [(33, 0, True), (33, 1, True), (33, 2, True), (33, 2, True), (33, 2, True)]
    assert (reader.finish_reason, reader.ended, reader.usage().cache_read) == ("length", True, 0)


def test_at_least_so_many_tokens_is_no_length() -> None:
    # The prompt had 3031 tokens; vLLM stops counting where the window ends.
    found = failure(400, {}, TOO_LONG)
    assert isinstance(found, errors.ContextTooLong)
    assert (found.input_tokens, found.context_window) == (None, 1024)
    assert "1024" in found.message
    assert "1025" not in found.message
