"""Which model, and whose server: what requests cost and how that grows, from measured rows. Staff only."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.generic import View

from app.billing.spending import one_moment
from app.common.clock import now
from app.common.formatting import count, figure, money, share
from app.dashboard import choice_reads
from app.dashboard.choice_reads import Growing, Rival
from app.dashboard.filters import SpendFilter, day_start
from app.dashboard.naming import names_of
from app.dashboard.staff import StaffPage
from app.dashboard.tables import Cell, Table, folded, named, table_of
from app.dashboard.trend import Month, growth
from app.dashboard.views import csv_answer

MONTHS = 6
SPAN_DAYS = 30


class ChoiceView(StaffPage, View):
    """The page; `format=csv&table=growth|own|smaller` is one table as a file."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Three tables of one moment."""
        at, wanted = now(), request.GET.get("table", "")
        if request.GET.get("format") == "csv":
            name = wanted if wanted in _TABLES else "growth"
            with one_moment():
                table = _TABLES[name](at)
            return csv_answer(table, f"choice-{name}-{_today(at)}")
        with one_moment():
            tables = {name: folded(made(at), _NOTES) for name, made in _TABLES.items()}
        first, last = _months(at)
        context = {
            "section": "choice",
            "tables": tables,
            "first": first,
            "last": last,
            "days": SPAN_DAYS,
            "currency": settings.CURRENCY,
        }
        return render(request, "dashboard/choice.html", context)


def _today(at: datetime) -> date:
    return at.astimezone(ZoneInfo(settings.INSTALLATION_ZONE)).date()


def _months(at: datetime) -> tuple[date, date]:
    """(first day of the first, last day of the last) of the whole months that are looked at."""
    last = _today(at).replace(day=1) - timedelta(days=1)
    first = last.replace(day=1)
    for _ in range(MONTHS - 1):
        first = (first - timedelta(days=1)).replace(day=1)
    return first, last


def _growth(at: datetime) -> Table:
    """One line per model: the last whole month, and how it grew to it."""
    zone = settings.INSTALLATION_ZONE
    first, last = _months(at)
    found = choice_reads.growing(
        zone=zone,
        first=first,
        from_=day_start(first, zone),
        until=day_start(last + timedelta(days=1), zone),
    )
    columns = (
        "Model", "Requests", "Requests grow", "Cost each", "Cost grows", "Input tokens each", "Input grows",
        "Output tokens each", "Output grows", "Cost of the month", "In half a year",
    )  # fmt: skip
    return table_of(columns, [_growing(one, last) for one in found if any(m.requests for m in one.months)])


def _growing(one: Growing, last: date) -> list[Cell]:
    month = one.months[-1]
    spend = SpendFilter(last.replace(day=1), last, model=one.model)
    costs = growth([m.cost for m in one.months])
    ahead = None if costs is None else month.cost * Decimal(f"{(1 + float(costs) / 100) ** 6:.6f}")
    return [
        Cell(one.model, href=f"{reverse('dashboard:spend')}?{spend.query()}"),
        Cell(count(month.requests), str(month.requests)),
        _percent(growth([Decimal(m.requests) for m in one.months])),
        _amount(month.per_request),
        _percent(growth(_each(one.months, "per_request"))),
        _length(month.input_length),
        _percent(growth(_each(one.months, "input_length"))),
        _length(month.output_length),
        _percent(growth(_each(one.months, "output_length"))),
        Cell(money(month.cost, settings.CURRENCY), f"{month.cost:f}"),
        Cell("unknown", muted=True)
        if ahead is None
        else Cell(money(ahead, settings.CURRENCY), f"{ahead:.2f}"),
    ]


def _each(months: Sequence[Month], name: str) -> list[Decimal | None]:
    return [getattr(month, name) for month in months]


