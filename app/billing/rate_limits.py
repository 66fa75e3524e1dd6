"""Rate limits as rows: set by staff, read before each call that is counted."""

from uuid import UUID

from django.conf import settings

from app.billing.models import RateLimit
from app.billing.subjects import subject_of
from app.billing.types import Payer, RateRule, Scope
from app.common.errors import InvalidInput


def rate_limit_set(  # noqa: PLR0913 - one keyword for each column
    *,
    scope: Scope,
    requests: int | None,
    tokens: int | None,
    streams: int | None,
    team_id: UUID | None = None,
    account_id: UUID | None = None,
    key_id: UUID | None = None,
    set_by: str = "",
) -> UUID:
    """Set what somebody may ask for in a minute and at once; an id left out makes it the default of its scope.

    In force within seconds. All three None takes the limit away. Errors: InvalidInput.
    """
    if scope not in {"installation", "team", "person", "key"}:
        raise InvalidInput(f"A rate limit covers the installation, a team, a person or a key, not {scope}.")
    try:
        subject = subject_of(scope, team_id=team_id, account_id=account_id, key_id=key_id)
    except ValueError as exc:
        raise InvalidInput(str(exc)) from exc
    values = {"scope": scope, "requests": requests, "tokens": tokens, "streams": streams, "set_by": set_by}
    return RateLimit.objects.update_or_create(subject=subject, defaults=values)[0].id


def rate_rules(payer: Payer) -> tuple[RateRule, ...]:
    """The rate limits on a payer's way, the narrowest first; a row of its own replaces the default of a scope.

    The default of keys is counted over all keys of one person, or of one team, that have no own row: more keys are
    not more room.
    """
    levels = (
        ("key", f"k:{payer.key_id}", "k:*", payer.key_id),
        ("person", f"p:{payer.account_id}", "p:*", payer.account_id),
        ("team", f"t:{payer.team_id}", "t:*", payer.team_id),
        ("installation", "i", "i", True),
    )
    asked = [(own, default) for _, own, default, known in levels if known]
    rows = {
        row.subject: row for row in RateLimit.objects.filter(subject__in=[s for pair in asked for s in pair])
    }
    owner = f"op:{payer.account_id}" if payer.account_id else f"ot:{payer.team_id}"
    rules = []
    for own, default in asked:
        row = rows.get(own) or rows.get(default)
        subject = owner if own.startswith("k:") and own not in rows else own
        if row is not None:
            rules.append(RateRule(subject, row.requests, row.tokens, row.streams))
        elif own.startswith("k:"):
            rules.append(
                RateRule(subject, settings.RATE_KEY_REQUESTS or None, settings.RATE_KEY_TOKENS or None, None)
            )
    return tuple(r for r in rules if (r.requests, r.tokens, r.streams) != (None, None, None))
