"""Errors that a caller is meant to see.

    AppError
    ├── InvalidInput (422)          a field is wrong; detail names it
    ├── NotAuthenticated (401)
    ├── NotAllowed (403)
    ├── NotFound (404)              unknown and unreadable are one and the same
    ├── Conflict (409)
    ├── TooLarge (413)
    ├── LimitReached (402)          money, tokens or requests of a budget
    ├── RateLimited (429)
    ├── Busy (503)                  a queue is too long
    ├── Restarting (503)
    └── PartFailed (503)            names the part: database, broker, embedder, chat server

Raised deep, turned into JSON in `app.api.errors` and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class AppError(Exception):
    """A refusal with a code from the closed list, words for a person, and data for a program."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str = "",
        *,
        detail: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        code: str | None = None,
    ) -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.detail: dict[str, Any] = dict(detail or {})
        self.retry_after = retry_after
        """Seconds after which trying again makes sense, when known."""
        self.name = code or self.code
        super().__init__(self.message)


class InvalidInput(AppError):
    """The request is not valid."""

    code, status = "invalid", 422


class NotAuthenticated(AppError):
    """Sign in or send an API key: `Authorization: Bearer …`."""

    code, status = "not_authenticated", 401


class NotAllowed(AppError):
    """Your role does not allow this."""

    code, status = "not_allowed", 403


class NotFound(AppError):
    """There is no such thing, or you may not read it."""

    code, status = "not_found", 404


class Conflict(AppError):
    """This does not fit the present state."""

    code, status = "conflict", 409


class TooLarge(AppError):
    """This is larger than the limit."""

    code, status = "too_large", 413


class LimitReached(AppError):
    """A budget has no room for this call."""

    code, status = "budget_exhausted", 402


class RateLimited(AppError):
    """Too many requests; wait a moment."""

    code, status, retryable = "rate_limited", 429, True


class Busy(AppError):
    """Everything is in use; try again in a moment."""

    code, status, retryable = "busy", 503, True


class Restarting(AppError):
    """This process is going down; the next one takes new questions in a moment."""

    code, status, retryable = "restarting", 503, True


class PartFailed(AppError):
    """A part of the installation does not answer."""

    code, status, retryable = "part_failed", 503, True

    def __init__(
        self, part: str, message: str, *, retry_after: float | None = 5, code: str | None = None
    ) -> None:
        super().__init__(message, detail={"part": part}, retry_after=retry_after, code=code)
