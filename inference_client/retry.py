"""Whether to send once more, and when. Pure.

Only what certainly cost nothing is sent again: a request that never left, and one that was refused. A call that
broke off may have been computed and billed, so it is never repeated by itself.
"""

import random
from dataclasses import dataclass, field

from inference_client.errors import InferenceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how patiently."""

    attempts: int = 3
    """Sendings in all."""
    base_s: float = 0.25
    cap_s: float = 10.0
    """The longest wait. A server that asks for more is not waited for: somebody else may be free."""
    chance: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, error: InferenceError, attempt: int) -> float | None:
        """Seconds to wait after `attempt` sendings ended with `error`; None is: do not send again.

        Waits double and are spread over their whole length, so that callers who were refused together do not
        come back together. What the server asks for is a lower bound.
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        asked = error.retry_after or 0.0
        if asked > self.cap_s:
            return None
        spread = self.chance.uniform(0.0, min(self.cap_s, self.base_s * 2 ** (attempt - 1)))
        return min(self.cap_s, asked + spread)
