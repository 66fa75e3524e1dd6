"""A turn that ended leaves nothing to the garbage collector, which a web process runs seldom."""

import gc
from collections.abc import Callable

from app.chat.runs import Run
from app.chat.turn import Turn
from app.chat.types import Ask
from app.gate.admission import Admission
from tests.integration.chat.upstream import answered, said


def test_a_turn_that_ended_is_gone_without_a_collection(gather: Callable[..., Ask]) -> None:
    answered(gather("Say"), said("ab"))
    gc.collect()
    gc.disable()
    try:
        taken = answered(gather("Say"), said("ab"))
        del taken
        left = [type(found) for found in gc.get_objects() if isinstance(found, Turn | Run | Admission)]
    finally:
        gc.enable()
    assert left == []
