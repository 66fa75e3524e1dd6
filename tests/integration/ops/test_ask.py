"""What `manage.py ask` says beside the answer."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from app.chat.events import TurnEvent
from app.ops.management.commands.ask import Command
from retrieval.collections import collection_create
from tests.factories import user_make


@pytest.mark.parametrize(("reason", "said"), [("length", "reached the output limit"), ("stop", "")])
def test_an_answer_that_was_cut_off_is_marked(reason: str, said: str) -> None:
    notes = StringIO()
    Command(stderr=notes)._show(TurnEvent(1, "done", {"finish_reason": reason}), [])
    assert said in notes.getvalue()
    assert bool(notes.getvalue()) == bool(said)


@pytest.mark.parametrize(
    ("page", "heading", "said"),
    [
        (None, "", "[1] costs.md"),
        (3, "", "[1] costs.md, page 3"),
        (None, "Costs › Example", "[1] costs.md, Costs › Example"),
        (3, "Costs\nName | Sum", "[1] costs.md, page 3, Costs"),
    ],
)
def test_a_source_is_named_with_its_place(page: int | None, heading: str, said: str) -> None:
    answered = StringIO()
    source = {"n": 1, "title": "costs.md", "page": page, "heading": heading}
    usage = {"price": None, "estimated": False, "input_tokens": 5, "output_tokens": 2}
    Command(stdout=answered)._show(TurnEvent(2, "usage", usage), [source])
    assert answered.getvalue().split("\n")[1:-1] == [said, "5 tokens in, 2 out, price unknown"]


@pytest.mark.django_db
def test_a_collection_that_is_not_there_is_answered_with_those_that_are() -> None:
    user = user_make(is_staff=True)
    assert user.default_team_id is not None
    collection_create(name="Reports", team_id=user.default_team_id, created_by=f"user:{user.id}")
    with pytest.raises(CommandError, match=r"No collection “Report” .* Collections here: .*“Reports”"):
        call_command("ask", "Hello", "--collection", "Report")
