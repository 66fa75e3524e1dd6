"""Files that go along with a conversation, on a real model and a real embedder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.accounts.selectors import Caller, viewer_of
from app.catalog.models import Deployment
from app.chat import asking
from app.chat.attaching import attachments_collection
from app.chat.models import Conversation, SentPassage, Turn
from app.chat.planning import fitted
from app.chat.services import conversation_delete
from app.common.errors import Conflict, NotFound
from app.common.models import uuid7
from app.gate import routing
from retrieval import storage
from retrieval.models import Collection, Document
from retrieval.removal import document_remove
from retrieval.selectors import collections_readable
from retrieval.services import document_create, document_ingest
from tests.integration.chat.conftest import take
from tests.integration.chat.upstream import answered, said

pytestmark = pytest.mark.django_db

SHORT = "The boiler in Leiden is serviced by Mevrouw Okonkwo every second Thursday of March.\n"
LONG = "\n\n".join(f"Room {n} of the depot holds {n * 7} crates of blue enamel pots." for n in range(900))
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)

Attach = Callable[..., Document]


@pytest.fixture
def attach(caller: Caller, conversation: Conversation, originals_dir: object) -> Attach:
    """Attaches a file and has it read."""

    def make(content: str | bytes, name: str = "note.txt", *, ingest: bool = True) -> Document:
        row, _ = document_create(
            collection=attachments_collection(caller=caller, conversation=conversation),
            name=name,
            content=content.encode() if isinstance(content, str) else content,
            created_by=f"user:{caller.user_id}",
        )
        if ingest:
            document_ingest(row.pk)
            row.refresh_from_db()
        return row

    return make


def test_a_short_file_goes_whole_and_is_a_source(gather: Callable[..., Any], attach: Attach) -> None:
    row = attach(SHORT)
    taken = take(gather("Who services the boiler?", attachments=[row.pk], max_output_tokens=16))
    turn = Turn.objects.get(id=taken.ask.turn_id)
    sent = SentPassage.objects.get(turn=turn)
    event = taken.named("turn")[0]
    assert [a["way"] for a in event["attachments"]] == ["whole"]
    assert event["estimate"]["input_tokens"]["attachments"] > 0
    assert (sent.text.strip(), sent.whole, sent.document_id) == (SHORT.strip(), True, row.pk)
    assert taken.named("sources")[0]["items"][0]["document_id"] == str(row.pk)
    assert turn.attachments == event["attachments"]


def test_what_is_attached_later_is_as_private_as_the_conversation_became(
    caller: Caller, conversation: Conversation
) -> None:
    assert attachments_collection(caller=caller, conversation=conversation).level == "internal"
    Conversation.objects.filter(pk=conversation.pk).update(level="private")
    assert attachments_collection(caller=caller, conversation=conversation).level == "private"
    Conversation.objects.filter(pk=conversation.pk).update(level="public")
    assert attachments_collection(caller=caller, conversation=conversation).level == "private"


def test_what_goes_whole_stands_first_and_stays_for_the_next_question(
    gather: Callable[..., Any], attach: Attach
) -> None:
    row = attach(SHORT)
    take(gather("Who services the boiler?", attachments=[row.pk], max_output_tokens=8))
    ask, estimate = fitted(gather("And when?"))
    assert [a.document_id for a in ask.attachments] == [row.pk]
    assert SHORT.strip() in str(ask.attached.messages[0].content)
    assert estimate.attachments == ask.attached.tokens > 0
    # Another branch never had it.
    assert fitted(gather("And when?", parent=None))[0].attachments == ()


def test_a_long_file_is_searched_and_only_in_its_own_branch(
    gather: Callable[..., Any], attach: Attach, conversation: Conversation
) -> None:
    row, other = attach(LONG), attach(SHORT)
    ask, estimate = fitted(gather("How many crates are in room 321?", attachments=[row.pk]))
    assert ask.attached.searched == {row.pk}
    assert ask.collections == (conversation.attachments_id,)
    assert (estimate.attachments, estimate.retrieved_max > 0) == (0, True)
    taken = answered(gather("How many crates are in room 321?", attachments=[row.pk]), said("2247 [1]"))
    stored = SentPassage.objects.filter(turn_id=taken.ask.turn_id)
    assert {p.document_id for p in stored} == {row.pk}
    assert other.pk not in {p.document_id for p in stored}
    assert any("Room 321 " in p.text for p in stored)
    assert not any(p.whole for p in stored)


def test_a_question_that_names_nothing_in_it_gets_the_beginning(
    gather: Callable[..., Any], attach: Attach
) -> None:
    row = attach(LONG)
    taken = answered(gather("Zusammenfassung bitte, qwertz.", attachments=[row.pk]), said("ok"))
    stored = list(SentPassage.objects.filter(turn_id=taken.ask.turn_id).order_by("start"))
    assert stored
    assert {p.document_id for p in stored} == {row.pk}


def test_a_file_that_is_not_read_yet_is_said_by_name_and_counts_as_nothing_in_a_draft(
    gather: Callable[..., Any], attach: Attach
) -> None:
    row = attach(SHORT, "plan.txt", ingest=False)
    with pytest.raises(Conflict, match=r"“plan.txt” is still being read") as caught:
        gather("Well?", attachments=[row.pk])
    assert (caught.value.name, caught.value.retry_after) == ("attachment_not_ready", 2)
    ask, estimate = fitted(gather("Well?", attachments=[row.pk], draft=True))
    assert [p.public()["status"] for p in ask.attached.placed] == ["queued"]
    assert estimate.attachments == 0


def test_a_file_that_cannot_be_read_says_why(gather: Callable[..., Any], attach: Attach) -> None:
    row = attach(b"%PDF-1.4 nothing", "broken.pdf")
    with pytest.raises(Conflict, match=r"“broken.pdf” could not be read"):
        gather("Well?", attachments=[row.pk])


def test_strangers_files_and_removed_ones_are_not_found(gather: Callable[..., Any], attach: Attach) -> None:
    with pytest.raises(NotFound):
        gather("Well?", attachments=[uuid7()])
    row = attach(SHORT)
    take(gather("Who?", attachments=[row.pk], max_output_tokens=4))
    document_remove(document=row, done_by="user:x")
    assert gather("And when?").attachments == ()


def test_a_picture_goes_as_one_where_the_model_takes_pictures(
    gather: Callable[..., Any], attach: Attach
) -> None:
    row = attach(DOT, "plan.png")
    with pytest.raises(Conflict):
        gather("What is this?", attachments=[row.pk])
    Deployment.objects.update(capabilities=["images"], tokenizer="o200k_base")
    for item in (*vars(asking).values(), *vars(routing).values()):
        if hasattr(item, "forget"):
            item.forget()
    ask, estimate = fitted(gather("What is this?", attachments=[row.pk]))
    assert [p.way for p in ask.attached.placed] == ["picture"]
    assert estimate.attachments > 0


def test_files_go_with_their_conversation(attach: Attach, conversation: Conversation) -> None:
    row = attach(SHORT)
    conversation.refresh_from_db()
    collection = conversation.attachments_id
    conversation_delete(conversation=conversation, done_by="user:x")
    assert not Collection.objects.filter(pk=collection).exists()
    assert not Document.objects.filter(pk=row.pk).exists()
    assert storage.blob_size(row.sha256) is None


def test_nobody_else_of_the_team_may_read_them(attach: Attach, caller: Caller) -> None:
    row = attach(SHORT)
    colleague = replace(caller, user_id=uuid7())
    assert row.collection_id in collections_readable(viewer_of(caller)).values_list("pk", flat=True)
    assert row.collection_id not in collections_readable(viewer_of(colleague)).values_list("pk", flat=True)


def test_the_answer_before_that_is_still_being_written_is_told(
    gather: Callable[..., Any], conversation: Conversation
) -> None:
    taken = take(gather("Say hello.", max_output_tokens=4))
    Turn.objects.filter(id=taken.ask.turn_id).update(state="running", answer="")
    ask = gather("And then?")
    assert [n["code"] for n in ask.notices] == ["history_unfinished"]
    assert ask.history == ()
