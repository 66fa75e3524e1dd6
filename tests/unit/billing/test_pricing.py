"""Money by hand: every expected amount below was worked out on paper, not by the code under test."""

from decimal import Decimal

import pytest

from app.billing import pricing
from app.billing.types import Rate

D = Decimal

FLAT = pricing.complete(
    (
        Rate(component="input", price=D("0.15")),
        Rate(component="cache_read", price=D("0.075")),
        Rate(component="output", price=D("0.6")),
        Rate(component="request", price=D("0.002"), per_units=1),
    )
)
TIERED = pricing.complete(
    (
        Rate(component="input", price=D("1.25")),
        Rate(component="input", price=D("2.5"), min_prompt_tokens=200_001),
        Rate(component="cache_write", price=D("1.5625")),
        Rate(component="output", price=D(10)),
        Rate(component="output", price=D(15), min_prompt_tokens=200_001),
    )
)


@pytest.mark.parametrize(
    ("rates", "quantities", "prompt", "amount"),
    [
        # 1000 × 0.15/1e6 + 0.002
        (FLAT, {"input": 1000}, 1000, "0.00215"),
        # 900 × 0.15 + 100 × 0.075 + 50 × 0.6 = 135 + 7.5 + 30 = 172.5 millionths, + 0.002
        (FLAT, {"input": 900, "cache_read": 100, "output": 50}, 1000, "0.0021725"),
        # reasoning is priced as output: (10 + 7) × 0.6 = 10.2 millionths, + 0.002
        (FLAT, {"output": 10, "reasoning": 7}, 0, "0.0020102"),
        # one token: 0.15 millionths, nothing is rounded away
        (FLAT, {"input": 1}, 1, "0.00200015"),
        # the last prompt of the lower tier: 200000 × 1.25/1e6
        (TIERED, {"input": 200_000}, 200_000, "0.25"),
        # one more token doubles the rate of all of them: 200001 × 2.5/1e6
        (TIERED, {"input": 200_001}, 200_001, "0.5000025"),
        # cache tokens count for the border: 150000 × 2.5 + 50001 × 2.5 + 10 × 15 millionths
        (TIERED, {"input": 150_000, "cache_read": 50_001, "output": 10}, 200_001, "0.5001525"),
        # a rate without a tier of its own keeps its base: 1000 × 1.5625 + 199001 × 2.5 millionths
        (TIERED, {"input": 199_001, "cache_write": 1000}, 200_001, "0.499065"),
    ],
)
def test_charge_by_hand(
    rates: tuple[Rate, ...], quantities: dict[str, int], prompt: int, amount: str
) -> None:
    lines = pricing.charge_lines(rates, quantities=quantities, prompt_tokens=prompt)
    assert pricing.total(line.amount for line in lines) == D(amount)


def test_smallest_price_of_one_token_is_exact() -> None:
    rates = (Rate(component="input", price=D("0.000000001")),)
    (line,) = pricing.charge_lines(rates, quantities={"input": 1}, prompt_tokens=1)
    assert line.amount == D("0.000000000000001")


def test_largest_price_times_many_tokens_keeps_every_digit() -> None:
    rates = (Rate(component="input", price=D("123456789.123456789")),)
    (line,) = pricing.charge_lines(rates, quantities={"input": 987_654_321_987}, prompt_tokens=0)
    # In whole quadrillionths, where nothing can be rounded.
    assert int(str(line.amount).replace(".", "")) == 123_456_789_123_456_789 * 987_654_321_987


def test_component_without_a_price_is_named_not_free() -> None:
    with pytest.raises(KeyError, match="input_audio"):
        pricing.charge_lines(FLAT, quantities={"input_audio": 5}, prompt_tokens=5)


@pytest.mark.parametrize(
    ("rates", "given", "cap", "amount"),
    [
        # dearest input is plain input: 1000 × 0.15 + 500 × 0.6 = 450 millionths, + fee
        (FLAT, 1000, 500, "0.00245"),
        (FLAT, 0, 0, "0.002"),
        # the write rate is dearer than the input rate: 1000 × 1.5625 + 100 × 10 millionths
        (TIERED, 1000, 100, "0.0025625"),
        # above the border the higher tier is dearer: 200001 × 2.5 + 100 × 15 millionths
        (TIERED, 200_001, 100, "0.5015025"),
    ],
)
def test_hold_is_the_dearest_case(rates: tuple[Rate, ...], given: int, cap: int, amount: str) -> None:
    assert pricing.hold_amount(pricing.dearest(rates), input_tokens=given, output_tokens=cap) == D(amount)


def test_hold_covers_a_lower_tier_that_costs_more() -> None:
    """With a volume discount the largest prompt of the lower tier is the dearest the call can turn out to be."""
    rates = (
        Rate(component="input", price=D(4)),
        Rate(component="input", price=D(1), min_prompt_tokens=1000),
        Rate(component="output", price=D(1)),
    )
    # 999 × 4 millionths against 1200 × 1
    assert pricing.hold_amount(pricing.dearest(rates), input_tokens=1200, output_tokens=0) == D("0.003996")


def test_hold_of_an_unknown_output_price_is_unknown() -> None:
    tiers = pricing.dearest((Rate(component="input", price=D(1)),))
    assert pricing.hold_amount(tiers, input_tokens=10, output_tokens=1) is None
    assert pricing.hold_amount(tiers, input_tokens=10, output_tokens=0) == D("0.00001")


def test_complete_writes_out_what_follows_input_and_output_at_each_tier() -> None:
    written = {(r.component, r.min_prompt_tokens): r.price for r in TIERED}
    assert written["cache_read", 0] == D("1.25")
    assert written["cache_read", 200_001] == D("2.5")
    assert written["reasoning", 200_001] == D(15)
    assert written["cache_write", 0] == D("1.5625")
    assert ("cache_write", 200_001) not in written


@pytest.mark.parametrize(
    ("amount", "shown"), [("0.000000005", "0E-8"), ("0.000000015", "2E-8"), ("1.5", "1.50000000")]
)
def test_display_rounds_half_to_even(amount: str, shown: str) -> None:
    assert pricing.for_display(D(amount)) == D(shown)
