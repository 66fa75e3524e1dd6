"""The whole turn on a real model, a real embedder and a real ledger. No test asserts the words of an answer."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from app.accounts.models import Team, User
from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.billing.selectors import limits_remaining
from app.billing.services import budget_set
from app.billing.types import Payer
from app.chat.events import TurnEvent
from app.chat.models import Conversation, SentPassage, Turn
from app.chat.runs import Run
from app.chat.types import Ask
from app.common.money import money
from retrieval.collections import collection_create
from retrieval.models import Collection, Document
from retrieval.services import document_create, document_ingest
from tests.integration.chat.conftest import take
from tests.integration.chat.upstream import answered, said

pytestmark = pytest.mark.django_db

Gather = Callable[..., Ask]
FACT = "The boiler in Leiden is serviced by Mevrouw Okonkwo every second Thursday of March.\n"


def reservation(turn: Turn) -> Reservation:
    return Reservation.objects.get(id=turn.reservation_id)


def held_anywhere() -> int:
    """Open reservations, after the windows were shown to hold nothing for the payer either."""
    for row in Reservation.objects.all():
        payer = Payer(team_id=row.team_id, account_id=row.account_id)
        assert [limit.held for limit in limits_remaining(payer) if limit.held] == []
    return Reservation.objects.filter(state="held").count()


@pytest.fixture
def library(team: Team, user: User, servers: None, originals_dir: object) -> Collection:
    """A collection with one short document that is ready."""
    collection = collection_create(
        name="House", team_id=team.id, level="public", created_by=f"user:{user.id}"
    )
    document, _ = document_create(
        collection=collection, name="house.txt", content=FACT.encode(), created_by=f"user:{user.id}"
    )
    document_ingest(document.id)
    document.refresh_from_db()
    assert document.status == "ready", document.error
    return collection


def test_a_turn_streams_is_stored_and_booked_to_the_token(gather: Gather) -> None:
    taken = take(gather("Say hello in one short sentence.", max_output_tokens=40))
    turn = Turn.objects.get(id=taken.ask.turn_id)
    usage = taken.named("usage")[0]
    attempt = UsageAttempt.objects.get(reservation_id=turn.reservation_id)
    entries = list(LedgerEntry.objects.filter(reservation_id=turn.reservation_id))

    assert taken.names[0] == "turn"
    assert taken.names[-2:] == ["usage", "done"]
    assert "".join(d.get("text", "") for d in taken.named("delta")) == taken.run.log.text
    assert turn.answer == taken.run.log.text != ""
    assert turn.state == "done"
    assert attempt.source == "server_final"
    assert not attempt.estimated
    assert attempt.raw_usage["prompt_tokens"] == usage["input_tokens"]
    assert attempt.raw_usage["completion_tokens"] == usage["output_tokens"]
    assert usage["price"] == money(sum((e.price for e in entries), Decimal(0)), "EUR")
    assert reservation(turn).state == "settled"
    assert held_anywhere() == 0


def test_the_passage_sent_is_the_source_shown_and_the_one_stored(gather: Gather, library: Collection) -> None:
    taken = take(gather("Who services the boiler in Leiden?", collections=[library.id], max_output_tokens=40))
    shown = taken.named("sources")[0]["items"]
    stored = list(SentPassage.objects.filter(turn_id=taken.ask.turn_id).order_by("number"))

    assert [s["n"] for s in shown] == [s.number for s in stored] == [1]
    assert stored[0].text == shown[0]["text"]
    assert "Okonkwo" in stored[0].text
    assert FACT[stored[0].start : stored[0].end] == stored[0].text
    assert taken.names.index("sources") < taken.names.index("delta")
    kinds = set(
        LedgerEntry.objects.filter(reservation_id=stored[0].turn.reservation_id).values_list(
            "call_kind", flat=True
        )
    )
    assert kinds == {"chat", "embedding"}


def test_the_documents_speak_first_with_a_demonstration_model(gather: Gather, library: Collection) -> None:
    taken = take(gather("Who services the boiler in Leiden?", collections=[library.id], max_output_tokens=16))
    quotes = taken.named("quotes")[0]["items"]
    assert quotes[0]["text"] in FACT
    assert quotes[0]["n"] == 1
    assert taken.names.index("quotes") < taken.names.index("delta")
    assert any(n["code"] == "demonstration_model" for n in taken.named("turn")[0]["notices"])


def test_an_unmarked_sentence_with_the_words_of_a_passage_is_matched(
    gather: Gather, library: Collection
) -> None:
    """The scripted model says the document's own sentence without a mark, and one of its own."""
    sentence = FACT.strip()
    ask = gather("Who services the boiler in Leiden?", collections=[library.id])
    taken = answered(ask, said(f"{sentence} I would also ask the neighbours about their garden fence."))
    turn = Turn.objects.get(id=ask.turn_id)
    assert [(match["n"], match["text"]) for match in turn.matches] == [(1, sentence)]
    assert taken.named("matches") == [{"items": turn.matches}]
    assert taken.names.index("matches") < taken.names.index("usage")
    assert not SentPassage.objects.filter(turn=turn, cited=True).exists()


