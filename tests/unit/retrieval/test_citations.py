"""Markers of an answer."""

import pytest

from retrieval.citations import citations


@pytest.mark.parametrize(
    ("text", "sent", "kept", "cited", "removed"),
    [
        ("Yes [1].", 2, "Yes [1].", {1}, 0),
        ("Yes [1, 2] and [2][1].", 2, "Yes [1, 2] and [2][1].", {1, 2}, 0),
        ("Yes [7].", 2, "Yes.", set(), 1),
        ("Yes [1, 7].", 2, "Yes [1].", {1}, 1),
        ("Range [1–3].", 3, "Range [1–3].", {1, 2, 3}, 0),
        ("Wide 【2】.", 2, "Wide 【2】.", {2}, 0),
        ("A link [1](http://x) stays.", 1, "A link [1](http://x) stays.", set(), 0),
        ("In [2024] it was [0].", 1, "In [2024] it was [0].", set(), 0),
        ("Code `a[5]` and\n```\nb[9]\n```\nthen [1]", 1, "Code `a[5]` and\n```\nb[9]\n```\nthen [1]", {1}, 0),
        ("No marker.", 3, "No marker.", set(), 0),
        ("Nothing was sent [1].", 0, "Nothing was sent.", set(), 1),
        ("", 0, "", set(), 0),
    ],
)
def test_markers(text: str, sent: int, kept: str, cited: set[int], removed: int) -> None:
    found = citations(text, sent)
    assert (found.text, found.cited, found.removed) == (kept, cited, removed)
