"""A limit in words: which it is, what is left, what was asked, when it begins anew, who can raise it. Pure."""

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from app.billing.naming import Covers
from app.billing.types import STORED, LimitState
from app.common.formatting import count, figure, size

_PERIODS = {"day": "daily ", "week": "weekly ", "month": "monthly ", "lifetime": ""}
_UNITS = {"money": "", "tokens": "token ", "requests": "request ", "bytes": "storage ", "pages": "page "}


def amount_words(amount: Decimal, unit: str, currency: str) -> str:
    """`€0.40`, `1 200 tokens`, `3 requests`, `12.3 MB`, `40 pages`."""
    if unit == "money":
        return figure(amount, currency)
    if unit == "bytes":
        return size(int(amount))
    return f"{count(int(amount))} {unit if amount != 1 else unit.removesuffix('s')}"


def limit_words(limit: LimitState, covers: Covers) -> str:
    """`monthly limit of team “Research”`, with the model where it counts one alone."""
    model = f" on {limit.price_key}" if limit.price_key else ""
    return f"{_PERIODS[limit.period]}{_UNITS[limit.unit]}limit {covers.phrase}{model}"


def reset_words(limit: LimitState, at: datetime) -> str:
    """`It resets on 1 December, 00:00 Europe/Berlin.`, with the year when it is not this one."""
    if limit.resets_at is None:
        return "It does not reset by itself."
    zone = ZoneInfo(limit.zone)
    local = limit.resets_at.astimezone(zone)
    day = f"{local:%-d %B}" if local.year == at.astimezone(zone).year else f"{local:%-d %B %Y}"
    return f"It resets on {day}, {local:%H:%M} {limit.zone}."


def refusal_words(limit: LimitState, covers: Covers, *, currency: str, at: datetime) -> str:
    """Why a call was not sent, in the order in which people ask."""
    unit, which = limit.unit, limit_words(limit, covers)
    left, whole = (amount_words(x, unit, currency) for x in (limit.remaining, limit.limit))
    running = (
        f", {amount_words(limit.held, unit, currency)} of it held by answers that run now"
        if limit.held
        else ""
    )
    if limit.remaining <= 0:
        stands = (
            f"The {which} is reached ({amount_words(limit.spent, unit, currency)} of {whole} used{running})."
        )
    else:
        stands = f"The {which} has {left} left of {whole}{running}."
    return f"{stands} {_asked(limit, currency)} {reset_words(limit, at)} {covers.raised_by} can raise it."


def capped_words(limit: LimitState, covers: Covers, *, tokens: int, currency: str) -> str:
    """Why an answer will be shorter than asked."""
    left, whole = (amount_words(x, limit.unit, currency) for x in (limit.remaining, limit.limit))
    which = limit_words(limit, covers)
    return f"The answer is limited to {count(tokens)} tokens: the {which} has {left} left of {whole}."


def passed_words(limit: LimitState, covers: Covers, *, currency: str, at: datetime) -> str:
    """That a limit which only warns is, or will be, passed."""
    spent, whole = (amount_words(x, limit.unit, currency) for x in (limit.spent + limit.held, limit.limit))
    return (
        f"The {limit_words(limit, covers)} does not hold this message ({spent} of {whole} used or held). "
        f"It only warns, so your message went on. {reset_words(limit, at)}"
    )


def _asked(limit: LimitState, currency: str) -> str:
    if limit.unit == "requests" or limit.needed is None:
        return "The message was not sent and nothing was charged."
    if limit.unit in STORED:
        over = amount_words(limit.needed - limit.remaining, limit.unit, currency)
        asked = amount_words(limit.needed, limit.unit, currency)
        return f"This file needs {asked}, {over} more than there is room for, so it was not kept."
    verb = "cost" if limit.unit == "money" else "taken"
    asked = amount_words(limit.needed, limit.unit, currency)
    shortest = (
        f", and at least {amount_words(limit.least, limit.unit, currency)} with a short answer"
        if limit.least is not None and limit.least != limit.needed
        else ""
    )
    return (
        f"This message would have {verb} up to {asked}{shortest}, so it was not sent and nothing was charged."
    )
