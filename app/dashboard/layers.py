"""A turn's stages in six layers, stacked over time. Pure; the template draws what it is given, 1000 units high."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from app.dashboard.chart import BAR, HEIGHT, MOST_LABELS, SLOT, TICKS, nice_top


@dataclass(frozen=True, slots=True)
class Layer:
    """Some stages under one name and colour."""

    name: str
    colour: int
    stages: tuple[str, ...]


LAYERS = (
    Layer("Our checks", 0, ("auth", "precount", "check", "reserve", "stitch", "redact")),
    Layer("Retrieval", 1, ("embed", "search", "quote")),
    Layer("Waiting in our line", 2, ("gate_wait", "retry")),
    Layer("First token", 3, ("connect", "load", "server_queue", "prefill", "first_token")),
    Layer("Writing", 4, ("decode",)),
    Layer("Booking", 5, ("check_output", "settle", "other")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A rectangle in plot units."""

    colour: int
    x: int
    y: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One step of time."""

    at: datetime
    label: str
    """Empty where a label would touch its neighbour."""
    slot_x: int
    turns: int
    parts: Sequence[tuple[str, float]]
    """Milliseconds by layer, in the order of a turn."""
    pieces: Sequence[Piece]

    @property
    def total(self) -> float:
        """Milliseconds of a mean turn."""
        return sum(ms for _, ms in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The chart."""

    columns: Sequence[Column]
    ticks: Sequence[Decimal]
    """Milliseconds at the grid lines from the top down, 0 last."""
    width: int
    layers: Sequence[Layer] = LAYERS

    @property
    def measured(self) -> Sequence[Column]:
        """The columns that have turns, newest first: the table."""
        return [column for column in reversed(self.columns) if column.turns]


def stack(
    series: Sequence[tuple[datetime, int, Mapping[str, float]]],
    *,
    since: datetime,
    until: datetime,
    step: timedelta,
) -> Stack:
    """A column for every step from `since` to `until`, empty where nothing was answered."""
    found = {int(at.timestamp()): (turns, stages) for at, turns, stages in series}
    width = int(step.total_seconds())
    first = int(since.timestamp()) // width * width
    moments = range(first, int(until.timestamp()) + 1, width)
    layered = [(moment, *_layered(*found.get(moment, (0, {})))) for moment in moments]
    highest = max((sum(ms for _, ms in parts) for _, _, parts in layered), default=0.0)
    top = nice_top(Decimal(f"{highest:.2f}"))
    every = -(-len(moments) // MOST_LABELS)
    columns = tuple(
        _column(index, moment, turns, parts, float(top), since, labelled=index % every == 0, step=step)
        for index, (moment, turns, parts) in enumerate(layered)
    )
    ticks = tuple(top * n / TICKS for n in range(TICKS, -1, -1))
    return Stack(columns=columns, ticks=ticks, width=max(1, len(columns)) * SLOT)


def _layered(turns: int, stages: Mapping[str, float]) -> tuple[int, list[tuple[str, float]]]:
    return turns, [(layer.name, sum(stages.get(name, 0.0) for name in layer.stages)) for layer in LAYERS]


def _column(  # noqa: PLR0913 - one column with its place
    index: int,
    moment: int,
    turns: int,
    parts: Sequence[tuple[str, float]],
    top: float,
    since: datetime,
    *,
    labelled: bool,
    step: timedelta,
) -> Column:
    at = datetime.fromtimestamp(moment, since.tzinfo)
    pieces, base = [], 0.0
    for layer, (_, ms) in zip(LAYERS, parts, strict=True):
        if ms > 0:
            height = ms / top * HEIGHT
            base += height
            x = index * SLOT + (SLOT - BAR) // 2
            pieces.append(Piece(colour=layer.colour, x=x, y=f"{HEIGHT - base:.2f}", height=f"{height:.2f}"))
    label = (f"{at:%-d %b}" if step >= timedelta(hours=6) else f"{at:%H:%M}") if labelled else ""
    return Column(at=at, label=label, slot_x=index * SLOT, turns=turns, parts=parts, pieces=tuple(pieces))
