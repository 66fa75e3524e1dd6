"""How fast somebody may call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateRule:
    """One subject's limits; None is no limit."""

    subject: str
    """Whom it counts, without `*`; see `subjects`."""
    requests: int | None
    """A minute."""
    tokens: int | None
    """A minute, input and output together."""
    streams: int | None
    """At once."""
