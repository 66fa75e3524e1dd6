"""Own servers, how sure the figures are, and how budgets burn down."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from app.billing.entry_reads import entries_total
from app.billing.own_servers import idle_share
from app.billing.spending import one_moment, spending
from app.billing.spending_reads import Burning, budgets_burning, drift_by_deployment
from app.billing.types.spending import SpendSum
from app.common.clock import now
from app.common.formatting import count, decimals_for, figure, money, share
from app.dashboard.burn import burn
from app.dashboard.filters import SpendFilter, day_start
from app.dashboard.naming import names_of, person_level
from app.dashboard.tables import Cell, Table, table_of
from app.dashboard.views import PageBase, csv_answer


class HousePage(PageBase):
    """Of the whole installation: staff alone."""

    def test_func(self) -> bool:
        """Team admins know these pages by name only."""
        return super().test_func() and self.reach.is_all


class OwnServersView(HousePage):
    """What servers paid by the hour cost, bring in and do."""

    tab = "own"

    def get(self, request: HttpRequest) -> HttpResponse:
        """One line per deployment that has hours booked in the span."""
        with one_moment():
            table = self._table()
            context = self.base()
        if request.GET.get("format") == "csv":
            return csv_answer(table, f"own-servers-{self.chosen.first}-{self.chosen.last}")
        return render(request, "dashboard/spend_own.html", context | {"table": table})

    def _table(self) -> Table:
        scope = self.chosen.scope(self.zone, None)
        hours: dict[Any, SpendSum] = {}
        calls: dict[Any, SpendSum] = {}
        for row in spending(by=("deployment", "kind"), zone=self.zone, scope=scope):
            into = hours if row.groups[1] == "provisioned" else calls
            into[row.groups[0]] = into.get(row.groups[0], SpendSum()) + row
        names = names_of("deployment", list(hours))
        rows = [self._row(one, names[one].text, hours[one], calls.get(one, SpendSum())) for one in hours]
        columns = (
            "Deployment",
            "Hours",
            "Provisioned",
            "Billed",
            "Recovered",
            "Idle",
            "Tokens",
            "Cost per million",
        )
        return table_of(columns, rows)

    def _row(self, deployment: Any, name: str, hours: SpendSum, calls: SpendSum) -> list[Cell]:
        currency = settings.CURRENCY
        tokens = calls.input_tokens + calls.output_tokens
        begin, end = self.chosen.bounds(self.zone)
        idle = idle_share(deployment_id=deployment, from_=begin, to=end)
        each = hours.cost * 1_000_000 / tokens if tokens else None
        entries = f"{reverse('dashboard:entries')}?{self.chosen.query(deployment=deployment)}"
        provisioned = f"{entries}&kind=provisioned"
        return [
            Cell(name, href=f"{reverse('dashboard:spend')}?{self.chosen.query(deployment=deployment)}"),
            Cell(count(hours.entries), str(hours.entries), provisioned),
            Cell(money(hours.cost, currency), f"{hours.cost:f}", provisioned),
            Cell(money(calls.price, currency), f"{calls.price:f}", entries),
            Cell(share(calls.price, hours.cost)),
            Cell("unknown", muted=True) if idle is None else Cell(share(idle, Decimal(1))),
            Cell(count(tokens), str(tokens), entries),
            Cell("no tokens yet", muted=True) if each is None else Cell(figure(each, currency), f"{each:f}"),
        ]


class AccuracyView(HousePage):
    """How much rests on estimates, and how far off the pre-count was, by model."""

    tab = "accuracy"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Two tables: what is booked, and what was counted beforehand."""
        with one_moment():
            table = self._estimated()
            drift = self._drift()
            disputed = entries_total(replace(self.chosen, flag="disputed").scope(self.zone, None)).entries
            context = self.base()
        if request.GET.get("format") == "csv":
            return csv_answer(table, f"estimated-{self.chosen.first}-{self.chosen.last}")
        told = {
            "table": table,
            "drift": drift,
            "disputed": disputed,
            "disputed_url": f"{reverse('dashboard:entries')}?{self.chosen.query(flag='disputed')}",
        }
        return render(request, "dashboard/spend_accuracy.html", context | told)

    def _estimated(self) -> Table:
        currency = settings.CURRENCY
        rows = spending(by=("model",), zone=self.zone, scope=self.chosen.scope(self.zone, None))
        total = sum(rows, SpendSum())
        places = decimals_for(total.price)
        lines = []
        for row in sorted(rows, key=lambda row: -row.estimated_price):
            model = str(row.groups[0] or "")
            # What has no model cannot be asked for alone.
            every = f"{reverse('dashboard:entries')}?{self.chosen.query(model=model)}" if model else ""
            estimated, unpriced = (
                every and f"{every}&flag={flag}" if some else ""
                for flag, some in (("estimated", row.estimated), ("unpriced", row.unpriced))
            )
            lines.append(
                [
                    Cell(model or "No model", muted=not model),
                    Cell(money(row.price, currency, places), f"{row.price:f}", every),
                    Cell(money(row.estimated_price, currency, places), f"{row.estimated_price:f}", estimated),
                    Cell(share(row.estimated_price, row.price)),
                    Cell(count(row.estimated), str(row.estimated), estimated),
                    Cell(count(row.entries), str(row.entries), every),
                    Cell(count(row.unpriced), str(row.unpriced), unpriced),
                ]
            )
        columns = (
            "Model",
            "Price",
            "Of it estimated",
            "Share",
            "Estimated calls",
            "Calls",
            "Without a price",
        )
        return table_of(columns, lines)

    def _drift(self) -> Table:
        found = drift_by_deployment(since=self.chosen.bounds(self.zone)[0])
        names = names_of("deployment", [one.deployment_id for one in found])
        lines = [
            [
                Cell(names[one.deployment_id].text),
                Cell(count(one.calls), str(one.calls)),
                *(
                    Cell(f"{pct:+.1f} %".replace("-", "−"), f"{pct:.3f}")
                    for pct in (one.p5, one.p50, one.p95)
                ),
                Cell(count(one.short), str(one.short)),
            ]
            for one in sorted(found, key=lambda one: -abs(one.p50))
        ]
        return table_of(("Deployment", "Calls", "Lowest 5 %", "Median", "Highest 5 %", "Cut prompts"), lines)


