"""Text in a document that speaks to the model instead of the reader. Pure: it is marked, never removed."""

import re
import unicodedata

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
# Marks by which chat templates tell who speaks; a server may read them in quoted text too. By family: ChatML, Llama 3,
# Phi, Granite, Command R, gpt-oss, DeepSeek (wide bars); EXAONE; Llama 2; Mistral; GLM; Gemma; tools, thinking; Alpaca.
_ROLE_MARK = re.compile(
    r"<[|｜][^|｜<>\n]{1,40}[|｜]>|<\|\w{1,20}>|<\w{1,20}\|>|\[\|[^|\[\]\n]{1,40}\|\]|<</?SYS>>|</?s>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|gMASK)\]|<[se]op>"
    r"|<(?:start|end)_of_turn>|<[be]os>|</?(?:think|tool_call|tool_response)>"
    r"|^[ \t]*#{2,3} ?(?:system|instruction|human|assistant)s?:",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN = str.maketrans("<>|｜[]#", "‹›¦¦⟦⟧♯")
# What nobody sees: marks of direction and of width, and the "tags", in which whole sentences can be hidden.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
"""England, Scotland and the like are written with tags rightfully."""
# A reference of the document's own, such as "as shown [3].", which would read like a mark of ours; no list of numbers.
_OWN_MARK = re.compile(
    r"(?:(?<=[^\W\d_] )|(?<=[.!?;»”\"’] )|(?<=[.!?»”’]))\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\](?=[\s.,;:!?)]|\Z)"
)


def addresses_model(text: str) -> bool:
    """Whether a text gives orders to a model or poses as another speaker of the conversation, openly or disguised."""
    if not text.isascii():
        if _TAGS.search(_FLAG.sub("", text)):
            return True
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return bool(_COMMAND.search(text) or _ROLE_MARK.search(text))


def disarmed(text: str) -> str:
    """The text with marks of chat templates and numbers in the form of our citations made harmless, and without what is
    hidden in tags; all else as it was.
    """
    if not text.isascii():
        text = _TAGS.sub("", text)
    text = _ROLE_MARK.sub(lambda mark: mark[0].translate(_PLAIN), text)
    return _OWN_MARK.sub(r"(\1)", text)
