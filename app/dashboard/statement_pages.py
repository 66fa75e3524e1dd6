"""Statements for those who answer for the money: the owner of the team, and staff."""

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView, View

from app.accounts.models import User
from app.accounts.selectors import owned_teams
from app.billing.statement_export import statement_csv, statement_json
from app.billing.statement_sheet import Sheet, statement_sheet
from app.billing.statement_sums import statement_get, statement_sums, statements_list
from app.common.admin_site import uuid_of
from app.common.errors import NotFound

SHOWN = 50


def _sheet(request: HttpRequest, statement_id: UUID) -> Sheet:
    teams = owned_teams(cast(User, request.user))
    try:
        return statement_sheet(statement_get(statement_id, team_ids=teams))
    except NotFound as exc:
        raise Http404(exc.message) from exc


@method_decorator(never_cache, name="dispatch")
class StatementsView(LoginRequiredMixin, TemplateView):
    """The statements that somebody may see, newest first."""

    template_name = "dashboard/statements.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        teams = owned_teams(cast(User, self.request.user))
        before = uuid_of(self.request.GET.get("before"))
        rows = statements_list(team_ids=teams, before=before, limit=SHOWN + 1)
        return super().get_context_data(**kwargs) | {
            "section": "statements",
            "rows": statement_sums(rows[:SHOWN]),
            "older": rows[SHOWN - 1].id if len(rows) > SHOWN else None,
        }


@method_decorator(never_cache, name="dispatch")
class StatementView(LoginRequiredMixin, TemplateView):
    """One statement; prints on A4."""

    template_name = "dashboard/statement.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        sheet = _sheet(self.request, self.kwargs["statement_id"])
        return super().get_context_data(**kwargs) | {
            "section": "statements",
            "sheet": sheet,
            "statement": sheet.statement,
            "charges": sheet.groups("charge"),
            "adjustments": sheet.groups("adjustment"),
            "credit": sheet.section("credit"),
            "rounding": sheet.amount_of("rounding"),
        }


@method_decorator(never_cache, name="dispatch")
class StatementCsvView(LoginRequiredMixin, View):
    """The same as CSV."""

    def get(self, request: HttpRequest, statement_id: UUID) -> HttpResponse:
        sheet = _sheet(request, statement_id)
        return HttpResponse(
            # With a byte order mark, without which spreadsheets take the names for another encoding.
            "\ufeff" + statement_csv(sheet),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{file_name(sheet)}.csv"'},
        )


@method_decorator(never_cache, name="dispatch")
class StatementJsonView(LoginRequiredMixin, View):
    """The same as JSON."""

    def get(self, request: HttpRequest, statement_id: UUID) -> JsonResponse:
        sheet = _sheet(request, statement_id)
        return JsonResponse(
            statement_json(sheet),
            headers={"Content-Disposition": f'attachment; filename="{file_name(sheet)}.json"'},
        )


def file_name(sheet: Sheet) -> str:
    """`statement-000012-2026-11`, or `statement-draft-2026-11`."""
    statement = sheet.statement
    number = f"{statement.number:06d}" if statement.number else "draft"
    return f"statement-{number}-{statement.month:%Y-%m}"
