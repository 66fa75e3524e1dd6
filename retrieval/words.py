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


# Vowel signs of Arabic and Hebrew and the stroke that only lengthens a word: mostly left out, and never asked for.
_SIGNS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")


class _Kept(dict[int, int | None]):
    """Translates what is neither letter, digit nor a mark upon one (vowel signs of Hindi, accents) to a blank, and what
    nobody sees (soft hyphens, joiners, directions) to nothing: it stands inside of words."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        category = unicodedata.category(character)
        kept = character.isalnum() or category.startswith("M")
        unseen = category == "Cf" or _SIGNS.match(character)
        self[code] = None if unseen else code if kept else 32
        return self[code]


_KEPT = _Kept()
# C++ and C# are more than the letter: that stays, and a word of their own stands beside it.
_SIGNED = re.compile(r"(?<!\w)([A-Za-z])(\+\+|#)(?!\w)")
_SAID = {"++": "plusplus", "#": "sharp"}


def words_of(text: str) -> Words:
    """Split a text into words and character pairs, compatibility forms made plain (full-width digits, ligatures)."""
    plain = unicodedata.normalize("NFKC", text)
    plain = _SIGNED.sub(lambda found: f"{found[1]} {found[1]}{_SAID[found[2]]} ", plain).translate(_KEPT)
    pairs: list[str] = []

    def take(match: re.Match[str]) -> str:
        run = match[0]
        pairs.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        return " "

    spaced = _UNSPACED.sub(take, plain)
    return Words(" ".join(spaced.split()), " ".join(pairs))
