"""How figures grow from month to month. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """One model in one whole month."""

    requests: int
    cost: Decimal
    input_tokens: int
    output_tokens: int

    @property
    def per_request(self) -> Decimal | None:
        return self.cost / self.requests if self.requests else None

    @property
    def output_length(self) -> Decimal | None:
        return Decimal(self.output_tokens) / self.requests if self.requests else None

    @property
    def input_length(self) -> Decimal | None:
        return Decimal(self.input_tokens) / self.requests if self.requests else None


def growth(values: Sequence[Decimal | None]) -> Decimal | None:
    """Percent a month, from the first to the last that is known and above 0, evenly; None: fewer than two.

    `values` are months in a row, None where nothing happened.
    """
    known = [(place, value) for place, value in enumerate(values) if value is not None and value > 0]
    if len(known) < 2:
        return None
    (first, began), (last, ended) = known[0], known[-1]
    ratio = float(ended / began) ** (1 / (last - first))
    return Decimal(f"{(ratio - 1) * 100:.2f}")


def break_even(
    *, hourly: Decimal, per_million: Decimal | None, tokens_per_s: Decimal | None
) -> tuple[Decimal | None, Decimal | None]:
    """(tokens an hour, utilisation) from which a server at `hourly` is cheaper than paying `per_million` tokens.

    A utilisation above 1: it can never be. None: the price, or what the server can do, is not known.
    """
    if not per_million:
        return None, None
    tokens = hourly * 1_000_000 / per_million
    return tokens, tokens / (tokens_per_s * 3600) if tokens_per_s else None
