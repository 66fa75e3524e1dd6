"""Readers that lose their connection again and again, and model servers whose every answer is known beforehand."""

import asyncio
import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.common.models import uuid7
from inference_client.adapters.openai_chat import ADAPTER
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import FaultServer, Script

PACE_SECONDS = 0.2
PATIENCE_SECONDS = 600
"""How long a reader may hear nothing new: a process died, the sweeper came by, a new one started, on a busy machine.
A story that goes on, however slowly, is waited for."""
_QUESTION = re.compile(rb"Story (\d+) in (\d+) words")
_WORDS = ("sea ", "lamp ", "Grüße ", "日本 ", "keeper ", "\n\n", "🌊 ", "and ", "`x = 1` ", "naïve ")
_ONE_WORD = b'"content":'
_AGAIN = {409, 502, 503, 504}
"""Answers after which the same request is sent again: nobody is there yet, or the first one is still being read."""


def question(number: int, words: int) -> str:
    """What to ask for the story of this number."""
    return f"Story {number} in {words} words"


def story(number: int, words: int) -> list[str]:
    """The words of one story; no two stories are alike."""
    chosen = random.Random(number)
    mark = hashlib.sha256(str(number).encode()).hexdigest()[:8]
    return [f"{mark} ", *(chosen.choice(_WORDS) for _ in range(words - 1))]


def first_half(words: list[str]) -> list[str]:
    """What a server says of a story that then breaks off."""
    return words[: len(words) // 2]


class Teller(FaultServer):
    """Tells the story it is asked for, a word every so often; a `fickle` one breaks off in the middle."""

    def __init__(self, *, fickle: bool = False) -> None:
        super().__init__()
        self._fickle = fickle
        self.told: set[int] = set()
        """Stories that it began."""

    def next_script(self) -> Script:
        asked = _QUESTION.search(self.seen[-1].body)
        assert asked is not None, self.seen[-1].body[-300:]
        # There are thousands; only the last one is of interest.
        del self.seen[:-1]
        self.told.add(int(asked[1]))
        words = story(int(asked[1]), int(asked[2]))
        if not self._fickle:
            return Script(answer=Answer(words=words), gap_s=PACE_SECONDS)
        pieces = ADAPTER.scripted(Answer(words=first_half(words)))
        body = tuple(piece for piece in pieces if _ONE_WORD in piece)
        return Script(body=body, gap_s=PACE_SECONDS, ending="reset")


@dataclass
class Screen:
    """What one reader shows of one turn, whichever pieces it came in."""

    number: int
    words: int
    fickle: bool
    key: str = field(default_factory=lambda: str(uuid7()))
    turn_id: str = ""
    last_id: int = 0
    text: str = ""
    ends: list[str] = field(default_factory=list)

    def take(self, number: int, name: str, data: dict[str, Any]) -> None:
        """One event, as the chat page takes it."""
        self.last_id = number
        if name == "turn":
            self.turn_id = data["turn_id"]
        elif name == "delta":
            self.text = data["text"] if data.get("replace") else self.text + data["text"]
        elif name in {"done", "error"}:
            self.ends.append(data.get("finish_reason") or data["code"])

    @property
    def place(self) -> tuple[str, int]:
        """How far it is; two that are equal have nothing new between them."""
        return self.turn_id, self.last_id

    @property
    def sent(self) -> str:
        """What the model server says, unless its caller dies."""
        words = story(self.number, self.words)
        return "".join(first_half(words) if self.fickle else words)


async def events(response: httpx.Response) -> AsyncIterator[tuple[int, str, dict[str, Any]]]:
    """Server-sent events as they come."""
    number, name = 0, ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield number, name, json.loads(line[6:])


class Stalled(AssertionError):
    """A reader heard nothing new for too long; says where it waits."""

    def __init__(self, words: str, turn_id: str) -> None:
        super().__init__(words)
        self.turn_id = turn_id


class Reader:
    """One of many: asks, reads, loses the line, comes back with `Last-Event-ID`, until the turn has ended."""

    def __init__(self, number: int, doors: list[str], key: str, models: dict[str, str]) -> None:
        self.number, self.doors, self.models = number, doors, models
        self.headers = {"Authorization": f"Bearer {key}"}
        self.random = random.Random(number)
        self.screens: list[Screen] = []
        self.counts: Counter[str] = Counter()
        self.conversation = ""
        self.doing = "nothing yet"

    async def tell(self, http: httpx.AsyncClient, words: int) -> None:
        """One story to its end. Errors: Stalled when nothing new comes any more."""
        fickle = self.random.random() < 0.1
        screen = Screen(self.number * 10_000 + len(self.screens), words, fickle)
        self.screens.append(screen)
        moved, place = time.monotonic(), screen.place
        while not screen.ends:
            try:
                # A stream may be kept warm and yet tell nothing.
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._read(http, screen)
            except httpx.TransportError as exc:
                self.counts["cut"] += 1
                self.doing += f", cut ({type(exc).__name__})"
            except TimeoutError:
                self.counts["left a slow stream"] += 1
            if place != screen.place:
                moved, place = time.monotonic(), screen.place
            if not screen.ends and time.monotonic() - moved > PATIENCE_SECONDS:
                raise Stalled(f"nothing new for {PATIENCE_SECONDS} s: {self.where(screen)}", screen.turn_id)
            await asyncio.sleep(self.random.random() * 0.3)

    @property
    def waits(self) -> bool:
        """Whether its newest story has not ended."""
        return bool(self.screens) and not self.screens[-1].ends

    def where(self, screen: Screen) -> str:
        """How far this reader got, and what it did last."""
        kind = "fickle" if screen.fickle else "steady"
        turn = f"turn {screen.turn_id} at event {screen.last_id}" if screen.turn_id else "not begun"
        return (
            f"reader {self.number} has no end of {kind} story {screen.number}: "
            f"{turn}, {len(screen.text)} of {len(screen.sent)} letters; last: {self.doing}; {dict(self.counts)}"
        )

    async def _read(self, http: httpx.AsyncClient, screen: Screen) -> None:
        """Read for a while: to the end, to a cut, or until this reader reloads its page."""
        enough = self.random.randrange(1, 60) if self.random.random() < 0.7 else None
        request = self._request(screen)
        self.doing = f"{request['method']} {request['url']}"
        async with http.stream(**request) as response:
            self.doing += f" was answered {response.status_code}"
            if response.status_code in _AGAIN:
                self.counts[f"answered {response.status_code}"] += 1
                await asyncio.sleep(1)
                return
            assert response.status_code == 200, (response.status_code, await response.aread())
            seen = 0
            async for number, name, data in events(response):
                screen.take(number, name, data)
                seen += 1
                if seen == enough and not screen.ends:
                    self.counts["reload"] += 1
                    return
            if not screen.ends:
                self.counts["broken off"] += 1

    def _request(self, screen: Screen) -> dict[str, Any]:
        door = self.random.choice(self.doors)
        if screen.turn_id:
            headers = self.headers | ({"Last-Event-ID": str(screen.last_id)} if screen.last_id else {})
            return {
                "method": "GET",
                "url": f"{door}/api/v1/turns/{screen.turn_id}/events/",
                "headers": headers,
            }
        body = {
            "text": question(screen.number, screen.words), "parent": None, "collections": [],
            "model": self.models["fickle" if screen.fickle else "steady"],
        }  # fmt: skip
        return {
            "method": "POST",
            "url": f"{door}/api/v1/conversations/{self.conversation}/turns/",
            "headers": self.headers | {"Idempotency-Key": screen.key},
            "json": body,
        }
