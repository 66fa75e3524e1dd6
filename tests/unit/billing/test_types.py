from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.billing.checks import check_limit, check_rates
from app.billing.subjects import subject_of
from app.billing.types import Attempt, Buckets, Hold, Payer, Rate
from app.common.errors import InvalidInput

ONE = UUID("01900000-0000-7000-8000-000000000001")
TWO = UUID("01900000-0000-7000-8000-000000000002")


@pytest.mark.parametrize("value", [1.0, 0.5, -1, True, "3"])
def test_counts_are_whole_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Hold.input_tokens must be a whole number"):
        Hold(
            reservation_id=ONE,
            payer=Payer(team_id=ONE),
            kind="chat",
            price_key="m",
            input_tokens=value,
            output_tokens=1,
        )
    with pytest.raises(ValueError, match=r"Buckets.output must be a whole number"):
        Buckets(output=value)


def test_units_and_attempt_numbers_are_checked() -> None:
    with pytest.raises(ValueError, match="whole, non-negative"):
        Attempt(units={"tool_call": -1})
    with pytest.raises(ValueError, match="counts from 1"):
        Attempt(number=0)


@pytest.mark.parametrize(
    "price", [0.1, -1, Decimal("-0.000000001"), Decimal("NaN"), Decimal("Infinity"), Decimal("0.0000000001")]
)
def test_a_price_is_an_exact_decimal_of_zero_or_more(price: Any) -> None:
    with pytest.raises(ValueError, match="The price of input"):
        Rate(component="input", price=price)


def test_a_price_is_per_one_thousand_or_million() -> None:
    with pytest.raises(ValueError, match="per 1, 1,000 or 1,000,000"):
        Rate(component="input", price=Decimal(1), per_units=100)


@pytest.mark.parametrize(
    ("totals", "buckets"),
    [
        ({"input_tokens": 100, "output_tokens": 20}, Buckets(input=100, output=20)),
        (
            {"input_tokens": 100, "output_tokens": 20, "cache_read": 60, "cache_write": 30, "reasoning": 15},
            Buckets(input=10, cache_read=60, cache_write=30, output=5, reasoning=15),
        ),
        # A server whose parts exceed its whole: believed, and visible in the sum.
        ({"input_tokens": 10, "output_tokens": 0, "cache_read": 30}, Buckets(cache_read=30)),
    ],
)
def test_buckets_are_disjoint(totals: dict[str, int], buckets: Buckets) -> None:
    made = Buckets.from_totals(**totals)
    assert made == buckets
    assert made.input_total + made.output_total == sum(made.quantities().values())


@pytest.mark.parametrize(
    ("scope", "ids", "subject"),
    [
        ("installation", {}, "i"),
        ("team", {"team_id": ONE}, f"t:{ONE}"),
        ("team", {}, "t:*"),
        ("allowance", {}, "a:*:*"),
        ("allowance", {"team_id": ONE}, f"a:{ONE}:*"),
        ("allowance", {"team_id": ONE, "account_id": TWO}, f"a:{ONE}:{TWO}"),
        ("person", {"account_id": TWO}, f"p:{TWO}"),
        ("key", {"key_id": TWO}, f"k:{TWO}"),
    ],
)
def test_subjects(scope: Any, ids: dict[str, UUID], subject: str) -> None:
    assert subject_of(scope, **ids) == subject


@pytest.mark.parametrize(
    ("scope", "ids"),
    [("installation", {"team_id": ONE}), ("key", {"account_id": ONE}), ("allowance", {"account_id": ONE})],
)
def test_subjects_refuse_ids_that_do_not_belong(scope: Any, ids: dict[str, UUID]) -> None:
    with pytest.raises(ValueError, match=r"takes no|needs the team"):
        subject_of(scope, **ids)


@pytest.mark.parametrize(
    ("limit", "unit", "zone"),
    [
        (1.5, "money", "UTC"),
        (-1, "money", "UTC"),
        (Decimal("NaN"), "money", "UTC"),
        (True, "tokens", "UTC"),
        (Decimal("1.5"), "tokens", "UTC"),
        (10**13, "requests", "UTC"),
        (1, "money", "Europe/Atlantis"),
        (1, "money", "../etc/passwd"),
    ],
)
def test_limits_are_exact_and_zones_exist(limit: Any, unit: Any, zone: str) -> None:
    with pytest.raises(InvalidInput):
        check_limit(limit, unit, zone)


@pytest.mark.parametrize(
    "rates",
    [
        (),
        (Rate(component="input", price=Decimal(1)), Rate(component="input", price=Decimal(2))),
        (Rate(component="input", price=Decimal(1), min_prompt_tokens=10),),
    ],
)
def test_rates_have_one_base_each(rates: tuple[Rate, ...]) -> None:
    with pytest.raises(InvalidInput):
        check_rates(rates)
