"""What the page says may be uploaded is what the readers take."""

import re

from retrieval.accepted import SUFFIXES, WORDS
from retrieval.parsing.formats import formats


def test_every_suffix_that_a_reader_names_is_in_the_file_dialog() -> None:
    named = {suffix for item in formats() for suffix in re.findall(r"\.\w+", item.label)}
    assert {".docx", ".xls", ".eml", ".odp"} <= named
    assert named <= set(SUFFIXES.split(","))


def test_every_reader_is_in_the_words() -> None:
    first = {re.split(r"[ /]| \(", item.label)[0].casefold() for item in formats() if item.label}
    words = WORDS.casefold()
    missing = {word for word in first if word not in words}
    assert missing <= {"rich"}
    assert "rtf" in words
