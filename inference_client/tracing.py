"""W3C trace context: where a call belongs in a trace that others began, or that begins with us. Pure.

https://www.w3.org/TR/trace-context/
"""

import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Self

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_STATE = re.compile(r"[\x20-\x7e]{1,512}")


@dataclass(frozen=True, slots=True)
class Trace:
    """The present place in a trace."""

    trace_id: str
    """32 hex digits."""
    flags: str = "00"
    state: str = ""
    """What other tracers along the way want to find again; handed on untouched."""

    @classmethod
    def read(cls, headers: Mapping[str, str], *, otherwise: str) -> Self:
        """From the headers of a request (names in lower case); a new trace `otherwise` when they hold none."""
        found = _PARENT.fullmatch(headers.get("traceparent", "").strip())
        if found is None:
            return cls(otherwise)
        state = headers.get("tracestate", "")
        return cls(found[1], found[3], state if _STATE.fullmatch(state) else "")

    def without_state(self) -> Self:
        """For servers elsewhere: what other tracers noted is not theirs to see."""
        return replace(self, state="")

    def headers(self) -> dict[str, str]:
        """For one call, with a span of its own."""
        own = {"traceparent": f"00-{self.trace_id}-{secrets.token_hex(8)}-{self.flags}"}
        return own | ({"tracestate": self.state} if self.state else {})


current_trace: ContextVar[Trace | None] = ContextVar("inference_client_trace", default=None)


def trace_headers() -> dict[str, str]:
    """Headers of the next call; none outside a trace."""
    trace = current_trace.get()
    return {} if trace is None else trace.headers()
