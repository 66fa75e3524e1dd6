"""What is waited for, and for how long."""

import pytest

from app.common.errors import PartFailed
from retrieval.errors import EmbeddingMismatch, EmbeddingUnavailable, ReadError, StoreAway
from retrieval.patience import tries

SHORT = 35.0
"""Seconds of the pauses that need no word of when to come again."""


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (PartFailed("embedder", "It is loaded.", retry_after=3), 517.0),
        (PartFailed("embedder", "It refuses the key.", retry_after=None), SHORT),
        (StoreAway("originals", "503"), 520.0),
        (EmbeddingUnavailable(), SHORT),
        (EmbeddingMismatch(), 0.0),
        (ReadError("It is damaged."), 0.0),
        (PartFailed("embedder", "Come again tomorrow.", retry_after=86_400), 12 * 60.0),
    ],
)
def test_a_long_wait_is_for_who_says_when_to_come_again(error: Exception, seconds: float) -> None:
    waited = 0.0

    def work() -> None:
        raise error

    with pytest.raises(type(error)):
        for patience in tries():
            with patience:
                work()
            waited += patience.seconds
        work()
    assert waited == seconds
