"""What a provider says a call cost, read from its usage block."""

from decimal import Decimal
from typing import Any

import pytest

from app.gate.attempts import _reported_cost


@pytest.mark.parametrize(
    ("raw", "cost"),
    [
        ({"cost": 0.00014}, "0.00014"),
        ({"cost": "1e-7"}, "1e-7"),
        ({"cost": 0}, "0"),
        ({"cost": Decimal("0.1")}, "0.1"),
        ({"cost": None}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": "free"}, None),
        ({"cost": {"total_cost": 1}}, None),
        ({"prompt_tokens": 3}, None),
        (None, None),
    ],
)
def test_only_an_amount_is_a_witness(raw: dict[str, Any] | None, cost: str | None) -> None:
    assert _reported_cost(raw) == (None if cost is None else Decimal(cost))
