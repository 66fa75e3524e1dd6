"""Text in a document that speaks to the model instead of the reader. Pure: it is marked, never removed."""

import re

ADDRESSES_THE_MODEL = (
    "Holds text that reads like instructions to a model; it was passed on as quoted material only."
)

_COMMAND = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|all|your|system)\b"
    r".{0,30}\b(instruction|prompt|rule|message|direction|guideline)s?\b"
    r"|\b(you are now|act as|pretend to be)\b.{0,40}\b(assistant|model|ai|dan|system|admin\w*|developer)\b"
    r"|\b(reveal|print|repeat|show)\b.{0,30}\b(system prompt|your instructions|hidden prompt)\b"
    r"|\b(ignoriere|vergiss|missachte)\b.{0,40}\b(anweisung|vorgabe|regel|prompt)\w*"
    r"|\b(ignore[zr]?|oublie[zr]?)\b.{0,40}\b(instructions|consignes)\b"
    r"|\b(ignora|olvida|omite)\b.{0,40}\b(instrucciones|reglas)\b"
    r"|忽略.{0,12}(指令|指示|提示)|игнорируй\w*.{0,40}(инструкци|указани)\w*",
    re.IGNORECASE | re.DOTALL,
)
# Marks by which chat templates tell who speaks; a server may read them in quoted text too.
_ROLE_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|^[ \t]*#{2,3} ?(?:system|instruction)s?:",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN = str.maketrans("<>|[]#", "‹›¦⟦⟧♯")


def addresses_model(text: str) -> bool:
    """Whether a text gives orders to a model or poses as another speaker of the conversation."""
    return bool(_COMMAND.search(text) or _ROLE_MARK.search(text))


def disarmed(text: str) -> str:
    """The text with the marks of chat templates made harmless, as long as before, all else as it was."""
    return _ROLE_MARK.sub(lambda mark: mark[0].translate(_PLAIN), text)