class BudgetsView(PageBase):
    """How budgets burn down in their present windows; the chart is that of the team, else of the installation."""

    tab = "budgets"

    def get(self, request: HttpRequest) -> HttpResponse:
        """One chart and every budget of money that runs."""
        with one_moment():
            rows = budgets_burning(team_ids=self._teams(), at=now(), people=person_level() == "named")
            names = self._names(rows)
            table = self._table(rows, names)
            shown = self._shown(rows)
            context = self.base()
            if shown:
                context |= {"burn": self._burn(shown), "shown": names[f"{shown.subject} {shown.name}"]}
        if person_level() == "named":
            self.people_seen(always=True)
        if request.GET.get("format") == "csv":
            return csv_answer(table, f"budgets-{self.today}")
        return render(request, "dashboard/spend_budgets.html", context | {"table": table})

    def _teams(self) -> tuple[Any, ...] | None:
        if self.chosen.team is None:
            return self.reach.team_ids
        allowed = self.reach.team_ids
        return (self.chosen.team,) if allowed is None or self.chosen.team in allowed else ()

    def _shown(self, rows: list[Burning]) -> Burning | None:
        wanted = [row for row in rows if row.scope in {"installation", "team"}]
        return next((row for row in wanted if row.scope == "installation"), wanted[0] if wanted else None)

    def _burn(self, row: Burning) -> Any:
        first = row.starts_at.astimezone(ZoneInfo(self.zone)).date()
        last = (row.ends_at - timedelta(seconds=1)).astimezone(ZoneInfo(self.zone)).date()
        chosen = SpendFilter(first, last, team=row.team_id)
        sums = spending(by=("day",), zone=self.zone, scope=chosen.scope(self.zone, self.reach.team_ids))
        by_day = {s.groups[0]: s.price for s in sums if isinstance(s.groups[0], date)}
        return burn(by_day, first=first, last=last, today=self.today, limit=row.limit)

    def _names(self, rows: list[Burning]) -> dict[str, str]:
        """In words, by subject and name of the budget."""
        teams = names_of("team", list({row.team_id for row in rows}))
        people = names_of("person", list({row.account_id for row in rows}))
        found: dict[str, str] = {}
        for row in rows:
            if row.team_id is None or row.scope == "installation":
                words = row.name or row.scope
            elif row.account_id is None:
                words = f"Team {teams[row.team_id].text}" + (f": {row.name}" if row.name else "")
            else:
                words = f"{people[row.account_id].text} in {teams[row.team_id].text}"
            found[f"{row.subject} {row.name}"] = words
        return found

    def _table(self, rows: list[Burning], names: dict[str, str]) -> Table:
        currency = settings.CURRENCY
        lines = []
        for row in rows:
            even = _elapsed(row, now())
            lines.append(
                [
                    Cell(names[f"{row.subject} {row.name}"]),
                    Cell(money(row.limit, currency), f"{row.limit:f}"),
                    Cell(money(row.spent, currency), f"{row.spent:f}", self._entries(row)),
                    Cell(share(row.spent, row.limit)),
                    Cell(share(even, Decimal(1))),
                    Cell(money(row.held, currency), f"{row.held:f}", muted=not row.held),
                    Cell(money(max(Decimal(0), row.limit - row.spent - row.held), currency)),
                    _runs_out(row, even, self.zone),
                ]
            )
        return table_of(("Budget", "Limit", "Spent", "Used", "Time over", "Held", "Left", "Runs out"), lines)

    def _entries(self, row: Burning) -> str:
        first = row.starts_at.astimezone(ZoneInfo(self.zone)).date()
        chosen = SpendFilter(first, self.today, team=row.team_id, person=row.account_id)
        same_days = row.starts_at == day_start(first, self.zone)
        return f"{reverse('dashboard:entries')}?{chosen.query()}" if same_days else ""


def _elapsed(row: Burning, at: datetime) -> Decimal:
    whole = (row.ends_at - row.starts_at).total_seconds()
    return Decimal((at - row.starts_at).total_seconds()) / Decimal(whole)


def _runs_out(row: Burning, even: Decimal, zone: str) -> Cell:
    """At the pace so far; a budget that lasts says so."""
    if row.spent >= row.limit:
        return Cell("used up")
    if not row.spent or row.spent <= row.limit * even:
        return Cell("not before it resets", muted=True)
    elapsed = (row.ends_at - row.starts_at) * float(even)
    at = row.starts_at + elapsed * float(row.limit / row.spent)
    return Cell(f"about {at.astimezone(ZoneInfo(zone)):%-d %B}", note="at the pace so far")
