"""A ChatGPT export keeps its branches, dates and model names, and whatever is left out is counted (field fault A33)."""

import json
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from app.accounts.models import User
from app.accounts.selectors import caller_by_user
from app.chat.importing import conversations_of
from app.chat.messages import messages_of
from app.chat.models import Conversation, RetentionRule, Turn
from app.chat.retention import retention_run
from app.common.clock import now
from app.common.models import uuid7_of

BEGAN = 1_700_000_000.0


def message(role: str, text: str, at: float, **more: Any) -> dict[str, Any]:
    found = {
        "id": f"m{at}", "author": {"role": role}, "create_time": BEGAN + at, "recipient": "all",
        "content": {"content_type": "text", "parts": [text]}, "metadata": {},
    }  # fmt: skip
    return found | more


def tree(**nodes: tuple[str | None, dict[str, Any] | None]) -> dict[str, Any]:
    """A `mapping`: each node with its parent and its message."""
    return {
        key: {
            "id": key, "parent": parent, "message": said,
            "children": [child for child, (above, _) in nodes.items() if above == key],
        }
        for key, (parent, said) in nodes.items()
    }  # fmt: skip


def answer(text: str, at: float, model: str = "gpt-4o") -> dict[str, Any]:
    return message("assistant", text, at, metadata={"model_slug": model})


