"""What a refusal says: which limit, what is left, what was asked, when it resets, who can raise it."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from app.billing.naming import Covers
from app.billing.types import LimitState
from app.billing.wording import amount_words, capped_words, passed_words, refusal_words, reset_words
from app.common.formatting import size

D = Decimal
AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
TEAM = Covers("of team “Research”", "An owner of the team")
LIMIT = LimitState(
    scope="team",
    unit="money",
    limit=D(50),
    remaining=D("0.12"),
    spent=D("49.88"),
    resets_at=datetime(2026, 11, 30, 23, tzinfo=UTC),
    zone="Europe/Berlin",
    hard=True,
    needed=D("0.40"),
    least=D("0.15"),
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            (
                "The monthly limit of team “Research” has €0.12 left of €50.00. "
                "This message would have cost up to €0.40, and at least €0.15 with a short answer, "
                "so it was not sent and nothing was charged. "
                "It resets on 1 December, 00:00 Europe/Berlin. An owner of the team can raise it."
            ),
        ),
        (
            {"remaining": D(0), "spent": D(50), "least": None},
            (
                "The monthly limit of team “Research” is reached (€50.00 of €50.00 used). "
                "This message would have cost up to €0.40, so it was not sent and nothing was charged. "
                "It resets on 1 December, 00:00 Europe/Berlin. An owner of the team can raise it."
            ),
        ),
        (
            {
                "unit": "tokens",
                "period": "day",
                "limit": D(100_000),
                "remaining": D(100),
                "held": D(900),
                "needed": D(5500),
                "least": D(5500),
                "resets_at": datetime(2027, 1, 1, 5, tzinfo=UTC),
                "zone": "America/New_York",
                "price_key": "chat/big",
            },
            (
                "The daily token limit of team “Research” on chat/big has 100 tokens left of 100\u202f000 tokens, "
                "900 tokens of it held by answers that run now. This message would have taken up to 5\u202f500 tokens, "
                "so it was not sent and nothing was charged. "
                "It resets on 1 January 2027, 00:00 America/New_York. An owner of the team can raise it."
            ),
        ),
        (
            {"unit": "requests", "period": "lifetime", "limit": D(3), "remaining": D(0), "spent": D(3)}
            | {"resets_at": None, "needed": D(1), "least": D(1)},
            (
                "The request limit of team “Research” is reached (3 requests of 3 requests used). "
                "The message was not sent and nothing was charged. "
                "It does not reset by itself. An owner of the team can raise it."
            ),
        ),
        (
            {"needed": None, "least": None},
            (
                "The monthly limit of team “Research” has €0.12 left of €50.00. "
                "The message was not sent and nothing was charged. "
                "It resets on 1 December, 00:00 Europe/Berlin. An owner of the team can raise it."
            ),
        ),
    ],
)
def test_a_refusal_answers_every_question(changes: dict[str, object], sentence: str) -> None:
    assert refusal_words(replace(LIMIT, **changes), TEAM, currency="EUR", at=AT) == sentence


@pytest.mark.parametrize(
    ("amount", "unit", "words"),
    [
        (D("0.00042"), "money", "€0.00042"),
        (D(1), "tokens", "1 token"),
        (D(12345), "tokens", "12\u202f345 tokens"),
        (D(1), "pages", "1 page"),
        (D(999), "bytes", "999 bytes"),
        (D(12_345_678), "bytes", "12.3 MB"),
    ],
)
def test_amounts_are_said_as_people_say_them(amount: Decimal, unit: str, words: str) -> None:
    assert amount_words(amount, unit, "EUR") == words


def test_a_size_knows_its_largest_unit() -> None:
    assert [size(n) for n in (0, 1000, 10**15, 10**18)] == ["0 bytes", "1.0 kB", "1.0 PB", "1000.0 PB"]


def test_a_shortened_answer_names_the_limit_and_a_soft_one_says_that_it_only_warns() -> None:
    assert capped_words(LIMIT, TEAM, tokens=1300, currency="EUR") == (
        "The answer is limited to 1\u202f300 tokens: the monthly limit of team “Research” has €0.12 left of €50.00."
    )
    assert passed_words(replace(LIMIT, hard=False, held=D("0.2")), TEAM, currency="EUR", at=AT) == (
        "The monthly limit of team “Research” does not hold this message (€50.08 of €50.00 used or held). "
        "It only warns, so your message went on. It resets on 1 December, 00:00 Europe/Berlin."
    )


@pytest.mark.parametrize(
    ("zone", "at", "words"),
    [
        # The day on which clocks go back, and the one on which they go forward: local midnight both times.
        (
            "Europe/Berlin",
            datetime(2026, 10, 25, 23, tzinfo=UTC),
            "It resets on 26 October, 00:00 Europe/Berlin.",
        ),
        (
            "Europe/Berlin",
            datetime(2026, 3, 29, 22, tzinfo=UTC),
            "It resets on 30 March, 00:00 Europe/Berlin.",
        ),
        (
            "America/New_York",
            datetime(2026, 11, 2, 5, tzinfo=UTC),
            "It resets on 2 November, 00:00 America/New_York.",
        ),
        (
            "America/Santiago",
            datetime(2026, 9, 6, 4, tzinfo=UTC),
            "It resets on 6 September, 01:00 America/Santiago.",
        ),
    ],
)
def test_the_reset_is_said_in_the_limits_own_zone(zone: str, at: datetime, words: str) -> None:
    assert reset_words(replace(LIMIT, resets_at=at, zone=zone), AT) == words
