"""What one person used, from the ledger: by day and model, in a table of their choice, and as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView, View

from app.accounts.models import ApiKey, User
from app.accounts.selectors import Caller, caller_by_user
from app.billing.selectors import spend, totals
from app.billing.types import GroupBy, SpendRow
from app.billing.types import SpendFilter as Where
from app.catalog.models import Deployment
from app.common.clock import now
from app.common.errors import NotAllowed
from app.common.formatting import decimals_for
from app.dashboard.chart import MOST_SERIES, OTHER, Amount, Chart, Series, chart
from app.dashboard.filters import SpendFilter, parse
from app.dashboard.limit_reads import my_limits
from app.dashboard.selectors import model_colours

GROUPS: tuple[GroupBy, ...] = ("day", "model", "kind", "key")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table."""

    name: str
    sums: SpendRow


def group_words(group_by: str) -> str:
    """What the table's first column holds."""
    return {"day": _("day"), "model": _("model"), "kind": _("kind of call"), "key": _("key")}[group_by]


def kind_words(kind: str) -> str:
    """A kind of call as people know it; one that is new here stands for itself."""
    known = {
        "chat": _("Answers"),
        "embedding": _("Embedding for search"),
        "rerank": _("Ordering of passages"),
        "title": _("Titles"),
        "condense": _("Rewritten questions"),
        "probe": _("Test calls"),
        "evaluation": _("Comparing models"),
        "loadtest": _("Load tests"),
    }
    return known.get(kind, kind or _("Other"))


def my_filter(request: HttpRequest, today: date) -> tuple[SpendFilter, list[str]]:
    """The span and grouping of the address; without any, this month by day."""
    given = request.GET.dict()
    given.setdefault("from", today.replace(day=1).isoformat())
    # What narrows the page of spend to a team or person has no place here.
    chosen, problems = parse(
        {name: given[name] for name in ("from", "to", "group_by") if name in given}, today
    )
    if chosen.group_by not in GROUPS:
        chosen = SpendFilter(chosen.first, chosen.last)
    return chosen, problems


def lines(caller: Caller, chosen: SpendFilter, zone: str) -> list[Line]:
    """The caller's own sums by the chosen group: days newest first, everything else dearest first."""
    from_, to = chosen.bounds(zone)
    rows = spend(
        group_by=cast(GroupBy, chosen.group_by), from_=from_, to=to, tz=zone, account_id=caller.account_id
    )
    if chosen.group_by == "day":
        rows = sorted(rows, key=lambda row: str(row.group), reverse=True)
    names = _key_names(caller) if chosen.group_by == "key" else {}
    return [Line(_name(chosen.group_by, row, names), row) for row in rows]


def _key_names(caller: Caller) -> dict[object, str]:
    if caller.user_id is None:
        return {}
    return dict(ApiKey.objects.filter(user_id=caller.user_id).values_list("id", "name"))


def _name(group_by: str, row: SpendRow, names: dict[object, str]) -> str:
    if isinstance(row.group, date):
        return row.group.isoformat()
    if group_by == "kind":
        return kind_words(str(row.group or ""))
    if group_by == "key":
        return names.get(row.group, _("A key that was deleted") if row.group else _("In the browser"))
    return str(row.group or _("No model"))


def my_chart(caller: Caller, chosen: SpendFilter, zone: str) -> Chart:
    """Price by day and model, the dearest models apart and the rest together."""
    from_, to = chosen.bounds(zone)

    def days(where: Where) -> dict[date, Amount]:
        rows = spend(group_by="day", from_=from_, to=to, tz=zone, account_id=caller.account_id, where=where)
        return {
            row.group: Amount(row.price, row.estimated_price) for row in rows if isinstance(row.group, date)
        }

    dearest = spend(group_by="deployment", from_=from_, to=to, tz=zone, account_id=caller.account_id)
    names = dict(Deployment.objects.values_list("id", "public_name"))
    colours = model_colours()
    rest = days(Where())
    series: list[Series] = []
    for row in dearest[: MOST_SERIES - 1]:
        if not isinstance(row.group, UUID) or row.group not in names or not row.price:
            continue
        own = days(Where(deployment_id=row.group))
        rest = {day: _without(amount, own.get(day, Amount())) for day, amount in rest.items()}
        name = names[row.group]
        series.append(Series(name, colours.get(name, 0), own))
    remaining = {day: amount for day, amount in rest.items() if amount.price}
    if remaining:
        series.append(Series(OTHER, MOST_SERIES - 1, remaining))
    return chart(first=chosen.first, last=chosen.last, series=series)