def test_nothing_found_is_said(gather: Gather, team: Team, user: User, servers: None) -> None:
    empty = collection_create(name="Empty", team_id=team.id, level="public", created_by=f"user:{user.id}")
    taken = take(gather("Where is the key?", collections=[empty.id], max_output_tokens=16))
    assert taken.named("sources") == [{"items": []}]
    notices = {n["code"]: n["message"] for n in taken.named("notice")}
    assert "Empty" in notices["nothing_found"]


def test_what_is_still_being_read_is_said(gather: Gather, library: Collection) -> None:
    """One document is ready, two wait for the worker, and a new version of none hides the old."""
    for name in ("pump.txt", "roof.txt"):
        content = f"The {name} is looked after by somebody else.".encode()
        document_create(collection=library, name=name, content=content, created_by="user:x")
    taken = take(gather("Who services the boiler in Leiden?", collections=[library.id], max_output_tokens=16))
    (notice,) = [n for n in taken.named("notice") if n["code"] == "still_reading"]
    assert notice["documents"] == 2
    assert "2 documents" in notice["message"]
    assert taken.named("sources")[0]["items"]

    Document.objects.filter(status="queued").update(serving_version=1)
    taken = take(gather("And in Leiden?", collections=[library.id], max_output_tokens=16))
    assert not [n for n in taken.named("notice") if n["code"] == "still_reading"]


def test_a_refused_turn_leaves_nothing_behind(gather: Gather, team: Team) -> None:
    budget_set(scope="team", unit="money", limit=Decimal("0.000001"), period="month", team_id=team.id)
    taken = take(gather("A question that costs more than a millionth."))
    assert taken.names == ["error"]
    assert taken.run.failure is not None
    assert (taken.run.failure.status, taken.run.failure.code) == (402, "budget_exhausted")
    assert not Turn.objects.filter(id=taken.ask.turn_id).exists()
    assert held_anywhere() == 0


def test_stop_keeps_the_text_and_settles(gather: Gather) -> None:
    def stop_at_first_text(run: Run, event: TurnEvent) -> None:
        if event.name == "delta":
            run.signal.stop("stopped")

    taken = take(
        gather("Count from one to three hundred in words.", max_output_tokens=400), each=stop_at_first_text
    )
    turn = Turn.objects.get(id=taken.ask.turn_id)
    attempt = UsageAttempt.objects.get(reservation_id=turn.reservation_id)
    assert taken.named("done") == [{"finish_reason": "stopped"}]
    assert (turn.state, turn.answer) == ("stopped", taken.run.log.text)
    # llama.cpp tells its count with every piece.
    assert (attempt.outcome, attempt.source, attempt.estimated) == ("stopped", "server_running", False)
    assert reservation(turn).state == "settled"
    assert held_anywhere() == 0


