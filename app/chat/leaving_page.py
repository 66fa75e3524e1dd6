"""The page on which somebody leaves a team."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.cache import never_cache

from app.accounts.members import member_leave
from app.accounts.models import User
from app.accounts.selectors import Caller, caller_by_user
from app.chat.leaving import Leaving, leaving_of
from app.common.errors import Conflict, NotFound


@method_decorator(never_cache, name="dispatch")
class LeaveTeamView(LoginRequiredMixin, View):
    """What it means by GET, and the leaving itself by POST."""

    def get(
        self, request: HttpRequest, team_id: UUID, *, status: int = 200, problem: str = ""
    ) -> HttpResponse:
        found = {"section": "account", "leaving": self._leaving(team_id), "problem": problem}
        return render(request, "accounts/leave.html", found, status=status)

    def post(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        team = self._leaving(team_id).team
        try:
            member_leave(caller=self._caller(), team=team)
        except Conflict as exc:
            return self.get(request, team_id, status=exc.status, problem=exc.message)
        messages.success(request, _("You are no longer in %(team)s.") % {"team": team.name})
        return redirect("accounts:home")

    def _caller(self) -> Caller:
        assert isinstance(self.request.user, User)
        return caller_by_user(self.request.user)

    def _leaving(self, team_id: UUID) -> Leaving:
        try:
            return leaving_of(self._caller(), team_id)
        except NotFound as exc:
            raise Http404 from exc
