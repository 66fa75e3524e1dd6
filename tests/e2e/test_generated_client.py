"""The generated Python client, unpatched, from nothing to an answer with its sources."""

from collections.abc import Iterator

import pytest

from clients.python.tessera_client import Tessera, TesseraError, every
from tests.e2e.live import Live, until

pytestmark = pytest.mark.live


@pytest.fixture
def tessera(live: Live) -> Iterator[Tessera]:
    with Tessera(live.run["url"], key=live.run["api_key"]) as client:
        yield client


def test_from_nothing_to_an_answer_with_its_sources(tessera: Tessera) -> None:
    model = tessera.models_list()["items"][0]["id"]
    collection = tessera.collections_create({"name": "By the client"})
    kept = tessera.documents_create(collection["id"], file=("n.txt", b"The heron stands still in the reeds."))
    until(lambda: tessera.documents_get(kept["id"])["status"] == "ready" or None, "the document is read")
    found = tessera.search({"query": "heron", "collections": [collection["id"]], "limit": 3})
    assert "heron" in found["items"][0]["text"]
    conversation = tessera.conversations_create({"title": "t", "collections": [collection["id"]]})
    asked = {"text": "Where does the heron stand?", "model": model, "max_output_tokens": 16}
    assert tessera.precount(asked | {"conversation": conversation["id"]})["verdict"] in {"ok", "capped"}
    with tessera.turns_create(conversation["id"], asked, idempotency_key="once") as events:
        seen = list(events)
    assert [e.name for e in seen][-1] == "done"
    turn = next(e.data["turn_id"] for e in seen if e.name == "turn")
    text = "".join(e.data.get("text", "") for e in seen if e.name == "delta")
    assert tessera.turns_sources(turn)["items"][0]["document_id"] == kept["id"]
    # Again with the same key: the same turn. Read on from the middle: the rest of it.
    with tessera.turns_create(conversation["id"], asked, idempotency_key="once") as events:
        assert next(events).data["turn_id"] == turn
    with tessera.turns_events(turn, last_event_id=str(seen[2].id)) as events:
        assert next(e.id for e in events) == seen[3].id
    messages = list(every(tessera.messages_list, conversation["id"], limit=1))
    assert messages[0]["id"] == turn or messages[0]["answer"] == text
    whole = tessera.turns_create_whole(conversation["id"], asked | {"parent": turn})
    assert whole["usage"]
    tessera.collections_delete(collection["id"])


def test_a_refusal_has_the_servers_code(tessera: Tessera) -> None:
    with pytest.raises(TesseraError) as caught:
        tessera.conversations_get("01a22c41-890e-74fc-98a8-dcec8c304c4b")
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    assert caught.value.request_id
