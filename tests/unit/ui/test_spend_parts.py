"""The pure parts of the spend page: amounts in words, filters of the address, geometry of the chart."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qsl
from uuid import UUID

import pytest
from django.utils.translation import override

from app.common.formatting import count, decimals_for, figure, money, share, size
from app.dashboard.burn import burn
from app.dashboard.chart import Amount, Series, chart, nice_top
from app.dashboard.filters import SpendFilter, parse, presets
from app.dashboard.forecast import Forecast, forecast
from app.dashboard.tables import Cell, table_of

D = Decimal
TODAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (D(0), "€0.00"),
        (D("0.00019880"), "€0.00020"),
        (D("0.000000012"), "€0.000000012"),
        (D("0.0994"), "€0.099"),
        (D("0.0995"), "€0.10"),
        (D("1234567.895"), "€1\u202f234\u202f567.90"),
        (D("-3.5"), "−€3.50"),
        (None, "unknown"),
    ],
)
def test_figure(amount: Decimal | None, shown: str) -> None:
    assert figure(amount, "EUR") == shown


@pytest.mark.parametrize(
    ("amount", "decimals", "shown"),
    [
        (D("0.00001"), 4, "<€0.0001"),
        (D("0.00005"), 4, "<€0.0001"),
        (D("0.00015"), 4, "€0.0002"),
        (D("12.5"), 2, "€12.50"),
        (D(0), 6, "€0.000000"),
    ],
)
def test_money_in_a_column(amount: Decimal, decimals: int, shown: str) -> None:
    assert money(amount, "EUR", decimals) == shown


def test_money_in_a_currency_without_a_symbol() -> None:
    assert money(D(2), "CHF") == "CHF 2.00"


def test_amounts_are_written_as_the_reader_of_a_page_writes_them() -> None:
    with override("de"):
        shown = [
            figure(D("0.0014"), "EUR"),
            money(D("-1234.5"), "EUR"),
            money(D("0.00001"), "USD", 4),
            money(D(2), "CHF"),
        ]
        assert shown == ["0,0014\u00a0€", "−1\u202f234,50\u00a0€", "<0,0001\u00a0$", "2,00\u00a0CHF"]
        assert size(12_300_000) == "12,3 MB"


@pytest.mark.parametrize(
    ("amount", "decimals"), [(D(100), 2), (D("99.99"), 4), (D(1), 4), (D("0.99"), 6), (D(-250), 2)]
)
def test_decimals_for(amount: Decimal, decimals: int) -> None:
    assert decimals_for(amount) == decimals


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (D(0), D(0), "0 %"),
        (D(1), D(3), "33 %"),
        (D(1), D(1000), "<1 %"),
        (D(5), D(5), "100 %"),
        (D(0), D(5), "0 %"),
    ],
)
def test_share(part: Decimal, whole: Decimal, shown: str) -> None:
    assert share(part, whole) == shown


def test_count() -> None:
    assert count(1234567) == "1\u202f234\u202f567"


TEAM = UUID("0192f1c0-77aa-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("params", "expected", "problems"),
    [
        ({}, SpendFilter(date(2026, 11, 1), TODAY), 0),
        ({"from": "2026-10-05", "to": "2026-10-06"}, SpendFilter(date(2026, 10, 5), date(2026, 10, 6)), 0),
        ({"from": "2026-10-06", "to": "2026-10-05"}, SpendFilter(date(2026, 10, 5), date(2026, 10, 6)), 1),
        ({"to": "yesterday"}, SpendFilter(date(2026, 11, 1), TODAY), 1),
        ({"from": "0001-01-01"}, SpendFilter(date(2026, 11, 1), TODAY), 1),
        (
            {"group_by": "model", "team": str(TEAM)},
            SpendFilter(date(2026, 11, 1), TODAY, "model", team=TEAM),
            0,
        ),
        ({"group_by": "mood", "team": "x"}, SpendFilter(date(2026, 11, 1), TODAY), 2),
        ({"from": "2001-01-01"}, SpendFilter(date(2021, 11, 27), TODAY), 1),
    ],
)
def test_parse(params: dict[str, str], expected: SpendFilter, problems: int) -> None:
    found, said = parse(params, TODAY)
    assert (found, len(said)) == (expected, problems)


def test_filter_survives_its_own_address() -> None:
    chosen = SpendFilter(date(2026, 2, 3), date(2026, 4, 5), "person", team=TEAM, model="a b", flag="late")
    params = dict(parse_qsl(chosen.query()))
    assert parse(params, TODAY) == (chosen, [])


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (
            SpendFilter(date(2026, 11, 2), TODAY, "model", team=TEAM),
            "Team Research, last 29 days, by model",
        ),
        (SpendFilter(date(2026, 11, 1), TODAY, "day"), "Everyone, this month, by day"),
        (SpendFilter(TODAY, TODAY, "key"), "Everyone, today, by API key"),
        (
            SpendFilter(TODAY, TODAY, "hour", model="atlas", kind="title"),
            "Everyone, model atlas, title calls, today, by hour",
        ),
        (SpendFilter(date(2026, 1, 2), date(2026, 1, 2), "day"), "Everyone, 2 January 2026, by day"),
        (
            SpendFilter(date(2026, 1, 2), date(2026, 2, 3), "day"),
            "Everyone, 2 January 2026 to 3 February 2026, by day",
        ),
    ],
)
def test_sentence(chosen: SpendFilter, sentence: str) -> None:
    names = {"team": "Research", "model": chosen.model, "kind": chosen.kind}
    assert chosen.sentence(names, TODAY) == sentence


def test_hours_of_many_days_are_not_shown() -> None:
    chosen, said = parse({"from": "2026-10-01", "group_by": "hour"}, TODAY)
    assert (chosen.group_by, len(said)) == ("day", 1)


def test_bounds_are_whole_days_of_the_zone() -> None:
    # Summer time ended on 25 October: that day has 25 hours in Berlin.
    day = date(2026, 10, 25)
    first, after = SpendFilter(day, day).bounds("Europe/Berlin")
    assert first.astimezone(UTC) == datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert after.astimezone(UTC) == datetime(2026, 10, 25, 23, tzinfo=UTC)


def test_one_preset_is_the_present_one() -> None:
    marked = [words for words, _, current in presets(SpendFilter(date(2026, 11, 1), TODAY), TODAY) if current]
    assert marked == ["30 days"]


@pytest.mark.parametrize(
    ("highest", "top"),
    [(D(0), D(1)), (D("0.00031"), D("0.0004")), (D(2), D(2)), (D("61"), D(80)), (D("8.1"), D(10))],
)
def test_nice_top(highest: Decimal, top: Decimal) -> None:
    assert nice_top(highest) == top


def test_bars_stack_from_zero_and_add_up() -> None:
    one, two = date(2026, 11, 1), date(2026, 11, 2)
    made = chart(
        first=one,
        last=two,
        series=[
            Series("a", 0, {one: Amount(D(1), D("0.5")), two: Amount(D(2))}),
            Series("b", 1, {two: Amount(D(2))}),
        ],
    )
    assert made.top == D(4)
    assert made.ticks == (D(4), D(3), D(2), D(1), D(0))
    assert made.total == Amount(D(5), D("0.5"))
    left, right = made.bars
    assert [(s.y, s.height, s.hatch_height) for s in left.segments] == [("750.00", "250.00", "125.00")]
    assert [(s.colour, s.y, s.height) for s in right.segments] == [
        (0, "500.00", "500.00"),
        (1, "0.00", "500.00"),
    ]
    assert right.parts == (("a", Amount(D(2))), ("b", Amount(D(2))))


def test_long_spans_are_drawn_by_month() -> None:
    days = {date(2025, 12, 31): Amount(D(1)), date(2026, 1, 1): Amount(D(2)), date(2026, 1, 31): Amount(D(3))}
    made = chart(first=date(2025, 12, 1), last=date(2026, 11, 30), series=[Series("a", 0, days)])
    assert made.by_month
    assert len(made.bars) == 12
    assert [bar.total.price for bar in made.bars[:3]] == [D(1), D(5), D(0)]
    assert [bar.label for bar in made.bars[:3]] == ["Dec 2025", "", "Feb"]


def test_nothing_spent_is_an_empty_chart() -> None:
    made = chart(first=TODAY, last=TODAY, series=[])
    assert made.total == Amount()
    assert made.bars[0].segments == ()


def test_hours_and_weeks_have_their_own_bars() -> None:
    first, last = datetime(2026, 11, 30, 8, tzinfo=UTC), datetime(2026, 11, 30, 11, tzinfo=UTC)
    hours = chart(
        first=TODAY,
        last=TODAY,
        series=[Series("a", 0, {first: Amount(D(1)), last: Amount(D(2))})],
        step="hour",
    )
    assert [bar.label for bar in hours.bars] == ["08:00", "09:00", "10:00", "11:00"]
    # Over days the days are what tells, at the midnights of the zone; one night in Berlin has two o'clock twice.
    october = datetime(2026, 10, 23, 22, tzinfo=UTC)
    week = {october + timedelta(hours=n): Amount(D(1)) for n in range(73)}
    days = chart(first=october, last=TODAY, series=[Series("a", 0, week)], step="hour", zone="Europe/Berlin")
    assert [bar.label for bar in days.bars if bar.label] == ["24 Oct", "25 Oct", "26 Oct"]
    assert [bar.name for bar in days.bars].count("25 October 2026, 02:00") == 2
    monday = date(2026, 11, 16)
    weeks = chart(
        first=date(2026, 11, 18), last=TODAY, series=[Series("a", 0, {monday: Amount(D(1))})], step="week"
    )
    assert [bar.total.price for bar in weeks.bars] == [D(1), D(0), D(0)]
    assert weeks.bars[0].name == "week from 16 November 2026"


def test_a_forecast_is_what_the_same_weekdays_brought() -> None:
    today = date(2026, 11, 20)
    days = {
        today - timedelta(days=n): D(10) if (today - timedelta(days=n)).weekday() < 5 else D(0)
        for n in range(90)
    }
    days[today] = D(4)
    found = forecast(days, today=today)
    # Working days: 14 before today, today and 6 after it.
    assert found == Forecast(D(210), D(210), D(210), 8)
    days[today - timedelta(days=14)] = D(90)
    wider = forecast(days, today=today)
    assert wider is not None
    assert (wider.low, wider.high - wider.low) == (D(290), D(80))


def test_a_day_that_brought_more_than_usual_is_not_taken_back() -> None:
    today = date(2026, 11, 30)
    days = {today - timedelta(days=n): D(1) for n in range(90)}
    days[today] = D(50)
    found = forecast(days, today=today)
    assert found is not None
    assert found.expected == found.high == D(79)


def test_nothing_is_forecast_from_one_week() -> None:
    assert forecast({TODAY - timedelta(days=n): D(1) for n in range(9)}, today=TODAY) is None
    assert forecast({}, today=TODAY) is None


def test_a_budget_burns_down_to_today_and_not_below_the_ground() -> None:
    first = date(2026, 11, 1)
    found = burn(
        {first: D(40), date(2026, 11, 2): D(80)},
        first=first,
        last=date(2026, 11, 4),
        today=date(2026, 11, 2),
        limit=D(100),
    )
    assert (found.left, found.remaining) == ("0,0 100,400.00 200,1000.00", D(-20))
    assert found.area == "0,1000 0,0 100,400.00 200,1000.00 200,1000"
    assert found.width == 400


def test_a_csv_runs_nothing_and_keeps_every_digit() -> None:
    table = table_of(
        ("Name", "Price"),
        [[Cell("=HYPERLINK(1)"), Cell("€0.10", "-0.1000000000001")]],
        [Cell("All"), Cell("x", "1")],
    )
    assert table.csv() == "\ufeffName,Price\r\n'=HYPERLINK(1),-0.1000000000001\r\nAll,1\r\n"
