"""Messages as one text, for routes that take a prompt. A server's own template is better where it has one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from inference_client.adapters.requests import has_picture, plain
from inference_client.errors import Unsupported
from inference_client.types import Message

TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "plain": {
        "begin": "",
        "turn": "{role}: {text}\n\n",
        "reply": "Assistant:",
        "system": "System",
        "user": "User",
        "assistant": "Assistant",
    },
    "chatml": {
        "begin": "",
        "turn": "<|im_start|>{role}\n{text}<|im_end|>\n",
        "reply": "<|im_start|>assistant\n",
    },
    "llama3": {
        "begin": "<|begin_of_text|>",
        "turn": "<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>",
        "reply": "<|start_header_id|>assistant<|end_header_id|>\n\n",
    },
    "gemma": {
        "begin": "<bos>",
        "turn": "<start_of_turn>{role}\n{text}<end_of_turn>\n",
        "reply": "<start_of_turn>model\n",
        "system": "user",
        "assistant": "model",
    },
}
"""By name: `begin`, one `turn` with its places, the beginning of the `reply`, and words for roles that differ."""
_MARK = re.compile(r"<\|?[a-z_]+\|?>")


def prompt_text(messages: Sequence[Message], template: str | Mapping[str, str]) -> str:
    """The messages in the form of `template`, a name of TEMPLATES or a mapping of that shape.

    Raises Unsupported for an unknown template, tool messages and pictures, which no template here can carry.
    """
    found = TEMPLATES.get(template) if isinstance(template, str) else template
    if found is None:
        raise Unsupported(
            f"There is no prompt template called {template!r}. Known: {', '.join(TEMPLATES)}.",
            code="unknown_template",
        )
    if any(message.role == "tool" or message.tool_calls or has_picture(message) for message in messages):
        raise Unsupported(
            "This route takes one text, so it cannot carry tool calls or pictures. Leave them out, or use the "
            "server's OpenAI routes.",
            code="unsupported_option",
        )
    marks = {mark for part in found.values() for mark in _MARK.findall(part)}
    turns = (_turn(message, found, marks) for message in messages)
    return found["begin"] + "".join(turns) + found["reply"]


def _turn(message: Message, template: Mapping[str, str], marks: set[str]) -> str:
    role = "system" if message.role == "developer" else message.role
    text = plain(message)
    for mark in marks:
        # A passage that holds the template's own marks could pose as a turn of the system.
        text = text.replace(mark, f"{mark[0]}\u200b{mark[1:]}")
    places: dict[str, Any] = {"role": template.get(role, role), "text": text}
    return re.sub(r"\{(role|text)\}", lambda place: str(places[place.group(1)]), template["turn"])
