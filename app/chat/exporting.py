"""A conversation as a Markdown file: what was asked, what was answered, and the sources with their pages."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.chat.models import Conversation, TurnState

_ENDED = {
    TurnState.RUNNING: "This answer was still being written.",
    TurnState.STOPPED: "This answer was stopped.",
    TurnState.INTERRUPTED: "This answer was interrupted.",
    TurnState.FAILED: "This answer failed.",
}
_QUOTED_CHARS = 80


def export_markdown(conversation: Conversation, messages: Sequence[Mapping[str, Any]], at: datetime) -> str:
    """`messages` as `messages_of` gives them, oldest first, each question before its answer."""
    lines = [
        f"# {_line(conversation.title) or 'Conversation'}",
        "",
        f"Exported from Tessera on {_time(at)}.",
        "",
    ]
    by_id = {message["id"]: message for message in messages}
    before: str | None = None
    for message in messages:
        if message["role"] == "user":
            if message["parent_id"] != before:
                lines += [_elsewhere(by_id, message["parent_id"]), ""]
            lines += [f"## Question, {_time(message['created_at'])}", "", *_quoted(message["text"]), ""]
        else:
            lines += [*_answer(message), ""]
            before = message["id"]
    return "\n".join(lines).rstrip() + "\n"


def _elsewhere(by_id: Mapping[str, Mapping[str, Any]], parent_id: str | None) -> str:
    """Said where the file goes on at another place of the tree."""
    answer = by_id.get(parent_id or "")
    question = by_id.get(answer["parent_id"]) if answer else None
    if question is None:
        return "*Another beginning of the conversation:*"
    return f"*Another version after “{_line(question['text'])[:_QUOTED_CHARS]}”:*"


def _answer(message: Mapping[str, Any]) -> Iterator[str]:
    price = message["price"]
    paid = f", {price['amount']} {price['currency']}" if price and price.get("amount") else ""
    yield f"## Answer, {message['model']}{paid}"
    yield ""
    yield message["text"] or "(no text)"
    if message["state"] in _ENDED:
        yield ""
        yield f"*{_ENDED[message['state']]}*"
    yield from _sources(message["sources"])


def _sources(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = [source for source in sources if source["readable"]]
    if shown:
        yield from ("", "### Sources", "")
    for source in shown:
        pages = "" if source["page"] is None else f", page {source['page']}"
        if source["page_end"] and source["page_end"] != source["page"]:
            pages = f", pages {source['page']} to {source['page_end']}"
        heading = f", {_line(source['heading'])}" if source["heading"] else ""
        cited = "" if source["cited"] else " (sent, not cited)"
        yield f"[{source['n']}] **{_line(source['title'])}**{pages}{heading}{cited}"
        yield ""
        yield from _quoted(source["text"])
        yield ""
    if missing := len(sources) - len(shown):
        passages = "1 passage is" if missing == 1 else f"{missing} passages are"
        yield from ("", f"*{passages} not in this file: erased, or of a document you may not read now.*")


def _quoted(text: str) -> Iterator[str]:
    yield from (f"> {line}".rstrip() for line in text.splitlines() or [""])


def _line(text: str) -> str:
    return " ".join(text.split())


def _time(at: datetime) -> str:
    return f"{at:%-d %B %Y, %H:%M} UTC"
