"""Counting with a model's own `tokenizer.json`, by the package `tokenizers`, which is loaded when first needed."""

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import TracebackType

from inference_client.tokens import TokenCounter, TokenizerFileError


def counter_from_file(path: Path) -> TokenCounter:
    """The counter that the file at `path` describes, exact for the model it belongs to. Raises TokenizerFileError."""
    try:
        return _loaded(path, path.stat().st_mtime_ns)
    except OSError as exc:
        raise TokenizerFileError(
            f"The tokenizer file {path.name} cannot be read, so prompts cannot be counted with it. Check its path."
        ) from exc


@lru_cache(maxsize=16)
def _loaded(path: Path, changed: int) -> TokenCounter:
    """`changed` is part of the key, so that a file that is replaced is read again."""
    try:
        library = import_module("tokenizers")
    except ImportError:
        raise TokenizerFileError(
            "Counting with a tokenizer file needs the package tokenizers. Install requirements/embedded.txt."
        ) from None
    with _Readable(path):
        tokenizer = library.Tokenizer.from_str(path.read_bytes().decode("utf-8", "replace"))

    def count(text: str) -> int:
        # Half a character cannot cross into the library.
        clean = text.encode("utf-8", "replace").decode()
        return len(tokenizer.encode(clean, add_special_tokens=False).ids)

    def decode(tokens: list[int]) -> str:
        if any(token < 0 or tokenizer.id_to_token(token) is None for token in tokens):
            raise KeyError(tokens)
        return str(tokenizer.decode(tokens, skip_special_tokens=False))

    return TokenCounter(f"file:{path.name}", count, decode, own_file=True)


class _Readable:
    """Tells of a file that is no tokenizer. The package raises bare Exception for it, and only that is caught."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc_type is Exception:
            raise TokenizerFileError(
                f"The file {self._path.name} is not a tokenizer of the form tokenizer.json. "
                "Take the one beside the model."
            ) from exc
