"""What a reader is told of a hold that a limit shortened or that passed one."""

from dataclasses import replace

from django.conf import settings

from app.billing.naming import covers_of
from app.billing.types import Held, Note
from app.billing.wording import capped_words, passed_words
from app.common.clock import now


def noted(held: Held) -> Held:
    """With what to tell the reader, where a limit shortened the answer or was passed by it."""
    currency, at = settings.CURRENCY, now()
    # The tightest of those that had no room for everything.
    tight = sorted(held.tight, key=lambda limit: limit.remaining / (limit.limit or 1))[:1]
    capped = [
        Note(
            "output_cap_lowered",
            capped_words(x, covers_of(x.subject), tokens=held.output_tokens, currency=currency),
        )
        for x in tight
    ]
    passed = [
        Note("soft_limit_passed", passed_words(x, covers_of(x.subject), currency=currency, at=at))
        for x in held.soft
    ]
    return replace(held, notes=(*capped, *passed)) if capped or passed else held
