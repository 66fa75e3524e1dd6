"""The page of the one who answers for the bill."""

from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin, UserPassesTestMixin
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from app.common.clock import now
from app.common.formatting import decimals_for
from app.dashboard import selectors
from app.dashboard.chart import chart
from app.dashboard.filters import GROUP_NAMES, parse, presets


@method_decorator(never_cache, name="dispatch")
class SpendView(LoginRequiredMixin, UserPassesTestMixin, TemplateView):
    """Spend by day, team, person, model; staff only. Filters: `from`, `to` (days), `group_by`, `team`."""

    template_name = "dashboard/spend.html"

    def test_func(self) -> bool:
        """Staff alone; others get the 403 page."""
        return bool(getattr(self.request.user, "is_staff", False))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Figures, chart and table of the filter in the address."""
        zone = settings.INSTALLATION_ZONE
        today: date = now().astimezone(ZoneInfo(zone)).date()
        chosen, problems = parse(self.request.GET.dict(), today)
        teams = selectors.teams()
        rows = selectors.table(chosen, zone=zone)
        total = selectors.add_up([row.sums for row in rows])
        return super().get_context_data(**kwargs) | {
            "section": "dashboard",
            "currency": settings.CURRENCY,
            "zone": zone,
            "today": today,
            "filter": chosen,
            "problems": problems,
            "teams": teams,
            "groups": GROUP_NAMES.items(),
            "presets": presets(chosen, today),
            "sentence": chosen.sentence(dict(teams).get(chosen.team_id) if chosen.team_id else None, today),
            "figures": selectors.figures(team_id=chosen.team_id, today=today, zone=zone),
            "chart": chart(first=chosen.first, last=chosen.last, series=selectors.series(chosen, zone=zone)),
            "rows": rows,
            "total": total,
            "decimals": decimals_for(total.price),
            "group_name": GROUP_NAMES[chosen.group_by],
        }
