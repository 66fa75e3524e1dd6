"""The page of the one who answers for the bill."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from app.audit.services import Verb, audit
from app.billing.spending import one_moment
from app.common.formatting import decimals_for
from app.dashboard import selectors
from app.dashboard.chart import chart
from app.dashboard.filters import GROUP_NAMES, NARROWING, TIMES, presets
from app.dashboard.naming import NAMED, filter_names, person_level
from app.dashboard.reach import SpendBase
from app.dashboard.selectors import TableRow
from app.dashboard.spend_table import pages, spend_table
from app.dashboard.tables import Table


def csv_answer(table: Table, name: str) -> HttpResponse:
    """A table as a file; exporting is written down."""
    audit(Verb.EXPORT, object_kind="spend", object_id=name)
    return HttpResponse(
        table.csv(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


class PageBase(SpendBase):
    """What all pages of spend share: the sentence, the filter form and the tabs."""

    tab = "spend"

    def base(self) -> dict[str, Any]:
        """The context of the frame."""
        chosen = self.chosen
        everyone = "Everyone" if self.reach.is_all else "My teams"
        names = filter_names(chosen, everyone=everyone, team_ids=self.reach.team_ids)
        sentence = chosen.sentence(names, self.today)
        return {
            "section": "dashboard",
            "tab": self.tab,
            "currency": settings.CURRENCY,
            "zone": self.zone,
            "today": self.today,
            "filter": chosen,
            "problems": self.problems,
            "teams": self.reach.teams,
            "groups": GROUP_NAMES.items(),
            "presets": presets(chosen, self.today),
            "sentence": sentence if self.tab == "spend" else sentence.rpartition(", by ")[0],
            "narrowed": [
                (names[name], chosen.query(**{name: "" if name in {"model", "kind", "flag"} else None}))
                for name in NARROWING
                if name != "team" and getattr(chosen, name)
            ],
            "query": chosen.query(),
        }

    def people_seen(self, *, always: bool = False) -> None:
        """A view that shows what single people spent is written down, with what it was narrowed to."""
        chosen = self.chosen
        if person_level() == NAMED and (always or chosen.group_by == "person" or chosen.person):
            audit(
                Verb.PERSON_LEVEL_VIEW,
                team_id=chosen.team,
                object_kind="person" if chosen.person else "spend",
                object_id=chosen.person or "",
                after=chosen.query(),
            )


class SpendView(PageBase):
    """Spend by any owner or time: figures, chart, table; `format=csv` is the table as a file."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Figures, chart and table of the filter in the address, all of one moment."""
        self.people_seen()
        chosen = self.chosen
        with one_moment():
            rows = selectors.table(chosen, reach=self.reach, zone=self.zone)
            is_file = request.GET.get("format") == "csv"
            shown = None if is_file else pages(len(rows), request.GET.get("page", ""))
            total = selectors.total_of(rows)
            table = spend_table(chosen, rows, settings.CURRENCY, total=total, shown=shown)
            context = {} if is_file else self.base() | self._around(rows)
        if is_file:
            return csv_answer(table, f"spend-by-{chosen.group_by}-{chosen.first}-{chosen.last}")
        context |= {
            "table": table,
            "shown": shown,
            "total": total,
            "decimals": decimals_for(total.price),
            "group_name": GROUP_NAMES[chosen.group_by],
        }
        return render(request, "dashboard/spend.html", context)

    def _around(self, rows: list[TableRow]) -> dict[str, Any]:
        """What stands above the table."""
        chosen, zone = self.chosen, self.zone
        step = selectors.step_of(chosen)
        lines = selectors.series(chosen, reach=self.reach, zone=zone, rows=rows)
        return {
            "figures": selectors.figures(reach=self.reach, chosen=chosen, today=self.today, zone=zone),
            "chart": chart(first=chosen.first, last=chosen.last, series=lines, step=step, zone=zone),
            "series_name": "model" if chosen.group_by in TIMES else GROUP_NAMES[chosen.group_by],
            "step_name": GROUP_NAMES[step],
        }
