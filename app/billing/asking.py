"""Asking for more of a limit, and deciding about it: nobody raises what is not theirs to raise."""

from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import transaction

from app.accounts.models import User
from app.accounts.selectors import Caller, team_of, user_of
from app.billing.budget_rights import is_bound, may_set
from app.billing.naming import whom
from app.billing.people import deciders_of, mail
from app.billing.raising import (
    Asked,
    limit_request_create,
    limit_request_decline,
    limit_request_get,
    limit_request_grant,
    limit_requests,
)
from app.billing.types import Payer
from app.billing.wording import amount_words
from app.common.errors import NotAllowed, NotFound

LIMIT_REQUESTS_SHOWN = 200


def more_ask(
    *, caller: Caller, limit_id: UUID, team: UUID | None = None, amount: Decimal | None = None, note: str = ""
) -> Asked:
    """Ask for more, and tell who can give it, once a request. Errors: NotFound, InvalidInput."""
    payer = Payer(team_id=team_of(caller, team).id, account_id=caller.account_id, key_id=caller.key_id)
    request, is_new = limit_request_create(window_id=limit_id, payer=payer, amount=amount, note=note)
    if is_new:
        _tell_deciders(caller, request)
    return request


def _tell_deciders(caller: Caller, request: Asked) -> None:
    person, amount = user_of(caller), request.amount
    who = f"{person} ({person.email})" if person else "A key of a team"
    window = request.window
    more = amount_words(amount, window.unit, settings.CURRENCY) if amount is not None else "more"
    text = (
        f"{who} asks for {more} in the {window.budget.period} limit of {whom(window.subject)}.\n"
        f"{request.note}\n\nDecide at {settings.PUBLIC_URL}/dashboard/limits/ . A raise ends with the period.\n"
    )
    transaction.on_commit(
        lambda: mail(deciders_of(window.subject), subject="Somebody asks for more", text=text)
    )


def requests_of(caller: Caller) -> list[Asked]:
    """The caller's own requests, and those the caller may decide; newest first."""
    rows = limit_requests()[: LIMIT_REQUESTS_SHOWN * 5]
    shown = [r for r in rows if _own(caller, r) or may_decide(caller, r)]
    return shown[:LIMIT_REQUESTS_SHOWN]


def more_decide(
    *, caller: Caller, request_id: UUID, grant: bool, amount: Decimal | None = None, answer: str = ""
) -> Asked:
    """Grant until the window ends, or decline, with a word, and tell whoever asked.

    Errors: NotFound, NotAllowed, InvalidInput, Conflict.
    """
    request = limit_request_get(request_id)
    if not may_decide(caller, request):
        if _own(caller, request):
            raise NotAllowed("Somebody else decides about this request.")
        raise NotFound("There is no such request.")
    by = f"user:{caller.user_id}" if caller.user_id else f"key:{caller.key_id}"
    if grant:
        ceiling = None if caller.is_staff else request.window.budget.ceiling
        decided = limit_request_grant(
            request=request, amount=amount, decided_by=by, ceiling=ceiling, answer=answer
        )
    else:
        decided = limit_request_decline(request=request, decided_by=by, answer=answer)
    transaction.on_commit(lambda: _tell(decided))
    return decided


def _tell(request: Asked) -> None:
    account = request.account_id
    asker = None if account is None else User.objects.filter(account_id=account, is_active=True).first()
    if asker is None:
        return
    window = request.window
    if request.granted is None:
        what = "was declined; the limit stays as it is"
    else:
        more = amount_words(request.granted, window.unit, settings.CURRENCY)
        what = f"was granted: {more} more until the period ends"
    word = f"\n\n{request.answer}" if request.answer else ""
    text = (
        f"Your request for more of the {window.budget.period} limit of {whom(window.subject)} {what}.{word}\n"
    )
    mail([asker], subject="You asked for more", text=text)


def may_decide(caller: Caller, request: Asked) -> bool:
    """Whether the caller may raise this limit; staff may raise every one."""
    subject = request.window.subject
    return caller.is_staff or (may_set(caller, subject) and not is_bound(caller, subject))


def _own(caller: Caller, request: Asked) -> bool:
    if caller.account_id is not None:
        return request.account_id == caller.account_id
    return request.key_id is not None and request.key_id == caller.key_id
