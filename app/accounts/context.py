"""What every page may need to know about accounts."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from app.accounts.adapter import mail_is_sent
from app.accounts.models import IdentityProvider


def accounts(_: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    providers: Callable[[], list[IdentityProvider]] = lambda: list(  # noqa: E731 - read where a page asks for it
        IdentityProvider.objects.filter(is_active=True).order_by("name")
    )
    return {
        "mail_is_sent": mail_is_sent(),
        "signup_open": settings.ACCOUNT_SIGNUP_ENABLED and not settings.SSO_ONLY,
        "sso_only": settings.SSO_ONLY,
        "identity_providers": providers,
    }
