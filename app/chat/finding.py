"""Finding a conversation again: by words of its title, questions and answers, the latest used first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVectorField
from django.db.models import F, Func, Q, QuerySet
from django.db.models.functions import Left

from app.accounts.selectors import Caller
from app.chat.models import Conversation, Turn, TurnState

MOST_WORDS, LONGEST_WORD = 12, 100
SNIPPET_CHARS = 160
_BEFORE = 24
"""How much of a snippet stands before its first hit."""
_INDEXED_CHARS = 60_000
"""As in the function `chat_words`: what lies beyond in one question or answer is not found."""

Piece = tuple[str, bool]
"""Some text, and whether it is a hit."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where a conversation matched."""

    where: Literal["title", "question", "answer"]
    turn_id: UUID | None
    snippet: tuple[Piece, ...]


def words_of(text: str) -> list[str]:
    """What is looked for: words in lower case, each found at the beginning of a word."""
    found = re.findall(r"[^\W_]+", text.lower())
    return [word[:LONGEST_WORD] for word in dict.fromkeys(found)][:MOST_WORDS]


def conversations_found(caller: Caller, rows: QuerySet[Conversation], text: str) -> QuerySet[Conversation]:
    """Those of `rows` that have every word in their title, or every word in one of their turns."""
    titled = Q(title__icontains=text.strip())
    words = words_of(text)
    if not words:
        return rows.filter(titled)
    for_title = Q()
    for word in words:
        for_title &= Q(title__icontains=word)
    return rows.filter(titled | for_title | Q(pk__in=_turns(caller, words).values("conversation_id")))


def matches_of(caller: Caller, found: Sequence[Conversation], text: str) -> Mapping[UUID, Match]:
    """The newest turn that matches in each conversation, else its title, with the words around the hit."""
    words = words_of(text)
    if not words:
        return {row.id: Match("title", None, _snippet(row.title, [text.strip().lower()])) for row in found}
    turns = (
        _turns(caller, words)
        .filter(conversation_id__in=[row.id for row in found])
        .order_by("conversation_id", "-id")
        .distinct("conversation_id")
        .annotate(q=Left("question", _INDEXED_CHARS), a=Left("answer", _INDEXED_CHARS))
        .values_list("conversation_id", "id", "q", "a")
    )
    by_conversation = {conversation_id: (turn_id, q, a) for conversation_id, turn_id, q, a in turns}
    return {row.id: _match(row, by_conversation.get(row.id), words) for row in found}


def _turns(caller: Caller, words: Sequence[str]) -> QuerySet[Turn]:
    """The caller's finished turns with every one of these words; the terms are as the index has them."""
    query = " & ".join(f"'{word}':*" for word in words)
    indexed: Any = Func(F("question"), F("answer"), function="chat_words", output_field=SearchVectorField())
    return (
        Turn.objects.exclude(state=TurnState.RUNNING)
        .filter(asked_by_id=caller.user_id, conversation__isnull=False)
        .annotate(words=indexed)
        .filter(words=SearchQuery(query, search_type="raw", config="simple"))
    )


def _match(row: Conversation, turn: tuple[UUID, str, str] | None, words: Sequence[str]) -> Match:
    if turn is None or all(word in row.title.lower() for word in words):
        return Match("title", turn[0] if turn else None, _snippet(row.title, words))
    turn_id, question, answer = turn
    hits = {name: _pattern(words).search(said) for name, said in (("question", question), ("answer", answer))}
    where: Literal["question", "answer"] = "question" if hits["question"] else "answer"
    return Match(where, turn_id, _snippet(question if where == "question" else answer, words))


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})", re.IGNORECASE)


def _snippet(text: str, words: Sequence[str]) -> tuple[Piece, ...]:
    """The words around the first hit, in one line, with the hits apart."""
    # Only the neighbourhood is put on one line: a whole book need not be.
    pattern = _pattern(words)
    hit = pattern.search(text)
    start = max(0, hit.start() - 2 * _BEFORE) if hit else 0
    near = " ".join(text[start : start + 4 * SNIPPET_CHARS].split())
    hit = pattern.search(near)
    at = max(0, hit.start() - _BEFORE) if hit else 0
    # Begin with a whole word where one is near.
    at = near.find(" ", at, hit.start()) + 1 or at if hit and at else at
    shown = near[at : at + SNIPPET_CHARS]
    cut_before, cut_after = (
        start + at > 0,
        at + SNIPPET_CHARS < len(near) or start + 4 * SNIPPET_CHARS < len(text),
    )
    pieces: list[Piece] = []
    end = 0
    for found in pattern.finditer(shown):
        pieces += [(shown[end : found.start()], False), (found.group(), True)]
        end = found.end()
    pieces.append((shown[end:], False))
    first = [("…", False)] if cut_before else []
    last = [("…", False)] if cut_after else []
    return tuple(piece for piece in (*first, *pieces, *last) if piece[0])
