"""Who is next. Pure: interactive before background, in turn over teams, within a team in turn over people."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, Literal, TypeAlias, TypeVar

Lane: TypeAlias = Literal["interactive", "background"]
LANES: tuple[Lane, ...] = ("interactive", "background")
T = TypeVar("T", bound=Hashable)


class FairQueue(Generic[T]):
    """Items wait under a lane, a team and a person. Adding and taking cost the same however many wait."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, OrderedDict[str, OrderedDict[str, deque[T]]]] = {
            lane: OrderedDict() for lane in LANES
        }
        self._where: dict[T, tuple[Lane, str, str]] = {}

    def __len__(self) -> int:
        return len(self._where)

    def put(self, item: T, *, lane: Lane, team: str, person: str) -> None:
        """Let `item` wait behind its person's earlier ones."""
        people = self._lanes[lane].setdefault(team, OrderedDict())
        people.setdefault(person, deque()).append(item)
        self._where[item] = (lane, team, person)

    def take(self, lane: Lane) -> T | None:
        """The next item of `lane`; its team and its person then go to the end of their lines."""
        teams = self._lanes[lane]
        if not teams:
            return None
        team, people = next(iter(teams.items()))
        person, items = next(iter(people.items()))
        item = items.popleft()
        del self._where[item]
        teams.move_to_end(team)
        people.move_to_end(person)
        self._tidy(lane, team, person)
        return item

    def remove(self, item: T) -> None:
        """Let `item` leave the line; nothing happens when it is not in it."""
        where = self._where.pop(item, None)
        if where is not None:
            lane, team, person = where
            self._lanes[lane][team][person].remove(item)
            self._tidy(lane, team, person)

    def ahead(self, *, lane: Lane, team: str, person: str) -> int:
        """How many will be served before one more item of `person`, if nobody else comes."""
        before = 0 if lane == "interactive" else self._count("interactive")
        mine = self._lanes[lane].get(team, OrderedDict())
        own = len(mine.get(person, ()))
        # Until this person has had `own` turns, every other person of the team gets at most one more each round.
        in_team = sum(min(len(items), own + 1) for name, items in mine.items() if name != person) + own
        others = sum(
            min(sum(map(len, people.values())), in_team + 1)
            for name, people in self._lanes[lane].items()
            if name != team
        )
        return before + in_team + others

    def _count(self, lane: Lane) -> int:
        return sum(len(items) for people in self._lanes[lane].values() for items in people.values())

    def _tidy(self, lane: Lane, team: str, person: str) -> None:
        people = self._lanes[lane][team]
        if not people[person]:
            del people[person]
        if not people:
            del self._lanes[lane][team]
