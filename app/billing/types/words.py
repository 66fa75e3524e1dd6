"""The closed lists of billing."""

from decimal import Decimal
from typing import Literal

CallKind = Literal["chat", "embedding", "rerank", "title", "condense", "probe", "evaluation", "loadtest"]
Unit = Literal["money", "tokens", "requests", "bytes", "pages"]
STORED: frozenset[str] = frozenset({"bytes", "pages"})
"""Units of what is kept, not of what is used up: they have no period."""
Scope = Literal["installation", "team", "prepaid", "allowance", "person", "key"]
Period = Literal["day", "week", "month", "lifetime"]
Outcome = Literal["completed", "stopped", "failed"]
UsageSource = Literal["server_final", "server_running", "local", "none"]
EndState = Literal["settled", "released"]
Side = Literal["price", "cost"]
TierMode = Literal["whole_request", "marginal"]
GroupBy = Literal["day", "team", "person", "key", "model", "deployment", "kind"]

INPUT_COMPONENTS = (
    "input",
    "cache_read",
    "cache_write",
    "cache_write_mid",
    "cache_write_long",
    "cache_write_xlong",
    "input_audio",
    "input_image",
)
OUTPUT_COMPONENTS = ("output", "reasoning", "output_audio", "rejected_prediction")
SAME_AS = {
    "cache_read": "input",
    "cache_write": "input",
    "input_image": "input",
    "reasoning": "output",
    "rejected_prediction": "output",
}
"""Components written out with another's rate when a price does not name them; all others stay unknown."""

OUTPUT_FLOOR = 256
"""Output tokens below which a shrunk answer is not worth giving."""

WITNESS_TOLERANCE = Decimal("0.05")
"""Part of the greater amount by which a cost that a provider reports may differ from ours before it is flagged."""

EVERYTHING = "*"
"""Price key of a team's own price of all it has no nearer own price for."""

PROVISIONED = "provisioned/"
"""Before a deployment's id: price key of what it costs by the hour, used or not."""
HOUR = "provisioned_hour"
"""Component of such a cost."""


def refuse_floats(value: object, *names: str) -> None:
    """Counts are whole and not negative; a float or a bool here is a mistake of the caller."""
    for name in names:
        number = getattr(value, name)
        if number is not None and (type(number) is not int or number < 0):
            raise ValueError(
                f"{type(value).__name__}.{name} must be a whole number of 0 or more, not {number!r}."
            )


def is_exact(value: object) -> bool:
    """Whether a value can be money: a finite decimal or a whole number, never a float."""
    return (isinstance(value, Decimal) and value.is_finite()) or type(value) is int
