"""Every test that a page of field faults names exists, and each case stands there once."""

import re
from pathlib import Path

import pytest

_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_CASE = re.compile(r"^\| ([A-Z]\d\d) \|", re.MULTILINE)
PAGES = sorted((Path(__file__).resolve().parents[2] / "docs").glob("faults-*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tests_named_for_field_faults_exist(page: Path, repository: Path) -> None:
    named = _NAMED.findall(page.read_text())
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (repository / file).is_file()
        or (test and not re.search(rf"^(async )?def {test}\(", (repository / file).read_text(), re.MULTILINE))
    ]
    assert named
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_case_is_told_once_a_heading_and_held_by_a_test(page: Path) -> None:
    for section in page.read_text().split("\n## ")[1:]:
        cases = _CASE.findall(section)
        assert len(cases) == len(set(cases))
        rows = [line for line in section.split("\n") if _CASE.match(line)]
        assert [row for row in rows if not _NAMED.search(row)] == []
