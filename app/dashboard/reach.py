"""Whose money somebody may see: all of it for staff, their own teams for admins and owners, none for others."""

from dataclasses import dataclass, replace
from datetime import date
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin, UserPassesTestMixin
from django.http import HttpRequest
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import View

from app.accounts.models import Team, User
from app.accounts.selectors import managed_teams
from app.common.clock import now
from app.dashboard.filters import SpendFilter, parse
from app.dashboard.naming import personal_hidden


@dataclass(frozen=True, slots=True)
class Reach:
    """What one reader may see."""

    team_ids: tuple[UUID, ...] | None
    """None: everything."""
    teams: tuple[tuple[UUID, str], ...]
    """By name, for the filter."""

    @property
    def is_all(self) -> bool:
        return self.team_ids is None

    def payer_team(self, chosen: SpendFilter) -> UUID | None:
        """The team whose limits stand beside the sums; None: those of the installation."""
        if chosen.team is not None or self.team_ids is None:
            return chosen.team
        return self.team_ids[0]


def reach_of(user: User) -> Reach:
    """Read anew for every request, so that a lost role shows nothing any more."""
    allowed = managed_teams(user)
    rows = Team.objects.order_by("name", "id")
    if settings.PERSON_LEVEL != "named":
        # A personal team is its person.
        rows = rows.filter(is_personal=False)
    if allowed is not None:
        rows = rows.filter(id__in=allowed)
    return Reach(None if allowed is None else tuple(allowed), tuple(rows.values_list("id", "name")))


@method_decorator(never_cache, name="dispatch")
class SpendBase(LoginRequiredMixin, UserPassesTestMixin, View):
    """Sets `reach`, `today`, `zone`, `chosen` and `problems`; others than staff and admins get the 403 page."""

    reach: Reach
    chosen: SpendFilter
    problems: list[str]
    today: date
    zone: str

    def test_func(self) -> bool:
        """A team in the address that is not theirs is not refused apart: it shows nothing, like one that is unknown."""
        user = self.request.user
        if not user.is_authenticated:
            return False
        self.reach = reach_of(user)
        return self.reach.team_ids is None or bool(self.reach.team_ids)

    def setup(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        super().setup(request, *args, **kwargs)
        self.zone = settings.INSTALLATION_ZONE
        self.today = now().astimezone(ZoneInfo(self.zone)).date()
        self.chosen, self.problems = parse(request.GET.dict(), self.today)
        if self.chosen.person and settings.PERSON_LEVEL != "named":
            self.chosen = replace(self.chosen, person=None)
            self.problems.append("Single people are not shown here, so nothing is narrowed by one.")
        if self.chosen.team and personal_hidden([self.chosen.team]):
            self.chosen = replace(self.chosen, team=None)
            self.problems.append("A personal team is a person, so nothing is narrowed by it.")
