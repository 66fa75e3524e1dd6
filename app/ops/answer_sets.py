"""Questions with the facts that a right answer holds: reading the file, and judging an answer. Pure.

One line of JSON per question, see `docs/evaluation.md`: {question, facts, documents?} for one that can be answered, and
{question, refuse: true, facts?} for one that cannot. Answers are judged by their words: the same one
always counts the same.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.common.errors import InvalidInput

_MARKUP = re.compile(r"[*_`#>|]+")
_SPACE = re.compile(r"\s+")
_REFUSALS = re.compile(
    r"\b(do(es)?|did) not (contain|hold|say|mention|include|provide|state|specify|give|cover|have|know)"
    r"|\b(don't|doesn't|didn't) (contain|hold|say|mention|include|provide|state|specify|give|cover|have|know)"
    r"|\b(is|are|was|were) not (mentioned|stated|given|provided|specified|included|covered|found|in the)"
    r"|\b(isn't|aren't) (mentioned|stated|given|provided|specified|included|covered|found|in the)"
    r"|\b(can ?not|can't|unable to|could not|couldn't) (be )?(answer|find|found|determine|tell|say)"
    r"|\b(no|not enough|insufficient) (information|answer|mention|details|passage|data|indication)"
    r"|\bnothing (is )?(found|said)"
    r"|\bkeine? (angaben?|informationen?|hinweise?|antwort|aussage)\b|\bnichts (dazu|darüber|gefunden)"
    r"|\bnicht (enthalten|erwähnt|angegeben|genannt|gefunden|hervor|beantworten|beantwortet|aufgeführt|beschrieben)"
    r"|\bne (contient|contiennent|mentionne|mentionnent|précise|précisent) (pas|aucun)|\baucune (information|mention)"
    r"|\bno (contiene|contienen|menciona|mencionan|se menciona|hay información|se encuentra)"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One question."""

    question: str
    facts: tuple[tuple[str, ...], ...]
    """Each by the ways it may be worded. Of a question that cannot be answered: what would be made up."""
    documents: frozenset[str] = frozenset()
    """Names of the documents that hold the answer; empty: whichever does."""
    refuse: bool = False
    """Right is to say that the documents do not tell."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A passage that went to the model."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What one answer is worth. Facts are counted; the rest is whether."""

    facts: int
    retrieved: int
    """Facts that stand in the passages that were sent: more cannot be asked of the model."""
    found: int
    """Facts in the answer."""
    cited: int
    """Of those, the ones that a marked passage holds."""
    refused: bool
    right: bool
    """Every fact found, or rightly refused."""


def cases_read(path: Path) -> list[Case]:
    """Read a set. Errors: InvalidInput naming the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{path} cannot be read: {exc}.") from exc
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(_case(json.loads(line)))
        except (ValueError, KeyError, TypeError) as exc:
            raise InvalidInput(
                f"Line {number} of {path} is no question: {exc}. Each line is JSON: "
                '{"question": …, "facts": […]} or {"question": …, "refuse": true}.'
            ) from exc
    if not found:
        raise InvalidInput(f"{path} holds no question.")
    return found


def _case(row: Mapping[str, Any]) -> Case:
    question, refuse = row["question"], row.get("refuse", False)
    if not isinstance(question, str) or not question.strip():
        raise ValueError("`question` is empty")
    if not isinstance(refuse, bool):
        raise TypeError("`refuse` is true or false")
    facts = tuple(_ways(fact) for fact in row.get("facts", []))
    if not facts and not refuse:
        raise ValueError("it names no `facts` and is not to be refused")
    documents = row.get("documents", [])
    if not isinstance(documents, list) or not all(isinstance(name, str) for name in documents):
        raise TypeError("`documents` is a list of names")
    return Case(question, facts, frozenset(documents), refuse)


def _ways(fact: object) -> tuple[str, ...]:
    ways = (fact,) if isinstance(fact, str) else fact
    if not isinstance(ways, list | tuple) or not ways:
        raise TypeError("a fact is a text, or a list of ways to word it")
    words = tuple(_plain(way) for way in ways if isinstance(way, str))
    if len(words) < len(ways) or not all(words):
        raise TypeError("a fact is a text that is not empty")
    return words


def judge(case: Case, answer: str, sent: Sequence[Sent], cited: frozenset[int]) -> Judged:
    """Compare one answer with its case; `cited` are the numbers, from 1, of the passages that it marks."""
    said = _plain(answer)
    passages = [_plain(passage.text) for passage in sent]
    marked = [
        text
        for number, (passage, text) in enumerate(zip(sent, passages, strict=True), start=1)
        if number in cited and (not case.documents or passage.title in case.documents)
    ]
    found = [fact for fact in case.facts if _in(fact, said)]
    refused = not said or bool(_REFUSALS.search(said))
    return Judged(
        facts=len(case.facts),
        retrieved=sum(any(_in(fact, text) for text in passages) for fact in case.facts),
        found=len(found),
        cited=sum(any(_in(fact, text) for text in marked) for fact in found),
        refused=refused,
        right=refused and not found if case.refuse else len(found) == len(case.facts),
    )


def _in(fact: Sequence[str], text: str) -> bool:
    """Whether one wording stands there as words of its own: `12` is not in `2012`."""
    return any(re.search(rf"(?<!\w){re.escape(way)}(?!\w)", text) for way in fact)


def _plain(text: str) -> str:
    shown = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return _SPACE.sub(" ", _MARKUP.sub("", shown)).strip().casefold()
