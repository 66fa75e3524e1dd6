"""One conversation as five kinds of server report it, and what it costs by hand, to the last digit."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
import pytest

from app.accounts.models import Team
from app.billing.pricing import charge_lines, complete, total
from app.billing.services import bootstrap_defaults, price_set, reservation_hold, reservation_settle
from app.billing.types import Attempt, Hold, Payer, Rate
from app.common.models import uuid7
from app.gate.attempts import _reported
from inference_client.eventstream import frame_bytes
from inference_client.usage import buckets
from tests.unit.inference_client.streams import lines, parser, sse

# 2,000 tokens read, of which 1,200 came from a cache and 300 went into one; 400 written, of which 150 reasoning. Each
# server tells as much of it as its format can. Per million: input 2.999999999, read from cache 0.300000007, written
# to cache 3.750000011 (for an hour 6.000000019), output 15.000000013, reasoning 12.000000017.
RATES = tuple(
    Rate(component=name, price=Decimal(price))
    for name, price in (
        ("input", "2.999999999"),
        ("cache_read", "0.300000007"),
        ("cache_write", "3.750000011"),
        ("cache_write_long", "6.000000019"),
        ("output", "15.000000013"),
        ("reasoning", "12.000000017"),
    )
)

OPENAI = {
    "prompt_tokens": 2000, "completion_tokens": 400, "total_tokens": 2400,
    "prompt_tokens_details": {"cached_tokens": 1200}, "completion_tokens_details": {"reasoning_tokens": 150},
}  # fmt: skip
ANTHROPIC = {"input_tokens": 500, "cache_read_input_tokens": 1200, "cache_creation_input_tokens": 300}
GEMINI = {
    "promptTokenCount": 2000, "cachedContentTokenCount": 1200, "candidatesTokenCount": 250,
    "thoughtsTokenCount": 150, "totalTokenCount": 2400,
}  # fmt: skip
BEDROCK = {
    "inputTokens": 500, "cacheReadInputTokens": 1200, "cacheWriteInputTokens": 300, "outputTokens": 400,
    "totalTokens": 2400,
}  # fmt: skip
HOUR = {**ANTHROPIC, "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}}


def anthropic(usage: Mapping[str, Any]) -> bytes:
    return sse(
        {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 400}},
    )


TABLE = [
    #   800 × 2.999999999 + 1200 × 0.300000007 + 250 × 15.000000013 + 150 × 12.000000017
    # = 2399.9999992      + 360.0000084        + 3750.00000325      + 1800.00000255       = 8310.0000134
    ("chat.completions", sse({"choices": [], "usage": OPENAI}), "0.0083100000134"),
    #   500 × 2.999999999 + 1200 × 0.300000007 + 300 × 3.750000011 + 400 × 15.000000013
    # = 1499.9999995      + 360.0000084        + 1125.0000033      + 6000.0000052          = 8985.0000164
    ("messages", anthropic(ANTHROPIC), "0.0089850000164"),
    #   of the 300 written 200 for an hour: 100 × 3.750000011 + 200 × 6.000000019 = 375.0000011 + 1200.0000038
    #   1499.9999995      + 360.0000084        + 1575.0000049      + 6000.0000052          = 9435.000018
    ("messages", anthropic(HOUR), "0.009435000018"),
    # as OpenAI's: the answer is told without its thoughts
    ("streamGenerateContent", sse({"candidates": [], "usageMetadata": GEMINI}), "0.0083100000134"),
    # as Anthropic's
    (
        "converse-stream",
        frame_bytes({":message-type": "event", ":event-type": "metadata"}, orjson.dumps({"usage": BEDROCK})),
        "0.0089850000164",
    ),
    #   2000 × 2.999999999 + 400 × 15.000000013 = 5999.999998 + 6000.0000052 = 12000.0000032: it tells of no cache
    (
        "api/chat",
        lines({"done": True, "done_reason": "stop", "prompt_eval_count": 2000, "eval_count": 400}),
        "0.0120000000032",
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("route", "body", "price"), TABLE, ids=["openai", "anthropic", "1 h", "gemini", "bedrock", "ollama"]
)
def test_the_price_is_right_to_the_last_digit(route: str, body: bytes, price: str, team: Team) -> None:
    bootstrap_defaults()
    reader = parser(route)
    reader.feed(body)
    reader.flush()
    usage = reader.usage()
    assert (usage.input_tokens, usage.output_tokens) == (2000, 400)
    used = _reported(usage)
    assert sum(used.quantities().values()) == 2400
    assert used.cache_read == buckets(usage).cache_read

    lines_ = charge_lines(complete(RATES), quantities=used.quantities(), prompt_tokens=used.input_total)
    assert total(line.amount for line in lines_) == Decimal(price)

    price_set(price_key="five", rates=RATES, approved_by="tests")
    hold = Hold(
        reservation_id=uuid7(), payer=Payer(team_id=team.id), kind="chat", price_key="five", input_tokens=2000,
        output_tokens=400,
    )  # fmt: skip
    reservation_hold(hold=hold)
    settled = reservation_settle(
        reservation_id=hold.reservation_id, attempts=(Attempt(buckets=used),), hold=hold
    )
    assert settled.price == Decimal(price)
