"""Entries of several events: a reader gets exactly what it does not have yet."""

import pytest

from app.chat.event_store import frames_after
from app.chat.events import TurnEvent, parsed

EVENTS = [TurnEvent(n, "delta", {"text": f"{n}\n\n"}) for n in range(8, 12)]
ENTRY = b"".join(event.frame for event in EVENTS)


@pytest.mark.parametrize("after", range(13))
def test_an_entry_is_cut_at_the_number_that_the_reader_has(after: int) -> None:
    expected = [("delta", dict(e.data)) for e in EVENTS if e.number > after]
    assert list(parsed(frames_after(ENTRY, after))) == expected
