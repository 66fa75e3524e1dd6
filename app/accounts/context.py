"""What every page may need to know about accounts."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from app.accounts.adapter import mail_is_sent


def accounts(_: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"mail_is_sent": mail_is_sent(), "signup_open": settings.ACCOUNT_SIGNUP_ENABLED}
