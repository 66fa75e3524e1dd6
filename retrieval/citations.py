"""Which passages an answer marks as its sources. Pure."""

import re
from dataclasses import dataclass

# [3], [1, 2], [2–4], and the full-width brackets some models write; not a link, a footnote or a year.
_MARKER = re.compile(r"[ \t]*[\[【](\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)[\]】](?!\()")
_CODE = re.compile(r"(```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`)", re.DOTALL)
_NUMBER = re.compile(r"(\d+)\s*[–-]\s*(\d+)|(\d+)")


@dataclass(frozen=True, slots=True)
class Citations:
    """An answer's markers, looked up among the passages that were sent."""

    text: str
    """The answer with every marker that names no passage taken out."""
    cited: frozenset[int]
    """Numbers of the passages it marks."""
    removed: int
    """How many numbers named no passage."""


def citations(text: str, sent: int) -> Citations:
    """Read the `[n]` markers of an answer to which `sent` passages were given. Code is left as it is."""
    cited: set[int] = set()
    removed = 0

    def settle(match: re.Match[str]) -> str:
        nonlocal removed
        numbers = _numbers(match[1])
        if 0 in numbers:
            # No passage has this number and no model is told of one: it is an index or a reference of the text.
            return match[0]
        known = [n for n in numbers if n <= sent]
        removed += len(numbers) - len(known)
        cited.update(known)
        if len(known) == len(numbers):
            return match[0]
        blank = match[0][: len(match[0]) - len(match[0].lstrip())]
        return f"{blank}[{', '.join(map(str, known))}]" if known else ""

    # Splitting by a pattern with one group gives prose at even places and code at odd ones.
    parts = _CODE.split(text)
    parts[::2] = [_MARKER.sub(settle, part) for part in parts[::2]]
    return Citations("".join(parts), frozenset(cited), removed)


def _numbers(inside: str) -> list[int]:
    found: list[int] = []
    for match in _NUMBER.finditer(inside):
        if match[3]:
            found.append(int(match[3]))
        else:
            first, last = int(match[1]), int(match[2])
            # A range the wrong way round, or one over half the document, is no citation: its ends are.
            found.extend(range(first, last + 1) if first <= last <= first + 20 else (first, last))
    return found