def test_stop_while_nothing_was_sent_gives_the_hold_back(gather: Gather, library: Collection) -> None:
    def stop_before_retrieval(run: Run, event: TurnEvent) -> None:
        if event.name == "turn":
            run.signal.stop("stopped")

    taken = take(gather("Who services the boiler?", collections=[library.id]), each=stop_before_retrieval)
    turn = Turn.objects.get(id=taken.ask.turn_id)
    assert turn.state == "stopped"
    assert held_anywhere() == 0
    assert turn.answer == ""


def unreachable(ask: Ask) -> Ask:
    return replace(ask, targets=tuple(replace(t, base_url="http://127.0.0.1:9/v1") for t in ask.targets))


def test_without_a_chat_server_the_question_still_gets_its_passages(
    gather: Gather, library: Collection
) -> None:
    taken = take(unreachable(gather("Who services the boiler in Leiden?", collections=[library.id])))
    turn = Turn.objects.get(id=taken.ask.turn_id)
    assert taken.named("error")[0]["detail"]["part"] == "chat server"
    assert taken.named("sources")[0]["items"]
    assert any(n["code"] == "no_model_answered" for n in taken.named("notice"))
    assert turn.state == "failed"
    assert turn.question == "Who services the boiler in Leiden?"
    assert held_anywhere() == 0


def test_the_next_deployment_answers_when_the_first_is_away(gather: Gather) -> None:
    ask = gather("Say hello.", max_output_tokens=16)
    broken = unreachable(ask).targets[0]
    taken = take(replace(ask, targets=(broken, *ask.targets)))
    assert taken.names[-1] == "done"
    turn = Turn.objects.get(id=ask.turn_id)
    attempts = UsageAttempt.objects.filter(reservation_id=turn.reservation_id).order_by("number")
    assert [a.outcome for a in attempts] == ["failed", "completed"]


def test_without_an_embedder_the_failing_part_is_named(gather: Gather, library: Collection) -> None:
    ask = gather("Who services the boiler?", collections=[library.id])
    assert ask.embedding is not None
    taken = take(replace(ask, embedding=replace(ask.embedding, base_url="http://127.0.0.1:9/v1")))
    assert taken.named("error")[0]["code"] == "embedder_unavailable"
    assert taken.named("error")[0]["detail"]["part"] == "embedder"
    assert held_anywhere() == 0


@pytest.mark.parametrize("text", ["", "   \n"])
def test_an_empty_question_is_refused_before_anything_is_held(gather: Gather, text: str) -> None:
    taken = take(gather(text))
    assert taken.run.failure is not None
    assert (taken.run.failure.code, taken.run.failure.status) == ("invalid", 422)
    assert not Reservation.objects.exists()


def test_a_question_longer_than_the_window_is_refused_with_both_numbers(gather: Gather) -> None:
    taken = take(gather("word " * 20_000))
    assert taken.run.failure is not None
    assert taken.run.failure.code == "context_length_exceeded"
    assert taken.run.failure.detail["input_tokens"] > taken.run.failure.detail["context_window"]
    assert held_anywhere() == 0
    assert not Turn.objects.filter(id=taken.ask.turn_id).exists()


def test_a_follow_up_carries_questions_and_answers_but_no_passages(
    gather: Gather, library: Collection, conversation: Conversation
) -> None:
    first = take(gather("Who services the boiler in Leiden?", collections=[library.id], max_output_tokens=16))
    second = gather("And when?", collections=[library.id], max_output_tokens=16)
    assert second.parent_id == first.ask.turn_id
    assert [(p.question, p.answer) for p in second.history] == [
        ("Who services the boiler in Leiden?", Turn.objects.get(id=first.ask.turn_id).answer)
    ]
    assert second.search_text.startswith("Who services the boiler in Leiden?")
