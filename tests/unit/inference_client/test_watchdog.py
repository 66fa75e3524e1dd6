"""A deadline that is only noted, and one timer that looks at the note."""

import asyncio
from collections.abc import Callable

from inference_client.watchdog import Watchdog


def rings(steps: Callable[[Watchdog, float], None], seconds: float = 0.06) -> tuple[int, str | None]:
    """(how often it rang, the phase) after `steps(watchdog, now)` and some time."""

    async def scene() -> tuple[int, str | None]:
        count = 0

        def ring() -> None:
            nonlocal count
            count += 1

        loop = asyncio.get_running_loop()
        watchdog = Watchdog(loop, ring)
        steps(watchdog, loop.time())
        await asyncio.sleep(seconds)
        watchdog.close()
        await asyncio.sleep(0.02)
        return count, watchdog.expired

    return asyncio.run(scene())


def test_a_deadline_that_passes_rings_once() -> None:
    assert rings(lambda dog, now: dog.arm(now + 0.01, "idle")) == (1, "idle")


def test_a_deadline_that_moved_on_does_not_ring() -> None:
    def steps(dog: Watchdog, now: float) -> None:
        dog.arm(now + 0.01, "idle")
        dog.arm(now + 30, "idle")

    assert rings(steps) == (0, None)


def test_a_deadline_that_moved_on_rings_later() -> None:
    def steps(dog: Watchdog, now: float) -> None:
        dog.arm(now + 0.01, "first_token")
        dog.arm(now + 0.03, "idle")

    assert rings(steps, 0.2) == (1, "idle")


def test_an_earlier_deadline_replaces_a_later_one() -> None:
    def steps(dog: Watchdog, now: float) -> None:
        dog.arm(now + 30, "total")
        dog.arm(now + 0.01, "grace")

    assert rings(steps, 0.2) == (1, "grace")


def test_what_came_in_time_does_not_ring() -> None:
    def steps(dog: Watchdog, now: float) -> None:
        dog.arm(now + 0.01, "idle")
        dog.disarm()

    assert rings(steps) == (0, None)


def test_closing_ends_it_for_good() -> None:
    def steps(dog: Watchdog, now: float) -> None:
        dog.arm(now + 0.01, "idle")
        dog.close()

    assert rings(steps) == (0, None)
