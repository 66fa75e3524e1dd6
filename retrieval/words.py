"""What the keyword search sees of a text: its words, and pairs of characters where words are not set apart. Pure."""

import re
import unicodedata
from dataclasses import dataclass

# Chinese, Japanese and Korean, and the scripts of Thai, Lao, Burmese and Khmer: written without blanks, or, in
# Korean, with endings that no configuration of PostgreSQL takes off.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class Words:
    """A text made ready for `to_tsvector`."""

    spaced: str
    """Words and numbers, a blank between them: PostgreSQL's parser would take `and/or` for a file, `x.y` for a host."""
    pairs: str
    """Pairs of neighbouring characters from unspaced scripts, a blank between them."""


class _Kept(dict[int, int]):
    """Translates what is neither letter, digit nor a mark upon one (vowel signs of Hindi, accents) to a blank."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        kept = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = code if kept else 32
        return self[code]


_KEPT = _Kept()


def words_of(text: str) -> Words:
    """Split a text into words and character pairs, compatibility forms made plain (full-width digits, ligatures)."""
    plain = unicodedata.normalize("NFKC", text).translate(_KEPT)
    pairs: list[str] = []

    def take(match: re.Match[str]) -> str:
        run = match[0]
        pairs.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        return " "

    spaced = _UNSPACED.sub(take, plain)
    return Words(" ".join(spaced.split()), " ".join(pairs))
