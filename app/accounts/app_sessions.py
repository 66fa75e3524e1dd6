"""Sessions of apps: short access tokens, and refresh tokens that are good for one use."""

import logging

from allauth.headless.tokens.strategies.jwt import JWTTokenStrategy, internal
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import transaction

from app.common.clock import now

log = logging.getLogger(__name__)


class AppTokens(JWTTokenStrategy):
    """allauth's tokens, with one rule more: a refresh token that comes a second time ends its session.

    Either the thief or the owner comes second, and nobody can tell which, so both have to sign in again.
    """

    def refresh_token(self, refresh_token: str) -> tuple[str, str] | None:
        """A new pair; None when the token is unknown, used or expired."""
        payload = internal.decode_token(refresh_token, "refresh")
        key = internal.session_key_from_sid(payload["sid"]) if payload else None
        if key is None:
            return None
        with transaction.atomic():
            # One at a time for a session: of two that come together, the later one is the second use.
            if not Session.objects.select_for_update().filter(session_key=key).exists():
                return None
            pair: tuple[str, str] | None = super().refresh_token(refresh_token)
            devices = UserSession.objects.filter(session_key=key)
            if pair is None:
                log.warning("A refresh token came twice; the app's session is ended.")
                Session.objects.filter(session_key=key).delete()
                devices.delete()
            else:
                devices.update(last_seen_at=now())
            return pair
