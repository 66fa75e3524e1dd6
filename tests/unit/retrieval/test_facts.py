"""The shared documents hold their facts: eighty files of twenty formats that nobody here made."""

import pytest

from retrieval.parsing import ocr
from tests.unit.retrieval.facts import FOLDER, check_all

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="shared documents are not here"),
    pytest.mark.skipif(not ocr.available(), reason="text recognition is not installed"),
]
FLOOR = 0.97


def test_documents_hold_their_facts() -> None:
    results = list(check_all())
    found = sum(item.found for item in results)
    missing = [(item.name, dict(fact), item.said) for item in results for fact in item.missing]
    assert len(results) == 80
    assert found / (found + len(missing)) >= FLOOR, missing
    # A refusal is a sentence that names its file.
    assert all(item.name in item.said for item in results if not item.pages)
