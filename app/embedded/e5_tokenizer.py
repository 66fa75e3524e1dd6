"""The tokenizer of multilingual-e5-small, rebuilt from its own vocabulary.

Its normalisation is a table of characters, kept beside `tokenizer.json` in `normalise.json` and applied here:
the library's own form of that table is a compiled trie which the weight file does not hold.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from app.embedded.e5_file import Vocabulary

MAX_TOKENS = 512
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SPACES = re.compile(" {2,}")


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text as the model will see it."""

    ids: tuple[int, ...]
    """At most 512, begin and end included."""
    truncated: bool
    """True when the text was longer and its end was left out."""


def tokenizer_build(vocabulary: Vocabulary) -> Tokenizer:
    """A `tokenizers` object with the same ids as the official one, given normalised text."""
    built = Tokenizer(models.Unigram(list(vocabulary.pieces), vocabulary.unknown, False))
    built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    built.add_special_tokens(list(SPECIAL))
    built.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", vocabulary.begin), ("</s>", vocabulary.end)]
    )
    return built


def tokenizer_save(vocabulary: Vocabulary, folder: Path) -> None:
    """Write `tokenizer.json` and `normalise.json` into `folder`."""
    tokenizer_build(vocabulary).save(str(folder / "tokenizer.json"), pretty=False)
    table = {str(code): text for code, text in vocabulary.replacements.items()}
    (folder / "normalise.json").write_text(json.dumps(table))


class E5Tokenizer:
    """Text → ids, cut at 512."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        table = json.loads((folder / "normalise.json").read_text())
        self._table = {int(code): text for code, text in table.items()}
        self._table[0] = " "

    def _normalise(self, text: str) -> str:
        return _SPACES.sub(" ", text.translate(self._table))

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Ids of each text. A NUL byte counts as a space, so nothing after it is lost."""
        found = self._tokenizer.encode_batch_fast([self._normalise(text) for text in texts])
        return [_cut(encoding.ids) for encoding in found]


def _cut(ids: list[int]) -> Encoded:
    if len(ids) <= MAX_TOKENS:
        return Encoded(ids=tuple(ids), truncated=False)
    return Encoded(ids=(*ids[: MAX_TOKENS - 1], ids[-1]), truncated=True)
