"""`manage.py eval_answers`: models side by side, on the real servers and on one whose answer is known."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Sum

from app.accounts.models import Team, User
from app.billing.models import LedgerEntry, Reservation
from app.billing.services import price_set
from app.catalog.models import Deployment
from app.catalog.selectors import Target
from app.catalog.services import backend_put, deployment_put
from app.chat.models import Turn
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from retrieval.services import document_ingest
from tests.e2e.flood import servers
from tests.factories import CHAT_PRICE, collection_make, document_make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("originals_dir")]

QUESTIONS = (
    {
        "question": "How long is the notice period?",
        "facts": [["three months", "3 months"]],
        "documents": ["note.txt"],
    },
    {"question": "How long is the notice period in Peru?", "refuse": True},
)
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(user: User, team: Team, chat_target: Target, tmp_path: Path) -> Run:
    """Runs the command on a collection with one document; gives its JSON."""
    collection = collection_make(team=team, user=user, name="Contracts", level="public")
    document = document_make(collection=collection, content=b"The notice period is three months.")
    document_ingest(document.pk)
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))

    def made(*options: str) -> dict[str, Any]:
        out = StringIO()
        named = ("--collection", "Contracts", "--as", user.email, "--json", "--max-output", "8")
        call_command(
            "eval_answers", str(tmp_path / "set.jsonl"), *named, *options, stdout=out, stderr=StringIO()
        )
        return json.loads(out.getvalue())

    return made


@pytest.fixture
def scripted() -> Iterator[str]:
    """A model that always knows."""
    words = ("It is", " three", " months", " [1].")
    with servers(knowing=Script(answer=Answer(words=words, input_tokens=40))) as urls:
        backend = backend_put(name="knowing", kind="openai-compatible", base_url=urls["knowing"])
        deployment_put(
            backend=backend, upstream_model="knowing", purpose=Deployment.Purpose.CHAT.value,
            public_name="knowing", price_key="knowing", context_window=4096, slots=2,
        )  # fmt: skip
        price_set(price_key="knowing", rates=CHAT_PRICE, approved_by="tests")
        yield "knowing"


def test_real_models_stand_side_by_side_with_what_the_ledger_says(run: Run, chat_target: Target) -> None:
    deployment_put(
        backend=backend_put(
            name="Twin", kind=chat_target.kind, base_url=chat_target.base_url, api_key=chat_target.api_key
        ),
        upstream_model=chat_target.upstream_model, purpose=Deployment.Purpose.CHAT.value, public_name="twin",
        price_key=chat_target.price_key, context_window=4096, slots=2,
    )  # fmt: skip
    before = list(LedgerEntry.objects.values_list("id", flat=True))
    found = run("--models", f"{chat_target.public_name},twin", "--yes", "--answers")
    assert [column["model"] for column in found["models"]] == [chat_target.public_name, "twin"]
    first = found["models"][0]
    assert (first["questions"], first["failed"], first["estimated"]) == (2, 0, 0)
    assert (first["facts"]["expected"], first["facts"]["retrieved"]) == (1, 1)
    assert first["refusals"]["expected"] == 1
    assert first["ttft_ms"]["p50"] > 0
    booked = LedgerEntry.objects.filter(call_kind="evaluation", deployment_id=chat_target.deployment_id)
    sums = booked.aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"))
    assert (first["tokens"]["input"], first["tokens"]["output"]) == (sums["input"], sums["output"])
    everything = LedgerEntry.objects.exclude(id__in=before)
    assert set(everything.values_list("team_id", "account_id")) == {(None, None)}
    assert set(everything.values_list("call_kind", flat=True)) == {"evaluation", "embedding"}
    assert (
        sum(Decimal(column["price"]) for column in found["models"])
        == everything.aggregate(sum=Sum("price"))["sum"]
    )
    assert not Turn.objects.exists()
    assert not Reservation.objects.filter(state="held").exists()


def test_a_right_answer_counts_and_a_made_up_one_does_not(run: Run, scripted: str) -> None:
    found = run("--models", scripted, "--yes")
    column = found["models"][0]
    assert column["facts"] == {"expected": 1, "retrieved": 1, "found": 1, "cited": 1}
    assert column["refusals"] == {"expected": 1, "right": 0, "wrong": 0}
    assert column["right"] == 1
    assert column["tokens"] == {"input": 80, "output": 8}
    assert "answer" not in found["answers"][0]


def test_the_limit_takes_the_first_questions(run: Run, scripted: str) -> None:
    assert run("--models", scripted, "--yes", "--limit", "1")["models"][0]["questions"] == 1


def test_nothing_is_sent_before_somebody_agrees_to_the_price(run: Run, scripted: str) -> None:
    with pytest.raises(CommandError, match=r"Nothing was sent\. Say --yes"):
        run("--models", scripted)
    assert not LedgerEntry.objects.filter(call_kind="evaluation").exists()


def test_a_model_that_is_not_there_is_said_before_anything_is_sent(run: Run, scripted: str) -> None:
    with pytest.raises(CommandError, match="There is no model `other`"):
        run("--models", f"{scripted},other", "--yes")
    assert not LedgerEntry.objects.filter(call_kind="evaluation").exists()