EXPORT = [
    {
        "title": "Lamps", "create_time": BEGAN, "update_time": BEGAN + 90, "conversation_id": "c1",
        "mapping": tree(
            root=(None, None),
            hidden=("root", message("system", "", 0, metadata={"is_visually_hidden_from_conversation": True})),
            q1=("hidden", message("user", "Which oil?", 1)),
            a1=("q1", answer("Colza.", 2)),
            # Answered again by another model, and the second question edited.
            a1b=("q1", answer("Colza oil.", 3, "o3")),
            q2=("a1", message("user", "How much?", 4)),
            call=("q2", message("assistant", "search()", 5, recipient="browser")),
            result=("call", message("tool", "77 litres", 6)),
            a2=("result", answer("77 litres.", 7)),
            more=("a2", answer("A year.", 8)),
            q2b=("a1", message("user", "Since when?", 9, content={
                "content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "Since when?"]})),
        ),
    },
    {"title": "Nothing", "create_time": BEGAN, "mapping": tree(root=(None, None))},
]  # fmt: skip


def test_an_export_becomes_a_tree_of_turns() -> None:
    skipped: Counter[str] = Counter()
    (made,) = conversations_of(EXPORT, skipped)
    assert [(t.parent, t.question, t.answer, t.model) for t in made.turns] == [
        (None, "Which oil?", "Colza.", "gpt-4o"),
        (0, "How much?", "77 litres.\n\nA year.", "gpt-4o"),
        (0, "Since when?", "", ""),
        (None, "Which oil?", "Colza oil.", "o3"),
    ]
    assert made.turns[1].asked_at == datetime.fromtimestamp(BEGAN + 4, UTC)
    assert {name: n for name, n in skipped.items() if n} == {
        "tool messages": 2, "pictures and files": 1, "empty conversations": 1,
    }  # fmt: skip


def branches(*nodes: str) -> list[tuple[int | None, str, str]]:
    """(parent, question, answer) of turns; a node is `key<parent:role:text`."""
    parts = [node.replace("<", ":").split(":") for node in nodes]
    said = {
        key: (above or None, message("user" if role == "u" else "assistant", text, at))
        for at, (key, above, role, text) in enumerate(parts, 1)
    }
    (made,) = conversations_of([{"create_time": BEGAN, "mapping": tree(**said)}], Counter())
    return [(turn.parent, turn.question, turn.answer) for turn in made.turns]


def test_an_answer_that_went_on_twice_is_two_branches() -> None:
    assert branches("q<:u:Q", "a<q:a:A", "one<a:a:one", "q2<one:u:Q2", "two<a:a:two", "q3<two:u:Q3") == [
        (None, "Q", "A\n\none"), (0, "Q2", ""), (None, "Q", "A\n\ntwo"), (2, "Q3", ""),
    ]  # fmt: skip
    # Asked further before it went on, in either order of the branches.
    assert branches("q<:u:Q", "a<q:a:A", "q2<a:u:Q2", "on<a:a:on") == [
        (None, "Q", "A"), (0, "Q2", ""), (None, "Q", "A\n\non"),
    ]  # fmt: skip
    assert branches("q<:u:Q", "a<q:a:A", "on<a:a:on", "q2<a:u:Q2", "q3<a:u:Q3") == [
        (None, "Q", "A\n\non"), (None, "Q", "A"), (1, "Q2", ""), (1, "Q3", ""),
    ]  # fmt: skip


@pytest.mark.django_db
def test_what_is_imported_is_kept_as_long_as_what_is_asked_today(user: User, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(EXPORT))
    rule = RetentionRule.objects.create(conversations="days", days=30)
    call_command("chat_import", str(file), user.email, stdout=StringIO())
    assert retention_run()["conversations"] == 0
    assert retention_run(moment=now() + timedelta(days=29))["conversations"] == 0
    assert retention_run(moment=now() + timedelta(days=31))["conversations"] == 1
    rule.conversations, rule.days = "not_stored", None
    rule.save()
    with pytest.raises(CommandError, match="stores none"):
        call_command("chat_import", str(file), user.email, stdout=StringIO())
    assert not Conversation.objects.exists()


def test_a_chain_of_thousands_of_messages_is_read() -> None:
    nodes: dict[str, tuple[str | None, dict[str, Any] | None]] = {"n0": (None, None)}
    for number in range(1, 4001):
        said = message("user", "q", number) if number % 2 else answer("a", number)
        nodes[f"n{number}"] = (f"n{number - 1}", said)
    mapping = {
        key: {"parent": parent, "message": said, "children": [f"n{number + 1}"] if number < 4000 else []}
        for number, (key, (parent, said)) in enumerate(nodes.items())
    }
    (made,) = conversations_of([{"create_time": BEGAN, "mapping": mapping}], Counter())
    assert len(made.turns) == 2000


@pytest.mark.parametrize("export", [{"a": 1}, "text", [1], [{"title": "no mapping"}]])
def test_what_is_no_export_is_refused(export: Any) -> None:
    with pytest.raises(Exception, match="no ChatGPT export"):
        conversations_of(export, Counter())


@pytest.mark.django_db
def test_importing_twice_adds_nothing_and_says_what_is_left_out(user: User, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps(EXPORT))
    out = StringIO()
    call_command("chat_import", str(file), user.email, stdout=out)
    assert "1 conversations with 4 turns; 1 are new." in out.getvalue()
    assert "Left out: 2 tool messages." in out.getvalue()
    call_command("chat_import", str(file), user.email, stdout=out)
    assert "0 are new" in out.getvalue()
    row = Conversation.objects.get(owner=user)
    assert (row.title, row.created_at.timestamp(), row.updated_at.timestamp()) == ("Lamps", BEGAN, BEGAN + 90)
    turns = list(Turn.objects.filter(conversation=row).order_by("id"))
    assert [t.question for t in turns] == ["Which oil?", "Which oil?", "How much?", "Since when?"]
    shown = messages_of(caller_by_user(user), turns)
    assert {m["model"] for m in shown if m["role"] == "assistant"} == {"gpt-4o", "o3", ""}


@pytest.mark.django_db
def test_odd_text_odd_times_and_torn_nodes_cost_no_conversation(user: User, tmp_path: Path) -> None:
    odd = tree(
        q=("root", message("user", "Which \ud800oil?\x00", 1e18)),
        a=("q", answer("Colza\udfff.", 2, "o\x003")),
    )
    export = [{"title": "L\x00a\ud800mps", "create_time": 1e300, "mapping": odd | {"torn": 1, "none": None}}]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(export))
    call_command("chat_import", str(file), user.email, stdout=StringIO())
    turn = Turn.objects.get(conversation__owner=user)
    assert (turn.conversation.title, turn.question, turn.answer, turn.model) == (
        "La?mps",
        "Which ?oil?",
        "Colza?.",
        "o3",
    )


@pytest.mark.django_db
def test_a_file_that_is_none_is_said(user: User, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text("no JSON")
    with pytest.raises(CommandError, match="is not JSON"):
        call_command("chat_import", str(file), user.email)
    with pytest.raises(CommandError, match="cannot be opened"):
        call_command("chat_import", str(tmp_path / "nowhere.json"), user.email)


def test_an_id_of_a_moment_is_a_uuid7_of_that_moment() -> None:
    moment = datetime.fromtimestamp(BEGAN, UTC)
    first, again, other = uuid7_of(moment, "a"), uuid7_of(moment, "a"), uuid7_of(moment, "b")
    assert first == again != other
    assert (first.version, first.int >> 80, first.variant) == (7, int(BEGAN * 1000), other.variant)
