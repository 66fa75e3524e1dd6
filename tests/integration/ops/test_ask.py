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


@pytest.mark.django_db
def test_a_collection_that_is_not_there_is_answered_with_those_that_are() -> None:
    user = user_make(is_staff=True)
    assert user.default_team_id is not None
    collection_create(name="Reports", team_id=user.default_team_id, created_by=f"user:{user.id}")
    with pytest.raises(CommandError, match=r"No collection “Report” .* Collections here: .*“Reports”"):
        call_command("ask", "Hello", "--collection", "Report")
