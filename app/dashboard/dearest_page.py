"""The dearest conversations, and what makes them dear: ids and figures, no content."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from app.billing.spending import one_moment
from app.billing.spending_reads import Thread, threads_dearest
from app.chat.figures import conversations_parts
from app.common.formatting import count, decimals_for, money, share
from app.dashboard.naming import GROUPS, Name, names_of, person_level
from app.dashboard.tables import Cell, Table, named, table_of
from app.dashboard.views import PageBase, csv_answer

COLUMNS = (
    "Conversation",
    "Price",
    "What makes it dear",
    "Turns",
    "Per turn",
    "Input",
    "Cached",
    "Output",
    "Reasoning",
    "Team",
    "Person",
)
LONG, MUCH = 12, Decimal("0.4")
"""Turns, and the share, from which something is named as a reason."""


class DearestView(PageBase):
    """Whole months, because conversations are summed by month."""

    tab = "dearest"

    def get(self, request: HttpRequest) -> HttpResponse:
        """The 25 dearest of the months that the span touches."""
        self.chosen = replace(
            self.chosen, first=self.chosen.first.replace(day=1), last=_month_end(self.chosen.last)
        )
        self.people_seen(always=True)
        with one_moment():
            found = threads_dearest(self.chosen.scope(self.zone, self.reach.team_ids))
            table = self._table(found)
            context = self.base()
        if request.GET.get("format") == "csv":
            return csv_answer(table, f"dearest-{self.chosen.first:%Y-%m}-{self.chosen.last:%Y-%m}")
        return render(request, "dashboard/spend_dearest.html", context | {"table": table})

    def _table(self, found: list[Thread]) -> Table:
        teams = names_of("team", list({thread.team_id for thread in found}))
        people = names_of("person", list({thread.account_id for thread in found}))
        parts = conversations_parts([thread.thread_id for thread in found])
        places = min(4, decimals_for(max((thread.price for thread in found), default=Decimal(0))))
        rows = [
            self._row(t, teams[t.team_id], people[t.account_id], parts.get(t.thread_id, {}), places)
            for t in found
        ]
        return table_of(COLUMNS, rows)

    def _row(self, t: Thread, team: Name, person: Name, parts: Mapping[str, int], places: int) -> list[Cell]:
        entries = f"{reverse('dashboard:entries')}?{self.chosen.query(thread=t.thread_id)}"
        each = t.price / max(1, t.turns)
        return [
            Cell(f"…{str(t.thread_id)[-8:]}", str(t.thread_id)),
            Cell(money(t.price, settings.CURRENCY, places), f"{t.price:f}", entries),
            Cell("; ".join(reasons(t, parts)) or "nothing in particular", words=True),
            Cell(count(t.turns), str(t.turns), entries),
            Cell(money(each, settings.CURRENCY, places), f"{each:f}"),
            *(
                Cell(count(n), str(n), entries)
                for n in (t.input_tokens, t.cached_tokens, t.output_tokens, t.reasoning_tokens)
            ),
            named(team.text, known=team.known),
            named("not shown", known=False)
            if person_level() == GROUPS
            else named(person.text, known=person.known),
        ]


def reasons(thread: Thread, parts: Mapping[str, int]) -> list[str]:
    """In words, the weightiest first; `parts` are the input tokens of its turns by what they were."""
    whole = Decimal(sum(parts.values()))
    found: list[str] = []
    if thread.turns >= LONG:
        found.append(f"{thread.turns} turns")
    for name, words in (
        ("history", "long history"),
        ("retrieved", "many passages"),
        ("attachments", "attachments"),
    ):
        if whole and parts.get(name, 0) / whole >= MUCH:
            found.append(f"{words}, {share(Decimal(parts[name]), whole)} of the input")
    if thread.output_tokens and Decimal(thread.reasoning_tokens) / thread.output_tokens >= MUCH:
        found.append(
            f"reasoning, {share(Decimal(thread.reasoning_tokens), Decimal(thread.output_tokens))} of the output"
        )
    return found


def _month_end(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
