"""Answers in the OpenAI shape."""

from tests.unit.inference_client.cases import BOTH, Case, call, chunk
from tests.unit.inference_client.streams import sse

U = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
DONE = b"data: [DONE]\n\n"
OPENAI = [
    Case(
        "parallel calls in pieces, mixed",
        "openai",
        "chat.completions",
        sse(
            chunk({"tool_calls": [call(0, "c1", "a", "")]}),
            chunk({"tool_calls": [call(1, "c2", "b", '{"y"')]}),
            chunk({"tool_calls": [call(0, None, None, '{"x":1}'), call(1, None, None, ":2}")]}),
            chunk(finish="tool_calls"),
            {"choices": [], "usage": U},
        )
        + DONE,
        finish="tool_calls",
        usage=(20, 5, None, None, None),
        calls=BOTH,
    ),
    Case(
        "parallel calls that all have the index 0",
        "ollama-cloud",
        "chat.completions",
        sse(
            chunk({"tool_calls": [call(0, "c1", "a", '{"x":1}')]}),
            chunk({"tool_calls": [call(0, "c2", "b", '{"y":2}')]}, "tool_calls", usage=U),
        ),
        finish="tool_calls",
        usage=(20, 5, None, None, None),
        calls=BOTH,
    ),
    Case(
        "the same id on each piece",
        "gpustack",
        "chat.completions",
        sse(
            chunk({"tool_calls": [call(0, "c1", "a", '{"x"')]}),
            chunk({"tool_calls": [call(0, "c1", "a", ":1}")]}, "tool_calls"),
        ),
        finish="tool_calls",
        calls=BOTH[:1],
    ),
    Case(
        "several answers: the first counts",
        "openai",
        "chat.completions",
        sse(
            {"choices": [{"index": 0, "delta": {"content": "A"}, "finish_reason": None}]},
            {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": None}]},
            {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ),
        text="A",
        finish="stop",
    ),
    Case(
        "usage twice, the richer one last, then null",
        "vllm",
        "chat.completions",
        sse(
            chunk({"content": "Oke"}, "stop", usage=U),
            {"choices": [], "usage": {**U, "prompt_tokens_details": {"cached_tokens": 16}}},
            {"choices": [], "usage": None},
        ),
        text="Oke",
        finish="stop",
        usage=(20, 5, 16, None, None),
    ),
    Case(
        "a filter before the first word, and one after it",
        "azure",
        "chat.completions",
        sse(
            {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            chunk({"content": "Ya", "role": "assistant"}),
            chunk(finish="content_filter"),
            {"choices": [], "usage": U},
        ),
        text="Ya",
        finish="content_filter",
        usage=(20, 5, None, None, None),
    ),
    Case(
        "reads, writes and reasoning are parts",
        "openai",
        "chat.completions",
        {
            "choices": [{"message": {"content": "Hai"}, "finish_reason": "length"}],
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 52,
                "total_tokens": 952,
                "prompt_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 128},
                "completion_tokens_details": {"reasoning_tokens": 30, "rejected_prediction_tokens": 4},
            },
        },
        text="Hai",
        finish="length",
        usage=(900, 52, 640, 128, 30),
        whole=True,
        detail={"rejected_prediction": 4},
    ),
    Case(
        "reasoning beside the output, as the total shows",
        "xai",
        "chat.completions",
        {
            "choices": [{"message": {"content": "4", "reasoning_content": "2+2"}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "total_tokens": 111,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
        },
        text="4",
        reasoning="2+2",
        finish="stop",
        usage=(10, 101, None, None, 100),
        whole=True,
    ),
    Case(
        "a refusal instead of content",
        "openai",
        "chat.completions",
        {"choices": [{"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}], "usage": U},
        text="No.",
        finish="stop",
        usage=(20, 5, None, None, None),
        whole=True,
    ),
    Case(
        "zeros are zeros",
        "openai-compatible",
        "chat.completions",
        sse(chunk({"content": "x"}, "stop", usage={"prompt_tokens": 0, "completion_tokens": 0})),
        text="x",
        finish="stop",
        usage=(0, 0, None, None, None),
    ),
    Case(
        "comments, and an error after words",
        "openrouter",
        "chat.completions",
        b": OPENROUTER PROCESSING\n\n"
        + sse(chunk({"content": "So"}))
        + sse({**chunk(finish="error"), "error": {"code": 502, "message": "Upstream"}}),
        text="So",
        finish="error",
        error="Overloaded",
    ),
    Case(
        "an error in an extra field",
        "groq",
        "chat.completions",
        sse(chunk({"content": "So"}), {**chunk(), "x_groq": {"error": "over capacity"}}),
        text="So",
        error="ServerFault",
    ),
    Case(
        "a flat error under a 200",
        "vllm",
        "chat.completions",
        sse({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}),
        error="InvalidRequest",
    ),
    Case(
        "a flat error, not streamed",
        "vllm",
        "chat.completions",
        {"object": "error", "message": "busy", "code": 503},
        error="Overloaded",
        whole=True,
    ),
    Case(
        "numbers inside the last choice",
        "openai-compatible",
        "chat.completions",
        sse({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop", "usage": U}]}),
        text="x",
        finish="stop",
        usage=(20, 5, None, None, None),
    ),
    Case(
        "no choices at all",
        "openai",
        "chat.completions",
        {"choices": [], "usage": U},
        usage=(20, 5, None, None, None),
        whole=True,
    ),
    Case(
        "zeros on each piece of a completion, numbers on the last",
        "ollama-v1",
        "completions",
        sse(
            {"choices": [{"index": 0, "text": "a"}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
            {"choices": [{"index": 0, "text": "b", "finish_reason": "stop"}], "usage": U},
        ),
        text="ab",
        finish="stop",
        usage=(20, 5, None, None, None),
    ),
    Case(
        "a cache that is told under another name",
        "mistral",
        "chat.completions",
        {
            "choices": [
                {"message": {"content": [{"type": "text", "text": "x"}]}, "finish_reason": "model_length"}
            ],
            "usage": {**U, "prompt_token_details": {"cached_tokens": 8}},
        },
        text="x",
        finish="length",
        usage=(20, 5, 8, None, None),
        whole=True,
    ),
]
