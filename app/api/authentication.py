"""Who is calling: an API key or an app's session in `Authorization: Bearer …`, or a signed-in browser."""

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from app.accounts.models import User
from app.accounts.selectors import Caller, caller_by_credential, caller_by_user
from app.accounts.services import keys_touch
from app.common.addresses import address_of
from app.common.errors import NotAuthenticated

TOUCH_SECONDS = 60
"""`last_used_at` is written at most this often for one key and process."""

_touched: dict[UUID, float] = {}


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Stands where Django expects a user: whoever holds a valid key, person or team."""

    caller: Caller
    is_authenticated: bool = True

    @property
    def pk(self) -> UUID | None:
        """The person's id; None for a key of a team."""
        return self.caller.user_id


class ApiKeyAuthentication(BaseAuthentication):
    """`request.auth` becomes the Caller. Errors: NotAuthenticated for a key that is unknown, expired or revoked.

    NotAllowed from an address that the key is not for.
    """

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        caller = caller_by_credential(key.strip())
        if caller is None:
            raise NotAuthenticated(
                "This API key or app session is unknown, expired or revoked. Make a new key with POST /api/v1/keys/, "
                "refresh the session, or sign in."
            )
        forwarded = request.headers.get("X-Forwarded-For", "")
        caller.require_address(address_of(request.META.get("REMOTE_ADDR", ""), forwarded))
        key_seen(caller)
        return KeyHolder(caller), caller

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="tessera"'


def key_seen(caller: Caller) -> None:
    """Note the use of a key, at most once a minute."""
    now = time.monotonic()
    if caller.key_id is None or now - _touched.get(caller.key_id, -TOUCH_SECONDS) < TOUCH_SECONDS:
        return
    _touched[caller.key_id] = now
    keys_touch(key_ids=[caller.key_id])


def caller_of(request: Request) -> Caller:
    """The caller of a request that passed authentication, whichever way. Errors: NotAuthenticated."""
    if isinstance(request.auth, Caller):
        return request.auth
    if not isinstance(request.user, User):
        raise NotAuthenticated
    caller = caller_by_user(request.user)
    # Asked for several times in one request; the memberships are read once.
    request.auth = caller
    return caller