def _without(whole: Amount, part: Amount) -> Amount:
    return Amount(whole.price - part.price, whole.estimated - part.estimated)


def spans(chosen: SpendFilter, today: date) -> Sequence[tuple[str, str, bool]]:
    """(words, query, is the present one)."""
    this = today.replace(day=1)
    before = (this - timedelta(days=1)).replace(day=1)
    known = [
        (_("This month"), this, today),
        (_("Last month"), before, this - timedelta(days=1)),
        (_("30 days"), today - timedelta(days=29), today),
        (_("12 months"), today - timedelta(days=364), today),
    ]
    # Two spans may be the same days; only the first of them is marked.
    current = next((w for w, first, last in known if (first, last) == (chosen.first, chosen.last)), None)
    return [
        (words, SpendFilter(first, last, chosen.group_by).query(), words == current)
        for words, first, last in known
    ]


@method_decorator(never_cache, name="dispatch")
class MyUsageView(LoginRequiredMixin, TemplateView):
    """My own use of a span of days, and what remains of each limit on my way."""

    template_name = "dashboard/usage.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        zone = settings.INSTALLATION_ZONE
        today: date = now().astimezone(ZoneInfo(zone)).date()
        chosen, problems = my_filter(self.request, today)
        shown = super().get_context_data(**kwargs) | {"section": "usage", "currency": settings.CURRENCY}
        try:
            caller = caller_by_user(cast(User, self.request.user))
        except NotAllowed as exc:
            nothing = totals(from_=now(), to=now())
            return shown | {"problems": [exc.message], "rows": [], "limits": [], "total": nothing}
        rows = lines(caller, chosen, zone)
        from_, to = chosen.bounds(zone)
        total = totals(from_=from_, to=to, account_id=caller.account_id)
        return shown | {
            "zone": zone,
            "filter": chosen,
            "problems": problems,
            "spans": spans(chosen, today),
            "groups": [
                (name, group_words(name), SpendFilter(chosen.first, chosen.last, name).query())
                for name in GROUPS
            ],
            "group_name": group_words(chosen.group_by),
            "chart": my_chart(caller, chosen, zone),
            "rows": rows,
            "total": total,
            "decimals": decimals_for(total.price),
            "limits": my_limits(caller),
        }


@method_decorator(never_cache, name="dispatch")
class MyUsageCsvView(LoginRequiredMixin, View):
    """The table as CSV, every digit of every amount."""

    def get(self, request: HttpRequest) -> HttpResponse:
        zone = settings.INSTALLATION_ZONE
        chosen, _problems = my_filter(request, now().astimezone(ZoneInfo(zone)).date())
        out = io.StringIO()
        table = csv.writer(out)
        columns = (
            "price",
            "estimated_price",
            "requests",
            "entries",
            "input_tokens",
            "output_tokens",
            "price_missing",
        )
        table.writerow([chosen.group_by, *columns, "currency"])
        for line in lines(caller_by_user(cast(User, request.user)), chosen, zone):
            values = (getattr(line.sums, name) for name in columns)
            table.writerow(
                [
                    _plain(line.name),
                    *(
                        f"{v:f}" if name.endswith("price") else v
                        for name, v in zip(columns, values, strict=True)
                    ),
                    settings.CURRENCY,
                ]
            )
        name = f"usage-{chosen.first}-{chosen.last}-by-{chosen.group_by}.csv"
        return HttpResponse(
            # With a byte order mark, without which spreadsheets take the names for another encoding.
            "\ufeff" + out.getvalue(),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _plain(text: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text
