"""Titles that a model gives: booked, cleared, and never over one that a person gave."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from app.billing.models import LedgerEntry, Reservation, UsageAttempt
from app.catalog.models import Deployment
from app.chat.models import Conversation
from app.chat.titling import title_clean, title_cut, title_make
from app.gate.clients import client_close
from inference_client.testing.fault_server import FaultServer, Script
from tests.api.scripted import scripted_port
from tests.integration.chat.upstream import said

pytestmark = pytest.mark.django_db
QUESTION = "How many boats\n\ndid the boat house lend in 1884, and to whom?"


def titled(ask: Any, *scripts: Script) -> list[Any]:
    """Make a title against the scripted server; what it saw."""
    port = scripted_port()

    async def story() -> list[Any]:
        async with FaultServer(*scripts, port=port) as server:
            await title_make(ask)
            await client_close()
            return list(server.seen)

    return async_to_sync(story)()


@pytest.fixture
def asked(gather: Callable[..., Any], conversation: Conversation, settings: Settings) -> Any:
    settings.TITLE_MODEL = Deployment.objects.filter(purpose="chat").values_list("public_name", flat=True)[0]
    Conversation.objects.update(title=title_cut(QUESTION))
    return gather(QUESTION)


def test_the_title_is_kept_and_booked_to_the_asker(asked: Any, conversation: Conversation) -> None:
    titled(asked, said("“Boats of 1884.”\n\nMore words"))
    conversation.refresh_from_db()
    assert conversation.title == "Boats of 1884"
    assert set(UsageAttempt.objects.values_list("kind", flat=True)) == {"title"}
    assert {e.team_id for e in LedgerEntry.objects.all()} == {conversation.team_id}
    assert set(LedgerEntry.objects.values_list("call_kind", flat=True)) == {"title"}
    assert set(Reservation.objects.values_list("state", flat=True)) == {"settled"}


def test_a_title_of_ones_own_stands_and_costs_nothing(asked: Any, conversation: Conversation) -> None:
    Conversation.objects.update(title="Mine")
    assert titled(asked, said("Boats")) == []
    conversation.refresh_from_db()
    assert conversation.title == "Mine"


def test_only_a_model_that_is_cleared_sees_the_question(asked: Any, conversation: Conversation) -> None:
    Deployment.objects.update(clearance="public")
    Conversation.objects.update(level="private")
    assert titled(replace(asked, level="private"), said("Boats")) == []
    assert not Reservation.objects.exists()


def test_where_the_model_fails_the_beginning_of_the_question_stays(
    asked: Any, conversation: Conversation
) -> None:
    titled(asked, *[Script(status=500)] * 4)
    conversation.refresh_from_db()
    assert conversation.title == "How many boats did the boat house lend in 1884, and to whom?"
    assert not Reservation.objects.filter(state="held").exists()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("**Boats of 1884**", "Boats of 1884"),
        ("\n\n# Title\nrest", "Title"),
        ("「船」", "「船」"),
        ("  \n ", ""),
        ("x" * 200, "x" * 60),
    ],
)
def test_what_a_model_says_becomes_one_line(text: str, title: str) -> None:
    assert title_clean(text) == title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What  does\nit cost?", "What does it cost?"),
        (f"{'word ' * 11}words{'x' * 40}", ("word " * 11).rstrip() + "…"),
        ("問" * 70, "問" * 59 + "…"),
    ],
)
def test_without_a_model_the_question_names_the_conversation_in_whole_words(
    question: str, title: str
) -> None:
    assert title_cut(question) == title
