"""The stage clock of a turn: where the time went, in milliseconds, the parts adding up to the total."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Split = Callable[[dict[str, float]], dict[str, float]]


class StageClock:
    """Names consecutive stages; time between two marks belongs to the stage that was open."""

    def __init__(self, arrived: float | None = None) -> None:
        """`arrived`: when the request came (`time.perf_counter`); what passed since then is `auth`."""
        now = time.perf_counter()
        self.began = now if arrived is None else arrived
        self._stages: dict[str, float] = {} if arrived is None else {"auth": now - arrived}
        self._open: tuple[str, float] | None = None
        self.first_token_at: float | None = None

    @contextmanager
    def stage(self, name: str, *, queued: Callable[[], float] | None = None) -> Iterator[None]:
        """Count what happens inside as `name`; the same name again adds up.

        Of it the seconds that `queued` tells at the end were spent in our line, and count as `gate_wait`.
        """
        start = time.perf_counter()
        self._open = (name, start)
        try:
            yield
        finally:
            self._open = None
            spent = time.perf_counter() - start
            if queued is not None:
                waited = min(spent, queued())
                spent -= waited
                self._stages["gate_wait"] = self._stages.get("gate_wait", 0.0) + waited
            self._stages[name] = self._stages.get(name, 0.0) + spent

    def first_token(self) -> None:
        """Note the first token; later calls change nothing."""
        if self.first_token_at is None:
            self.first_token_at = time.perf_counter()

    def figures(
        self, *, output_tokens: int | None, split: Split = lambda stages: stages
    ) -> dict[str, float | None]:
        """Milliseconds by stage (`…_ms`), with `ttft_ms`, `total_ms`, `other_ms` and `tokens_per_second`.

        A stage under way counts up to now. `split` divides stages further and changes no sum.
        """
        end = time.perf_counter()
        total = end - self.began
        stages = dict(self._stages)
        if self._open is not None:
            name, start = self._open
            stages[name] = stages.get(name, 0.0) + end - start
        stages = split(stages)
        figures: dict[str, float | None] = {f"{k}_ms": round(v * 1e3, 2) for k, v in stages.items()}
        unnamed = max(0.0, total - sum(stages.values()))
        figures["other_ms"] = round((unnamed + stages.get("other", 0.0)) * 1e3, 2)
        figures["total_ms"] = round(total * 1e3, 2)
        first = self.first_token_at
        figures["ttft_ms"] = None if first is None else round((first - self.began) * 1e3, 2)
        writing = stages.get("decode") or (None if first is None else end - first)
        figures["tokens_per_second"] = (
            round(output_tokens / writing, 1) if output_tokens and writing else None
        )
        return figures
