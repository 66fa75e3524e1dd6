"""The official OpenAI client, unpatched: what it reports is what the ledger has, to the token."""

from typing import Any

import openai
import pytest

from tests.e2e.live import Live

pytestmark = pytest.mark.live
QUESTION = [{"role": "user", "content": "Say hello in one short sentence."}]


@pytest.fixture(scope="module")
def client(live: Live) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{live.run['url'].rstrip('/')}/v1", api_key=live.run["api_key"], max_retries=0
    )


@pytest.fixture(scope="module")
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id


def booked(live: Live, completion_id: str) -> tuple[int, int, int]:
    """(input tokens, output tokens, entries) that the ledger has for a completion."""
    turn = completion_id.removeprefix("chatcmpl-")
    rows = live.sql(
        """
        SELECT component, sum(quantity)::bigint, count(DISTINCT e.id) FROM billing_ledgerline l
        JOIN billing_ledgerentry e ON e.id = l.entry_id JOIN billing_reservation r ON r.id = e.reservation_id
        WHERE r.turn_id = %s GROUP BY component
        """,
        turn,
    )
    by = {name: quantity for name, quantity, _ in rows}
    given = sum(by.get(n, 0) for n in ("input", "cache_read", "cache_write"))
    return given, by.get("output", 0) + by.get("reasoning", 0), max(n for *_, n in rows)


def test_a_whole_answer(client: openai.OpenAI, live: Live, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=QUESTION, max_tokens=24)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in {"stop", "length"}
    assert answer.usage is not None
    assert booked(live, answer.id) == (answer.usage.prompt_tokens, answer.usage.completion_tokens, 1)


def test_a_streamed_answer_with_usage(client: openai.OpenAI, live: Live, model: str) -> None:
    stream = client.chat.completions.create(
        model=model, messages=QUESTION, max_tokens=24, stream=True, stream_options={"include_usage": True}
    )
    chunks: list[Any] = list(stream)
    usage = chunks[-1].usage
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] in {"stop", "length"}
    assert usage is not None
    assert booked(live, chunks[0].id) == (usage.prompt_tokens, usage.completion_tokens, 1)


def test_a_usage_chunk_is_sent_only_when_asked_for(client: openai.OpenAI, live: Live, model: str) -> None:
    chunks: list[Any] = list(
        client.chat.completions.create(model=model, messages=QUESTION, max_tokens=8, stream=True)
    )
    assert all(c.usage is None for c in chunks)
    assert all(c.choices for c in chunks)
    assert booked(live, chunks[0].id)[1] > 0


def test_sources_come_with_the_answer_when_collections_are_named(
    client: openai.OpenAI, live: Live, model: str
) -> None:
    collections = live.http.get("/api/v1/collections/").json()["items"]
    handbook = next(c["id"] for c in collections if c["name"] == "Tessera handbook")
    question = [{"role": "user", "content": "What does Tessera count?"}]
    answer = client.chat.completions.create(
        model=model, messages=question, max_tokens=24, extra_body={"collections": [handbook]}
    )
    own = answer.model_extra["tessera"]
    assert own["sources"][0]["text"]
    stored = live.http.get(f"/api/v1/turns/{own['turn_id']}/sources/").json()["items"]
    assert [s["passage_id"] for s in stored] == [s["passage_id"] for s in own["sources"]]


def test_embeddings_in_both_forms(client: openai.OpenAI, live: Live) -> None:
    name = live.sql("SELECT public_name FROM catalog_deployment WHERE purpose = 'embedding'")[0][0]
    floats = client.embeddings.create(model=name, input=["one", "two"], encoding_format="float")
    packed = client.embeddings.create(model=name, input=["one", "two"])
    assert len(floats.data) == len(packed.data) == 2
    assert floats.data[0].embedding == pytest.approx(packed.data[0].embedding, abs=1e-6)
    assert floats.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("key", "wanted", "wishes", "error"),
    [
        ("tsr_wrong", None, {}, openai.AuthenticationError),
        (None, "no-such-model", {}, openai.NotFoundError),
        (None, None, {"n": 2}, openai.UnprocessableEntityError | openai.BadRequestError),
        (None, None, {"messages": []}, openai.UnprocessableEntityError | openai.BadRequestError),
        (None, None, {"messages": [{"role": "user", "content": "word " * 9000}]}, openai.BadRequestError),
    ],
)
def test_refusals_are_errors_that_the_client_knows(
    client: openai.OpenAI,
    model: str,
    key: str | None,
    wanted: str | None,
    wishes: dict[str, object],
    error: type[Exception],
) -> None:
    used = client.with_options(api_key=key) if key else client
    asked = {"model": wanted or model, "messages": QUESTION, "max_tokens": 8, **wishes}
    with pytest.raises(openai.APIStatusError) as caught:
        used.chat.completions.create(**asked)
    assert isinstance(caught.value, error)
    assert caught.value.message
