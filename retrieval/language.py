"""Which language a text is in, by its script, its function words and its letters. Pure.

Good enough to choose how words are reduced to their stems; a text it cannot tell is left unstemmed.
"""

import re
import unicodedata
from collections import Counter, defaultdict

from retrieval.function_words import FUNCTION_WORDS, LETTERS

SAMPLE = 20_000
"""Characters looked at: more change no vote."""
_LEAST_SHARE = 0.04
"""Share of all words that must be the winner's function words, else the language is unknown."""
_LEAST_LEAD = 1.15
_LETTER = 0.8
"""Weight of a letter that few languages have, beside a function word's."""

CONFIGURATIONS = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""PostgreSQL's text search configuration by language; every other language is searched unstemmed."""

# A first look at the letters; the lists below decide where several languages share a script.
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")),
    ("th", re.compile(r"[\u0e01-\u0e7f]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hy", re.compile(r"[\u0531-\u058f]")),
    ("he", re.compile(r"[\u05d0-\u05ea]")),
    ("ta", re.compile(r"[\u0b80-\u0bff]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("pa", re.compile(r"[\u0a00-\u0a7f]")),
    ("gu", re.compile(r"[\u0a80-\u0aff]")),
    ("te", re.compile(r"[\u0c00-\u0c7f]")),
    ("kn", re.compile(r"[\u0c80-\u0cff]")),
    ("ml", re.compile(r"[\u0d00-\u0d7f]")),
    ("si", re.compile(r"[\u0d80-\u0dff]")),
    ("lo", re.compile(r"[\u0e80-\u0eff]")),
    ("my", re.compile(r"[\u1000-\u109f]")),
    ("ka", re.compile(r"[\u10a0-\u10ff]")),
    ("km", re.compile(r"[\u1780-\u17ff]")),
    ("deva", re.compile(r"[\u0900-\u097f]")),
    ("arab", re.compile(r"[\u0620-\u06ff]")),
    ("cyrl", re.compile(r"[\u0400-\u04ff]")),
    ("latn", re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")),
)
_WEIGHT = {"zh": 3.0, "ja": 3.0, "ko": 2.0}
"""A character says more there than a letter does."""


def _votes(languages: dict[str, str]) -> dict[str, tuple[tuple[str, float], ...]]:
    """Language and weight by word: a word that several languages share says less."""
    owners: dict[str, list[str]] = {}
    for language, words in languages.items():
        for word in set(words.split()):
            owners.setdefault(word, []).append(language)
    return {word: tuple((language, 1 / len(those)) for language in those) for word, those in owners.items()}


_VOTES = {script: _votes(languages) for script, languages in FUNCTION_WORDS.items()}
_LETTER_VOTES = {
    script: _votes({language: " ".join(letters) for language, letters in languages.items()})
    for script, languages in LETTERS.items()
}
_WORD = re.compile(r"[^\s\d.,;:!?()\[\]{}\"'“”„«»।،؟/\\|<>=+*#@_–—-]+")


def language_of(text: str) -> str:
    """ISO 639-1 code of the text's main language, or an empty string when it cannot be told."""
    sample = unicodedata.normalize("NFKC", text[:SAMPLE])
    letters = {name: len(found.findall(sample)) * _WEIGHT.get(name, 1.0) for name, found in _SCRIPTS}
    # Japanese is written with Chinese characters too, but Chinese never with kana.
    if letters["ja"] > 0.05 * letters["zh"]:
        letters["ja"] += letters.pop("zh")
    script, most = max(letters.items(), key=lambda item: item[1])
    if most == 0:
        return ""
    return _elected(script, sample) if script in _VOTES else script


def _elected(script: str, sample: str) -> str:
    words = _WORD.findall(sample.lower())
    letters = _LETTER_VOTES.get(script, {})
    votes: defaultdict[str, float] = defaultdict(float)
    for word, times in Counter(words).items():
        for language, weight in _VOTES[script].get(word, ()):
            votes[language] += times * weight
        for letter in set(word) & letters.keys():
            for language, weight in letters[letter]:
                votes[language] += times * _LETTER * weight
    ranked = [*sorted(votes.items(), key=lambda item: -item[1])[:2], ("", 0.0), ("", 0.0)]
    (first, best), (_, second) = ranked[:2]
    if best < max(0.5, _LEAST_SHARE * len(words)) or best < _LEAST_LEAD * second:
        return ""
    return first
