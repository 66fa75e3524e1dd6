"""Answers of Cohere, Ollama, Text Generation Inference and Triton."""

from typing import Any

from tests.unit.inference_client.cases import BOTH, Case, call, typed
from tests.unit.inference_client.streams import lines, sse

C = {
    "tokens": {"input_tokens": 30, "output_tokens": 6},
    "billed_units": {"input_tokens": 9, "output_tokens": 6},
}


def _co(kind: str, index: int = 0, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


COHERE = [
    Case(
        "a plan and parallel calls",
        "cohere",
        "v2/chat",
        typed(
            _co("tool-plan-delta", tool_plan="I will."),
            _co("tool-call-start", 0, tool_calls=call(None, "1", "a", "")),
            _co("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"x":1}'}}),
            _co("tool-call-end", 0),
            _co("tool-call-start", 1, tool_calls=call(None, "2", "b", '{"y":2}')),
            {
                "type": "message-end",
                "delta": {"finish_reason": "TOOL_CALL", "usage": {**C, "cached_tokens": 16}},
            },
        ),
        reasoning="I will.",
        finish="tool_calls",
        usage=(30, 6, 16, None, None),
        calls=BOTH,
    ),
    Case(
        "whole, cut by the cap",
        "cohere",
        "v2/chat",
        {
            "message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "So"}]},
            "finish_reason": "MAX_TOKENS",
            "usage": {"billed_units": C["billed_units"]},
        },
        text="So",
        reasoning="hm",
        finish="length",
        usage=(9, 6, None, None, None),
        whole=True,
    ),
    Case(
        "an error at the end",
        "cohere",
        "v2/chat",
        typed({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "toxic"}}),
        finish="error",
        error="ServerFault",
    ),
]
O_END = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 37, "eval_count": 12}
OLLAMA = [
    Case(
        "thinking and parallel calls",
        "ollama",
        "api/chat",
        lines(
            {"message": {"thinking": "hm"}, "done": False},
            {"message": {"tool_calls": [{"function": {"name": "a", "arguments": {"x": 1}}}]}, "done": False},
            {"message": {"tool_calls": [{"function": {"name": "b", "arguments": {"y": 2}}}]}, "done": False},
            O_END,
        ),
        reasoning="hm",
        finish="stop",
        usage=(37, 12, None, None, None),
        calls=BOTH,
    ),
    Case(
        "whole",
        "ollama",
        "api/chat",
        {**O_END, "message": {"content": "Baik"}, "done_reason": "length"},
        text="Baik",
        finish="length",
        usage=(37, 12, None, None, None),
        whole=True,
    ),
    Case(
        "a prompt that was all in the cache is unknown, not zero",
        "ollama",
        "api/generate",
        lines({"response": "x", "done": False}, {"done": True, "done_reason": "stop", "eval_count": 1}),
        text="x",
        finish="stop",
        usage=(None, 1, None, None, None),
    ),
    Case(
        "an error line",
        "ollama",
        "api/chat",
        lines({"message": {"content": "So"}, "done": False}, {"error": "runner stopped"}),
        text="So",
        error="ServerFault",
    ),
    Case(
        "only an error", "ollama", "api/chat", lines({"error": 'model "x" not found'}), error="ModelMissing"
    ),
]
T_END = {
    "generated_text": " ada",
    "details": {"finish_reason": "length", "generated_tokens": 2, "input_length": 15},
}
PROMPTED = [
    Case(
        "tgi",
        "huggingface-tgi",
        "generate_stream",
        sse(
            {
                "index": 1,
                "token": {"text": " ada", "special": False},
                "generated_text": None,
                "details": None,
            },
            {"index": 2, "token": {"text": "</s>", "special": True}, **T_END},
        ),
        text=" ada",
        finish="length",
        usage=(15, 2, None, None, None),
    ),
    Case(
        "tgi, whole",
        "tgi",
        "generate",
        [T_END],
        text=" ada",
        finish="length",
        usage=(15, 2, None, None, None),
        whole=True,
    ),
    Case(
        "tgi, failing under a 200",
        "tgi",
        "generate_stream",
        sse({"token": {"text": "So"}}, {"error": "Request failed", "error_type": "generation"}),
        text="So",
        error="ServerFault",
    ),
    Case(
        "triton",
        "triton",
        "generate_stream",
        sse(
            {"model_name": "t", "text_output": "Ha", "num_input_tokens": 11, "num_output_tokens": 1},
            {
                "model_name": "t",
                "text_output": "lo",
                "num_input_tokens": 11,
                "num_output_tokens": 1,
                "finish_reason": "stop",
            },
        ),
        text="Halo",
        finish="stop",
        usage=(11, 2, None, None, None),
    ),
    Case(
        "triton, failing",
        "nvidia-triton",
        "generate_stream",
        sse({"error": "in ensemble"}),
        error="ServerFault",
    ),
]
