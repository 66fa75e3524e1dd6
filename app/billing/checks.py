"""What a price and a limit must be before they are written."""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings

from app.billing.types import EVERYTHING, HOUR, PROVISIONED, STORED, Period, Rate, Scope, Side, Unit
from app.billing.types.words import is_exact
from app.common.errors import InvalidInput

SANE = Decimal(10**7)
"""No price is as high: a limit that also keeps a mark-up within what the ledger's columns hold."""


def check_rates(rates: Sequence[Rate]) -> None:
    """Each component once at each prompt size, and from size 0 on. Errors: InvalidInput."""
    places = [(rate.component, rate.min_prompt_tokens) for rate in rates]
    if not places or len(set(places)) != len(places):
        raise InvalidInput("A price needs at least one rate, and each component once at each prompt size.")
    without_base = {c for c, _ in places} - {c for c, bound in places if bound == 0}
    if without_base:
        raise InvalidInput(f"{', '.join(sorted(without_base))}: a rate for prompts from 0 tokens is missing.")
    if absurd := [rate.component for rate in rates if rate.price >= SANE]:
        raise InvalidInput(
            f"{absurd[0]}: a price of 10,000,000 or more is a mistake. Token prices are per million tokens."
        )


def check_terms(
    price_key: str, side: Side, currency: str, team_id: UUID | None, rates: Sequence[Rate]
) -> None:
    """A currency, and for whom a price may be. Errors: InvalidInput."""
    check_currency(currency)
    if side == "price" and currency != settings.CURRENCY:
        raise InvalidInput(
            f"User prices are in {settings.CURRENCY}, the currency of all budgets; a cost may be in {currency}."
        )
    if price_key.startswith(PROVISIONED) and {rate.component for rate in rates} != {HOUR}:
        raise InvalidInput("What a server costs by the hour is set under Own servers, beside the prices.")
    if not price_key or (price_key == EVERYTHING and (team_id is None or side == "cost")):
        raise InvalidInput("A price needs the key of a model; only a team's own price can be of everything.")


def check_currency(currency: str) -> None:
    """Errors: InvalidInput."""
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        raise InvalidInput(
            f"“{currency}” is no currency; use its code of three capital letters, such as USD."
        )


def check_limit(limit: Decimal | int, unit: Unit, zone: str) -> None:
    """An exact, finite amount of its unit, and a zone that exists. Errors: InvalidInput."""
    if not is_exact(limit) or not 0 <= limit < 10**13:
        raise InvalidInput("A limit is an exact number of 0 or more; 0 means nothing.")
    if unit != "money" and limit % 1:
        raise InvalidInput(f"A limit of {unit} is a whole number.")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as exc:
        raise InvalidInput(f"{zone} is not a time zone; use an IANA name such as Europe/Berlin.") from exc


def check_stored(scope: Scope, unit: Unit, period: Period, price_key: str) -> None:
    """What is stored does not begin anew, and belongs to no model. Errors: InvalidInput."""
    if unit in STORED and scope == "key":
        raise InvalidInput("What is stored belongs to a team or a person, not to a key.")
    if unit in STORED and (period != "lifetime" or price_key):
        raise InvalidInput(f"A limit of stored {unit} has no period and no model: give it `lifetime`.")
