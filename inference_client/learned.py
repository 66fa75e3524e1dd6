"""How far our own token count is off from a server's, learned from pairs of both. Pure.

Two quantiles of the ratio server ÷ ours are followed step by step, so a model's whole experience is three numbers
that fit a row: no history is kept, and no prompt.
"""

import math
from dataclasses import dataclass

_SLOWEST = 0.01
"""The step never gets smaller, so that a server's new tokenizer is learned within some hundred calls."""
_LIMIT = math.log(10.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one model and one counter; without pairs, what is safe to assume."""

    ratio_p50: float = 1.0
    ratio_p95: float = 1.35
    """Text in other scripts than the counter was made for takes a third more tokens, and at times twice as many."""
    n: int = 0
    """Pairs seen."""

    @property
    def error_pct(self) -> float:
        """The band above the expected number, in percent of it."""
        return (self.ratio_p95 / self.ratio_p50 - 1) * 100

    def expected(self, counted: int) -> int:
        """What the server is likely to say where we counted `counted`."""
        return round(counted * self.ratio_p50)

    def upper(self, counted: int) -> int:
        """What it says more than in one of twenty cases only: what to reserve."""
        return math.ceil(counted * self.ratio_p95)

    def updated(self, precount: int, server: int) -> "Learned":
        """With one more pair; numbers below 1 teach nothing."""
        if precount < 1 or server < 1:
            return self
        seen = min(_LIMIT, max(-_LIMIT, math.log(server / precount)))
        step = max(_SLOWEST, 0.5 / (self.n + 1) ** 0.75)
        middle = _moved(math.log(self.ratio_p50), seen, 0.5, step)
        top = max(middle, _moved(math.log(self.ratio_p95), seen, 0.95, step))
        return Learned(math.exp(middle), math.exp(top), self.n + 1)


def _moved(quantile: float, seen: float, share: float, step: float) -> float:
    """One step of the quantile towards `seen`, never past it.

    In balance it goes up as far as down: a `share` of what is seen pulls down by one minus the share, and the
    rest pulls up.
    """
    if seen >= quantile:
        return quantile + min(seen - quantile, step * share)
    return quantile - min(quantile - seen, step * (1 - share))
