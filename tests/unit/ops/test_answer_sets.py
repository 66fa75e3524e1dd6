"""What an answer is worth, by its words."""

from pathlib import Path

import pytest

from app.common.errors import InvalidInput
from app.ops.answer_sets import Case, Sent, cases_read, judge
from tests.stack import REPOSITORY

NOTICE = Sent("contract.pdf", "The notice period is three\nmonths, at the end of a quarter.")
OTHER = Sent("letter.pdf", "Three months were agreed.")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("It is **three months** [1].", 1),
        ("Three  Months.", 1),
        ("It is 3 months.", 1),
        ("It is 13 months.", 0),
        ("It is thirty-three monthsX.", 0),
        ("", 0),
    ],
)
def test_a_fact_is_found_as_words_of_its_own(answer: str, found: int) -> None:
    case = Case("How long?", (("three months", "3 months"),))
    judged = judge(case, answer, [NOTICE], frozenset())
    assert (judged.found, judged.right, judged.retrieved) == (found, bool(found), 1)


@pytest.mark.parametrize(
    ("documents", "cited", "counted"),
    [
        ((), frozenset({1}), 1),
        ((), frozenset({2}), 1),
        ((), frozenset(), 0),
        (("contract.pdf",), frozenset({1}), 1),
        (("contract.pdf",), frozenset({2}), 0),
    ],
)
def test_a_fact_is_cited_by_a_marked_passage_that_holds_it(
    documents: tuple[str, ...], cited: frozenset[int], counted: int
) -> None:
    case = Case("How long?", (("three months",), ("end of a quarter",)), frozenset(documents))
    judged = judge(case, "Three months [1][2].", [NOTICE, OTHER], cited)
    assert (judged.facts, judged.found, judged.cited, judged.right) == (2, 1, counted, False)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The passages do not mention this.", True),
        ("I can’t find it in the documents.", True),
        ("Dazu steht nichts; es wird nicht erwähnt.", True),
        ("Das geht aus den Texten nicht hervor.", True),
        ("Les documents ne précisent pas ce point.", True),
        ("Los pasajes no mencionan eso.", True),
        ("Everybody has 25 days.", False),
        ("It is not mentioned, but usually it is 25 days.", False),
        ("Three months.", False),
    ],
)
def test_what_cannot_be_known_is_rightly_refused(answer: str, right: bool) -> None:
    judged = judge(Case("How many?", (("25",),), refuse=True), answer, [NOTICE], frozenset())
    assert judged.right is right


def test_the_sample_asks_what_the_handbook_answers() -> None:
    handbook = REPOSITORY / "docs" / "handbook"
    cases = cases_read(REPOSITORY / "docs" / "evaluation" / "handbook.jsonl")
    assert sum(case.refuse for case in cases) == 4
    for case in cases:
        if not case.refuse:
            texts = [Sent(name, (handbook / name).read_text()) for name in sorted(case.documents)]
            judged = judge(case, "", texts, frozenset())
            assert judged.retrieved == judged.facts, case.question


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "Line 2"),
        ("[]", "Line 2"),
        ('{"question": " ", "facts": ["a"]}', "`question` is empty"),
        ('{"question": "a"}', "names no `facts`"),
        ('{"question": "a", "facts": [1]}', "a fact is a text"),
        ('{"question": "a", "facts": ["*"]}', "a fact is a text that is not empty"),
        ('{"question": "a", "facts": ["b"], "documents": "c"}', "`documents` is a list"),
        ('{"question": "a", "refuse": "yes"}', "`refuse` is true or false"),
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(f'{{"question": "a", "facts": ["b"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=said):
        cases_read(file)


def test_a_file_that_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        cases_read(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidInput, match="holds no question"):
        cases_read(tmp_path / "empty.jsonl")
