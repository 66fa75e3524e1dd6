"""The rules of `pricing.py` and of the SQL that books: the same to the last digit, on whatever prices and usage."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.billing import pricing
from app.billing.models import PriceVersion, TeamRate
from app.billing.services import price_set
from app.billing.types import INPUT_COMPONENTS, OUTPUT_COMPONENTS, Rate, TierMode
from app.common.clock import now
from app.common.models import uuid7

pytestmark = pytest.mark.django_db
D = Decimal

NAMES = (*INPUT_COMPONENTS, *OUTPUT_COMPONENTS, "request", "web_search")
AMOUNTS = st.one_of(
    st.decimals(min_value=0, max_value=D("9999999.999999999"), places=9),
    st.sampled_from([D(0), D("0.000000001"), D("0.15"), D("3")]),
)
FACTORS = st.one_of(
    st.none(),
    st.decimals(min_value=0, max_value=99, places=6),
    st.sampled_from([D("1.5"), D("0.5"), D("1.1")]),
)
COUNTS = st.one_of(st.integers(1, 400), st.integers(1, 2_000_000), st.sampled_from([200_000, 200_001]))
BOUNDS = st.lists(st.sampled_from([100, 128_001, 200_001, 272_001]), unique=True, max_size=2)


@st.composite
def rate_lists(draw: st.DrawFn) -> tuple[Rate, ...]:
    rates = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=6)):
        per = draw(st.sampled_from([1, 1000, 1_000_000]))
        rates += [
            Rate(component=name, price=draw(AMOUNTS), per_units=per, min_prompt_tokens=bound)
            for bound in (0, *draw(BOUNDS))
        ]
    return pricing.complete(rates)


def asked(query: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchall()


@given(
    rates=rate_lists(),
    quantities=st.dictionaries(st.sampled_from([n for n in NAMES if n != "request"]), COUNTS, max_size=5),
    factor=FACTORS,
    mode=st.sampled_from(["whole_request", "marginal"]),
    more=st.integers(0, 300_000),
    cap=st.integers(0, 100_000),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_sql_prices_as_python_does(
    rates: tuple[Rate, ...],
    quantities: dict[str, int],
    factor: Decimal | None,
    mode: TierMode,
    more: int,
    cap: int,
) -> None:
    team = uuid7()
    version = price_set(price_key=f"p{team}", rates=rates, approved_by="tests", tier_mode=mode).version_id
    rate = None
    if factor is not None:
        rate = TeamRate.objects.create(
            team_id=team, factor=factor, effective_from=now(), approved_by="tests"
        ).id
    prompt = sum(count for name, count in quantities.items() if name in INPUT_COMPONENTS)

    booked = asked(
        "SELECT component, min_prompt_tokens, quantity, unit_price, amount "
        "FROM billing_priced(%s, %s, true, %s, NULL, %s)",
        json.dumps(quantities), prompt, version, rate,
    )  # fmt: skip
    unknown = {row[0] for row in booked if row[4] is None}
    rates = pricing.complete(rates)
    if factor is not None:
        rates = pricing.marked(rates, factor)
    known = {name: count for name, count in quantities.items() if name not in unknown}
    lines = pricing.charge_lines(rates, quantities=known, prompt_tokens=prompt, tier_mode=mode)
    assert unknown == {name for name in quantities if not any(r.component == name for r in rates)}
    assert sorted(row for row in booked if row[4] is not None) == sorted(
        (line.component, line.rate.min_prompt_tokens, line.quantity, line.rate.price, line.amount)
        for line in lines
    )

    # The hold: never less than the charge of any prompt and output within it, and the same in both.
    tiers = pricing.dearest(rates, mode)
    given_, output = prompt + more, sum(c for n, c in quantities.items() if n in OUTPUT_COMPONENTS) + cap
    held = pricing.hold_amount(tiers, input_tokens=given_, output_tokens=output)
    ((missing, most),) = asked(
        "SELECT d.missing_key, billing_most(d.fixed, d.rate, %s) "
        "FROM billing_dearest(ARRAY[%s], 'standard', %s, %s, %s, %s) d",
        output, f"p{team}", team, now() + timedelta(seconds=1), given_, output,
    )  # fmt: skip
    assert held == (None if missing else most)
    tokens = [line.amount for line in lines if line.component != "web_search"]
    if held is not None and not unknown - {"web_search"}:
        assert held >= pricing.total(tokens)


@given(amount=st.decimals(min_value=D("-1e6"), max_value=D("1e6"), places=4), scale=st.integers(0, 3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_half_even_is_the_same_in_both(amount: Decimal, scale: int) -> None:
    assert asked("SELECT billing_even(%s, %s)", amount, scale) == [(round(amount, scale),)]


def test_the_versions_that_are_kept_say_what_a_hold_assumes() -> None:
    rates = (Rate(component="input", price=D(2)), Rate(component="output", price=D(8)))
    version = price_set(price_key="k", rates=rates, approved_by="tests").version_id
    assert PriceVersion.objects.get().dearest == [
        {"from": 0, "upto": None, "in": "0.000002", "out": "0.000008", "fee": "0"}
    ]
    ((tiers,),) = asked("SELECT billing_tiers(%s, 1.5)", version)
    (tier,) = json.loads(tiers, parse_float=Decimal)
    assert (tier["in"], tier["out"], tier["fee"]) == (D("0.000003"), D("0.000012"), D(0))
