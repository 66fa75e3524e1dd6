"""Limits for everybody: what remains of mine; what my team may use; for staff the installation and the switch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from app.accounts.models import Team, User
from app.accounts.selectors import Caller, caller_by_user
from app.billing.asking import more_ask, more_decide
from app.billing.budget_rights import Wish, budget_change, budget_drop, budget_wish
from app.billing.pausing import spending_pause, spending_paused_since, spending_resume
from app.common.errors import AppError, NotAllowed
from app.dashboard import limit_reads
from app.dashboard.limit_forms import (
    PERIODS,
    UNITS,
    AskForm,
    BudgetForm,
    ChangeForm,
    DecideForm,
    PauseForm,
    first_problem,
    values_of,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What was wrong with a form that was sent, and what was in it."""

    form: str
    """The form's name on the page: `set`, `pause`, or an id."""
    field: str
    sentence: str
    sent: Mapping[str, str]


@method_decorator(never_cache, name="dispatch")
class LimitsView(LoginRequiredMixin, TemplateView):
    """The page; `team` in the address chooses whose pool and allowances are shown."""

    template_name = "dashboard/limits.html"
    problem: Problem | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The page, or why there is none for somebody without a team."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except NotAllowed as exc:
            return render(request, "dashboard/no_team.html", {"sentence": exc.message}, status=exc.status)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        caller = caller_by_user(cast(User, self.request.user))
        teams = limit_reads.managed_teams(caller)
        team = _chosen(self.request, teams)
        own, waiting = limit_reads.askings(caller)
        staff = caller.is_staff
        return super().get_context_data(**kwargs) | {
            "section": "limits",
            "mine": limit_reads.my_limits(caller),
            "requests": own,
            "waiting": waiting,
            "teams": teams,
            "panel": limit_reads.panel(caller, team) if team else None,
            "installation": limit_reads.installation_limits() if staff else None,
            "paused_since": spending_paused_since(),
            "problem": self.problem,
            "currency": settings.CURRENCY,
            "units": UNITS,
            "periods": PERIODS,
        }


class _Form(LimitsView):
    """A form of the page that was sent: done, back to the page; not done, the page again and what to do about it."""

    http_method_names = ("post",)
    form: type[forms.Form] = forms.Form
    name = ""

    def post(self, request: HttpRequest, **ids: UUID) -> HttpResponse:
        sent = self.form(request.POST)
        if not sent.is_valid():
            return self._again(*first_problem(sent), status=422)
        try:
            done = self.act(caller_by_user(cast(User, request.user)), values_of(sent), **ids)
        except AppError as exc:
            return self._again(str(exc.detail.get("field", "")), exc.message, status=exc.status)
        messages.success(request, done)
        team = request.POST.get("team") or request.GET.get("team")
        query = f"?{urlencode({'team': team})}" if team else ""
        return HttpResponseRedirect(reverse("dashboard:limits") + query)

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        """Do it, and say what was done. Errors: AppError."""
        raise NotImplementedError

    def _again(self, field: str, sentence: str, *, status: int) -> HttpResponse:
        form = self.name or str(next(iter(self.kwargs.values()), self.request.POST.get("limit_id", "")))
        self.problem = Problem(form, field, sentence, self.request.POST.dict())
        return self.render_to_response(self.get_context_data(), status=status)


class AskView(_Form):
    """More, please."""

    form = AskForm

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        more_ask(caller=caller, **values)
        return "Your request is with those who can raise this limit. You see here what they decide."


class DecideView(_Form):
    """Grant until the period ends, or decline."""

    form = DecideForm

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        grant = values["grant"] == "yes"
        more_decide(
            caller=caller,
            request_id=ids["request_id"],
            grant=grant,
            amount=values["amount"],
            answer=values["answer"],
        )
        return "Granted; it is in force at once." if grant else "Declined; the limit stays as it is."


class BudgetsView(_Form):
    """Set a limit of a team's pool or of a person in it."""

    form = BudgetForm
    name = "set"

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        account = values["account"]
        pool = account == "team"
        budget_wish(
            caller=caller,
            wish=Wish(
                scope="team" if pool else "allowance",
                unit=values["unit"],
                limit=values["limit"],
                period=values["period"],
                team_id=values["team"],
                account_id=None if pool else values["account_id"],
                hard=not values["soft"],
            ),
        )
        return "The limit is set and in force at once."


class ChangeView(_Form):
    """Another amount."""

    form = ChangeForm

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        budget_change(caller=caller, limit=values["limit"], **ids)
        return "The limit is changed and in force at once."


class RemoveView(_Form):
    """No limit any more."""

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        budget_drop(caller=caller, **ids)
        return "The limit is removed."


class PauseView(_Form):
    """The switch of everything that costs money; staff alone."""

    form = PauseForm
    name = "pause"

    def act(self, caller: Caller, values: dict[str, Any], **ids: UUID) -> str:
        if not caller.is_staff:
            raise NotAllowed("Only staff can pause spending.")
        paused = values["paused"] == "yes"
        turn: Callable[..., None] = spending_pause if paused else spending_resume
        turn(set_by=f"user:{caller.user_id}", reason=values["reason"])
        return (
            "Everything that costs money is paused. Calls that run are finished and booked."
            if paused
            else "Spending goes on."
        )


def _chosen(request: HttpRequest, teams: list[Team]) -> Team | None:
    wanted = request.POST.get("team") or request.GET.get("team")
    named = next((team for team in teams if str(team.id) == wanted), None)
    return named or (teams[0] if teams else None)