def _own(at: datetime) -> Table:
    """One line per server of one's own and deployment that is paid by the token."""
    found = choice_reads.rivals(zone=settings.INSTALLATION_ZONE, from_=at - timedelta(days=SPAN_DAYS), to=at)
    names = names_of("deployment", [i for one in found for i in (one.deployment_id, one.managed_id)])
    rows = [
        [
            Cell(names[one.deployment_id].text),
            named(names[one.managed_id].text),
            _amount(one.per_hour),
            _part(one.used),
            _speed(one.tokens_per_s, measured=one.measured),
            _amount(one.own_per_million),
            _amount(one.managed_per_million, sign="" if one.managed_whole else "≥ "),
            _even(one.break_even, sign="" if one.managed_whole else "≤ "),
            _cheaper(one),
        ]
        for one in found
    ]
    columns = (
        "Own server", "Paid by the token", "An hour", "Used", "Can do", "A million tokens", "There", "Breaks even at",
        "Cheaper now",
    )  # fmt: skip
    return table_of(columns, rows)


def _speed(tokens_per_s: Decimal | None, *, measured: bool) -> Cell:
    if tokens_per_s is None:
        return Cell("unknown", muted=True)
    words = "its knee" if measured else "its busiest hour"
    return Cell(f"{tokens_per_s:,.0f} tokens/s", f"{tokens_per_s:.2f}", note=words)


def _even(utilisation: Decimal | None, *, sign: str = "") -> Cell:
    if utilisation is None:
        return Cell("unknown", muted=True)
    if utilisation > 1 and not sign:
        return Cell("never", f"{utilisation:.4f}", note="not even when it is busy all the time")
    return Cell(f"{sign}{share(utilisation, Decimal(1))} used", f"{utilisation:.4f}")


def _cheaper(one: Rival) -> Cell:
    if one.own_per_million is None:
        return Cell("by the token", note="no call went to the own server")
    if one.own_per_million < one.managed_per_million:
        return Cell("own server")
    return Cell("by the token") if one.managed_whole else Cell("unknown", muted=True)


def _smaller(at: datetime) -> Table:
    """One line per deployment from which a cheaper one would have taken some calls."""
    currency = settings.CURRENCY
    found = choice_reads.smaller(from_=at - timedelta(days=SPAN_DAYS))
    names = names_of("deployment", [i for one in found for i in (one.deployment_id, one.cheaper_id)])
    rows = [
        [
            Cell(names[one.deployment_id].text),
            named(names[one.cheaper_id].text),
            Cell(count(one.calls), str(one.calls)),
            Cell(count(one.fitting), str(one.fitting), note=share(Decimal(one.fitting), Decimal(one.calls))),
            Cell(money(one.price, currency), f"{one.price:f}"),
            Cell(money(one.instead, currency), f"{one.instead:f}"),
            Cell(money(one.price - one.instead, currency), f"{one.price - one.instead:f}"),
        ]
        for one in found
    ]
    columns = ("Deployment", "Cheaper one", "Calls", "Would fit", "Billed for those", "There", "Saved")
    return table_of(columns, rows)


_TABLES: Mapping[str, Callable[[datetime], Table]] = {"growth": _growth, "own": _own, "smaller": _smaller}
_NOTES = {
    **dict.fromkeys(("Requests grow", "Cost grows", "Input grows", "Output grows"), "{} a month"),
    "Can do": "of {}",
}
"""Columns that stand below others on the page."""


def _amount(amount: Decimal | None, *, sign: str = "") -> Cell:
    if amount is None:
        return Cell("unknown", muted=True)
    return Cell(sign + figure(amount, settings.CURRENCY), f"{amount:f}")


def _length(tokens: Decimal | None) -> Cell:
    return Cell("unknown", muted=True) if tokens is None else Cell(count(round(tokens)), f"{tokens:.2f}")


def _part(part: Decimal | None) -> Cell:
    return Cell("unknown", muted=True) if part is None else Cell(share(part, Decimal(1)), f"{part:.4f}")


def _percent(value: Decimal | None) -> Cell:
    if value is None:
        return Cell("–", muted=True)
    return Cell(f"{value:+.1f} %".replace("-", "−"), f"{value:.2f}")
