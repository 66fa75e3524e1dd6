"""Real prompts: questions and abstracts that nobody here wrote, laid out as a turn lays them out."""

import gzip
import json
import os
import random
from functools import cache
from pathlib import Path

import pytest

from inference_client.types import Message

IR = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "ir"
NAMES = ("scifact", "hotpotqa-100", "cranfield")
needed = pytest.mark.skipif(not IR.exists(), reason="no public texts: set TESSERA_SHARED")
SYSTEM = "You answer questions for the people of one organisation. Be brief and exact."


@cache
def _texts(name: str) -> tuple[list[str], list[str]]:
    """(documents, questions)."""
    packed, plain = IR / name / "corpus.jsonl.gz", IR / name / "corpus.jsonl"
    corpus = gzip.decompress(packed.read_bytes()).decode() if packed.exists() else plain.read_text()
    queries = (IR / name / "queries.jsonl").read_text()
    documents, questions = (
        [json.loads(row)["text"] for row in rows.splitlines()] for rows in (corpus, queries)
    )
    return documents, questions


def prompts(n: int, *, seed: int = 7, documents: int = 4, longest: int = 10_000) -> list[tuple[Message, ...]]:
    """`n` prompts: a system text, some earlier questions, up to `documents` passages with a question.

    A passage has at most `longest` characters.
    """
    chance = random.Random(seed)
    found = []
    for at in range(n):
        texts, questions = _texts(NAMES[at % len(NAMES)])
        messages = [Message("system", SYSTEM)]
        for _ in range(chance.randint(0, 2)):
            messages.append(Message("user", chance.choice(questions)))
            messages.append(
                Message("assistant", chance.choice(texts)[: chance.randint(50, min(600, longest))])
            )
        passages = [
            f'<passage number="[{number}]">\n{text[:longest]}\n</passage>'
            for number, text in enumerate(chance.sample(texts, chance.randint(0, documents)), 1)
        ]
        messages.append(Message("user", "\n".join([*passages, "", chance.choice(questions)])))
        found.append(tuple(messages))
    return found
