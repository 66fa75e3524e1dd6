"""Everything that can go wrong with a call.

InferenceError
├── Busy                     the line for this server is too long; nothing was sent
├── Unreachable              no connection; the server never saw the request
├── TimedOut                 connected, but too slow (phase: headers, first_token, idle, total)
├── BrokenStream             the connection or the answer ended before its end
│   └── MalformedAnswer      the answer is not what the protocol says, or is over a size cap
├── Refused                  the server answered with an error
│   ├── Throttled            too many requests; wait
│   ├── Overloaded           the server is full or still loading; wait or go elsewhere
│   ├── UpstreamMoneyExhausted  the account at the provider has no money; never retry
│   ├── ContextTooLong       the prompt does not fit the model's window
│   ├── ContentBlocked       a filter refused the prompt or the answer
│   ├── ModelMissing         no such model on this server
│   ├── BadAuth              the key is missing, wrong or not allowed
│   ├── InvalidRequest       the request itself is at fault
│   └── ServerFault          the server failed
└── Unsupported              this kind of server cannot do what was asked; nothing was sent

The first line of each class's docstring is its message. What the server said is kept in `upstream`,
shortened and without keys, for operators; it is never part of the message, as it may quote the prompt.
"""

import re
from typing import ClassVar

from inference_client.types import ErrorInfo, Usage

_UPSTREAM_CAP = 500
_SECRET = re.compile(r"(?i)(bearer\s+|\b(?:sk|pk|key|hf|gsk|xai|r8|nvapi)[-_])[A-Za-z0-9_\-.*]{4,}")


class InferenceError(Exception):
    """The inference server could not answer. Try again, or choose another model."""

    retryable: ClassVar[bool] = False
    never_sent: ClassVar[bool] = False

    def __init__(
        self,
        message: str | None = None,
        *,
        upstream: str | None = None,
        code: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        """`upstream` is the server's own wording, `code` its machine-readable code, `retry_after` seconds."""
        self.message = message or (type(self).__doc__ or "").split("\n", 1)[0]
        self.upstream = redacted(upstream) if upstream else None
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.used: Usage | None = None
        """What other requests of the same call had used, whose answers are lost with this one's."""
        self.answered = 0
        """How many of its inputs they had answered."""
        super().__init__(self.message)

    @property
    def info(self) -> ErrorInfo:
        """This failure as a plain value."""
        return ErrorInfo(
            name=type(self).__name__,
            message=self.message,
            code=self.code,
            status=self.status,
            retryable=self.retryable,
            never_sent=self.never_sent,
        )


class Busy(InferenceError):
    """Too many calls wait for this model. Try again in a moment, or choose another model."""

    retryable = True
    never_sent = True

    def __init__(self, position: int, expected_s: float | None) -> None:
        """`position` in line when the wait began; `expected_s` seconds to wait from then, where it is known."""
        self.position = position
        self.expected_s = expected_s
        wait = "" if expected_s is None else f" The wait would be about {max(1, round(expected_s))} s."
        super().__init__(
            f"Too many calls wait for this model: yours is number {position} in line.{wait} "
            "Try again in a moment, or choose another model.",
            code="busy",
            retry_after=expected_s,
        )


class Unreachable(InferenceError):
    """The inference server cannot be reached. Check that it runs and that its address is right."""

    retryable = True
    never_sent = True


class TimedOut(InferenceError):
    """The inference server took too long. Try again later, or raise the server's time limits."""

    def __init__(self, phase: str, seconds: float) -> None:
        """`phase` is headers, first_token, idle or total; `seconds` the limit that passed."""
        self.phase = phase
        self.seconds = seconds
        words = {
            "headers": "did not begin to answer",
            "first_token": "sent no first token",
            "idle": "fell silent in the middle of the answer",
            "total": "did not finish the answer",
        }
        super().__init__(
            f"The inference server {words[phase]} within {seconds:g} s. "
            "Try again later, or raise this time limit of the server.",
            code=f"timeout_{phase}",
        )


class BrokenStream(InferenceError):
    """The answer broke off before its end. What arrived is kept; ask again to get the rest."""


class MalformedAnswer(BrokenStream):
    """The inference server sent something that is not a valid answer. Check its kind and address."""


class Refused(InferenceError):
    """The inference server refused the call."""


class Throttled(Refused):
    """The inference server limits how often it may be called. Wait a moment and try again."""

    retryable = True


class Overloaded(Refused):
    """The inference server is full or still loading its model. Wait a moment, or choose another model."""

    retryable = True


class UpstreamMoneyExhausted(Refused):
    """The account at the model provider has no money left. The operator must top it up or raise its limit."""


class ContextTooLong(Refused):
    """The prompt does not fit the model's context window. Shorten it, or choose a larger model."""

    def __init__(
        self,
        message: str | None = None,
        *,
        upstream: str | None = None,
        code: str | None = None,
        status: int | None = None,
        input_tokens: int | None = None,
        context_window: int | None = None,
    ) -> None:
        """`input_tokens` and `context_window` are the server's two numbers, where it told them."""
        self.input_tokens = input_tokens
        self.context_window = context_window
        if message is None and input_tokens is not None and context_window is not None:
            message = (
                f"The prompt has {input_tokens} tokens, and the model's context window holds "
                f"{context_window}. Shorten it, or choose a larger model."
            )
        elif message is None and context_window is not None:
            message = (
                f"The prompt does not fit the model's context window of {context_window} tokens. Shorten it, or "
                "choose a larger model."
            )
        super().__init__(message, upstream=upstream, code=code, status=status)


class ContentBlocked(Refused):
    """A content filter at the model provider refused this. Rephrase it, or choose another model."""


class ModelMissing(Refused):
    """The inference server does not have this model. Check the model's name in the server's settings."""


class BadAuth(Refused):
    """The inference server refused our key. The operator must set a valid one."""


class InvalidRequest(Refused):
    """The inference server found the request invalid. Check the options that were sent."""


class ServerFault(Refused):
    """The inference server failed while answering. Try again, or choose another model."""

    retryable = True


class Unsupported(InferenceError):
    """This kind of inference server cannot do that. Leave the option out, or choose another model."""

    never_sent = True


def redacted(text: str) -> str:
    """`text` with anything that looks like a key struck out, at most 500 characters."""
    return _SECRET.sub(r"\1…", text[: 4 * _UPSTREAM_CAP])[:_UPSTREAM_CAP]
