"""Stages stacked over time."""

from datetime import UTC, datetime, timedelta

import pytest

from app.chat.stages import STAGES
from app.dashboard.layers import LAYERS, stack
from app.dashboard.templatetags.speed import ms, portion

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_every_stage_lies_in_one_layer() -> None:
    assert sorted(name for layer in LAYERS for name in layer.stages) == sorted(STAGES)


def test_columns_stand_in_time_and_add_up() -> None:
    step = timedelta(minutes=10)
    series = [(START + step, 2, {"embed": 100.0, "decode": 300.0}), (START + 3 * step, 1, {"decode": 50.0})]
    chart = stack(series, since=START, until=START + 4 * step, step=step)
    assert [column.turns for column in chart.columns] == [0, 2, 0, 1, 0]
    assert [column.total for column in chart.columns] == [0, 400, 0, 50, 0]
    assert [(piece.colour, piece.y, piece.height) for piece in chart.columns[1].pieces] == [
        (1, "750.00", "250.00"),
        (4, "0.00", "750.00"),
    ]
    assert [column.at for column in chart.measured] == [START + 3 * step, START + step]
    assert chart.ticks[0] == 400


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0, "0 ms"),
        (0.4, "<1 ms"),
        (999.4, "999 ms"),
        (1234, "1.23 s"),
        (12_345, "12.3 s"),
        (90_000, "1.5 min"),
    ],
)
def test_times_in_words(value: float | None, words: str) -> None:
    assert ms(value) == words


@pytest.mark.parametrize(
    ("part", "whole", "words"), [(0, 10, "none"), (0, 0, "none"), (1, 1000, "<1 %"), (1, 4, "25 %")]
)
def test_portions_in_words(part: int, whole: int, words: str) -> None:
    assert portion(part, whole) == words
