"""The ledger entries behind a number."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from app.billing.entry_reads import EntryLine, entries_page, entries_total
from app.billing.spending import one_moment, spending
from app.billing.types.spending import Group, SpendScope, SpendSum
from app.common.formatting import count, decimals_for, figure
from app.dashboard.naming import GROUPS, Name, names_of, person_level
from app.dashboard.tables import Cell, Table, named, table_of
from app.dashboard.views import PageBase, csv_answer

COLUMNS = (
    "Time",
    "Price",
    "Cost",
    "Model",
    "Kind",
    "Input tokens",
    "Output tokens",
    "Team",
    "Person",
    "Key",
    "Marks",
    "Request",
)
MOST_IN_CSV = 50_000
A_PAGE = 100
_FLAGS = {
    "cost_disagrees": "the provider says another cost",
    "cost_incomplete": "part of the cost is not known",
    "input_long": "the server counted far more input than was sent",
    "input_short": "the server read less than was sent",
    "perhaps_sent": "its process died; it may never have been sent",
    "usage_ambiguous": "the server's numbers do not agree",
}
"""What the flags of an attempt say."""


class EntriesView(PageBase):
    """Entries of the filter in the address, newest call first; `after` is the place a page begins at."""

    tab = "entries"

    def get(self, request: HttpRequest) -> HttpResponse:
        """A page of entries, with the sum of all; as CSV all of them, up to a bound that is said."""
        self.people_seen(always=True)
        scope = self.chosen.scope(self.zone, self.reach.team_ids)
        is_file = request.GET.get("format") == "csv"
        with one_moment():
            limit = MOST_IN_CSV if is_file else A_PAGE
            lines, after = entries_page(scope, after=request.GET.get("after", ""), limit=limit)
            table = self._table(lines)
            total = self._total(scope)
            context = self.base()
        if is_file:
            return csv_answer(table, f"entries-{self.chosen.first}-{self.chosen.last}")
        context |= {
            "table": table,
            "total": total,
            "decimals": decimals_for(total.price),
            "next": f"?{self.chosen.query()}&after={after}" if after else "",
            "is_first": "after" not in request.GET,
        }
        return render(request, "dashboard/spend_entries.html", context)

    def _total(self, scope: SpendScope) -> SpendSum:
        if scope.flag or scope.thread_id:
            return entries_total(scope)
        (total,) = spending(zone=self.zone, scope=scope)
        return total

    def _table(self, lines: list[EntryLine]) -> Table:
        teams = names_of("team", list({line.team_id for line in lines}))
        people = names_of("person", list({line.account_id for line in lines}))
        keys = names_of("key", list({line.key_id for line in lines}))
        return table_of(COLUMNS, [self._row(line, teams, people, keys) for line in lines])

    def _row(
        self, line: EntryLine, teams: dict[Group, Name], people: dict[Group, Name], keys: dict[Group, Name]
    ) -> list[Cell]:
        currency = settings.CURRENCY
        local = line.at.astimezone(self.chosen.bounds(self.zone)[0].tzinfo)
        person = (
            named("not shown", known=False) if person_level() == GROUPS else _named(people[line.account_id])
        )
        return [
            Cell(f"{local:%-d %b %Y, %H:%M:%S}", line.at.isoformat()),
            Cell(("≈ " if line.estimated else "") + figure(line.price, currency), _exact(line.price)),
            Cell(figure(line.cost, currency), _exact(line.cost)),
            named(line.model or "none"),
            named(line.call_kind or line.kind),
            Cell(count(line.input_tokens), str(line.input_tokens)),
            Cell(count(line.output_tokens), str(line.output_tokens)),
            _named(teams[line.team_id]),
            person,
            _named(keys[line.key_id]),
            named(", ".join(_marks(line)) or "none", known=bool(_marks(line))),
            named(line.request_id[:12] or "none", line.request_id or "none", known=bool(line.request_id)),
        ]


def _named(name: Name) -> Cell:
    return named(name.text, known=name.known)


def _exact(amount: object) -> str:
    return "unknown" if amount is None else f"{amount:f}"


def _marks(line: EntryLine) -> list[str]:
    marks = [line.kind] if line.kind != "charge" else []
    if line.estimated:
        marks.append(f"estimated ({line.estimate_reason.replace('_', ' ') or 'no usage told'})")
    marks += [word for word, is_so in (("overshoot", line.overshoot), ("late", line.late)) if is_so]
    return marks + [_FLAGS.get(flag, flag) for flag in line.flags]
