"""Sentences without a mark are matched to the passage that has their words, and to none where none has."""

import json
import os
import random
import re
from pathlib import Path

import pytest

from retrieval.attribution import SHARE, matches

IR = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "ir"
PUMP = (
    "The blue pump delivers forty litres of water a minute. It is oiled every second week by the night shift. "
    "Its filter is a mesh of steel."
)
VALVE = (
    "The red valve closes at noon on working days. Nobody opens it on Sundays, when the plant stands still."
)
GERMAN = "Die Pumpe fördert vierzig Liter Wasser in der Minute. Sie wird jede zweite Woche geölt."
CHINESE = "蓝色水泵每分钟输送四十升水。夜班工人每两周给它上一次油。"
SALARY = "In 2021 the plant employed 312 people, of whom 48 worked at night in three teams."
PASSAGES = (PUMP, VALVE, GERMAN, CHINESE, SALARY)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("The blue pump delivers forty litres of water a minute.", [1]),
        ("According to the manual, the blue pump delivers forty litres of water a minute.", [1]),
        ("It is oiled every second week by the night shift, and its filter is a mesh of steel.", [1]),
        ("**The red valve closes at noon on working days.**", [2]),
        ("- Nobody opens it on Sundays, when the plant stands still.", [2]),
        ("The pump is blue.\nThe red valve closes at noon on working days.", [2]),
        ("Die Pumpe fördert vierzig Liter Wasser in der Minute.", [3]),
        ("蓝色水泵每分钟输送四十升水。", [4]),
        ("In 2021 the plant employed 312 people.", [5]),
        # A number that the passage does not have.
        ("In 2022 the plant employed 312 people, of whom 48 worked at night in three teams.", []),
        # Marked by the model, before or behind its full stop.
        ("The blue pump delivers forty litres of water a minute [1].", []),
        ("The blue pump delivers forty litres of water a minute. [1]", []),
        (
            "The blue pump delivers forty litres of water a minute [1]. The red valve closes at noon on working days.",
            [2],
        ),
        # Of the same things, but something else.
        ("The red pump and the blue valve stand beside each other in the hall of the plant.", []),
        ("The filter of the valve is changed at noon by whoever opens the plant on Sundays.", []),
        ("Water is oiled every minute by forty blue people of the night.", []),
        # Too short, a question, an announcement, code.
        ("Forty litres.", []),
        ("Is it oiled every second week by the night shift?", []),
        ("The red valve closes at noon on working days:", []),
        ("```\nThe red valve closes at noon on working days.\n```", []),
        ("I do not know; nothing about that is written in the passages you gave me.", []),
        ("", []),
    ],
)
def test_a_sentence_matches_what_says_the_same(answer: str, numbers: list[int]) -> None:
    found = matches(answer, PASSAGES)
    assert [match.number for match in found] == numbers
    assert all(SHARE <= match.score <= 1 and match.text in answer for match in found)


def test_without_passages_there_is_no_match() -> None:
    assert matches("The blue pump delivers forty litres of water a minute.", []) == ()
    assert matches("The blue pump delivers forty litres of water a minute.", ["", "  \n"]) == ()


def _sentences(text: str, least: int) -> list[str]:
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", text) if len(s.strip()) > least]


@pytest.mark.skipif(not IR.exists(), reason="The shared collections are absent: set TESSERA_SHARED.")
@pytest.mark.parametrize(
    ("folder", "least"),
    [("xquad/en", 40), ("xquad/de", 40), ("xquad/ru", 40), ("xquad/ar", 40), ("xquad/zh", 15)],
)
def test_real_paragraphs(folder: str, least: int) -> None:
    """Each of five neighbouring paragraphs, most about one subject: its own sentences are found, even with every
    eighth word gone; those of the paragraph beside them, which is about the same subject, are not."""
    path = next((IR / folder).glob("corpus.jsonl"), None) or next((IR / folder).rglob("corpus.jsonl"))
    texts = [json.loads(line)["text"] for line in path.read_text().splitlines()]
    choose = random.Random(folder)
    own = cut = foreign = tried = 0
    for _ in range(60):
        at, right = choose.randrange(1, len(texts) - 5), choose.randrange(5)
        passages = texts[at : at + 5]
        here, beside = _sentences(passages[right], least), _sentences(texts[at - 1], least)
        if not here or not beside:
            continue
        tried += 1
        sentence, other = choose.choice(here), choose.choice(beside)
        words = sentence.split() if least > 15 else [sentence]
        shortened = " ".join(word for place, word in enumerate(words) if place % 8 != 3)
        own += [m.number for m in matches(sentence, passages)][:1] == [right + 1]
        cut += [m.number for m in matches(shortened, passages)][:1] == [right + 1]
        foreign += bool(matches(other, passages))
    assert tried > 50
    assert own >= 0.95 * tried
    assert cut >= 0.9 * tried
    assert foreign <= 0.02 * tried
