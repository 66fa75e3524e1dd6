"""How fast answers are, and where their time goes. Staff only; nothing of what was asked or answered."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.generic import TemplateView, View

from app.catalog.readiness import parts_away_words
from app.chat.speed import turn_found
from app.chat.timings import timing_of
from app.common.clock import now
from app.dashboard import speed_reads
from app.dashboard.staff import StaffPage

SPANS = {
    "1h": ("last hour", timedelta(hours=1), timedelta(minutes=2)),
    "6h": ("last 6 hours", timedelta(hours=6), timedelta(minutes=10)),
    "24h": ("last 24 hours", timedelta(hours=24), timedelta(hours=1)),
    "7d": ("last 7 days", timedelta(days=7), timedelta(hours=6)),
    "30d": ("last 30 days", timedelta(days=30), timedelta(days=1)),
}
"""By its name in the address: words, length, step of the chart."""
USUAL = "24h"
MANY_FAILED = 0.02
"""Share of turns from which failures are shown in the colour of trouble."""


class SpeedView(StaffPage, TemplateView):
    """The page. Filters: `span` of SPANS, `model` by its public name."""

    template_name = "dashboard/speed.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Figures, causes, chart and tables of the filter in the address."""
        chosen = self.request.GET.get("span", USUAL)
        span = chosen if chosen in SPANS else USUAL
        words, length, step = SPANS[span]
        models = speed_reads.names()
        wanted = self.request.GET.get("model", "")
        model = wanted if wanted in models else ""
        speed = speed_reads.speed_of(speed_reads.span_of(now(), length, model), step=step)
        return super().get_context_data(**kwargs) | {
            "section": "speed",
            "away": parts_away_words(),
            "zone": settings.INSTALLATION_ZONE,
            "sentence": f"{model or 'All models'}, {words}",
            "spans": [
                (text, urlencode({"span": name} | ({"model": model} if model else {})), name == span)
                for name, (text, _, _) in SPANS.items()
            ],
            "span": span,
            "model": model,
            "models": models,
            "missed": self.request.GET.get("missed", ""),
            "speed": speed,
            "many_failed": speed.whole.failed > MANY_FAILED * speed.whole.turns,
        }


class FindView(StaffPage, View):
    """From a request id, or a turn's, to its waterfall."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """To the turn, or back with what was not found."""
        wanted = request.GET.get("id", "").strip()
        found = turn_found(wanted)
        if found is None:
            return HttpResponseRedirect(f"{reverse('dashboard:speed')}?{urlencode({'missed': wanted})}")
        return HttpResponseRedirect(reverse("dashboard:speed-turn", args=[found.id]))


class TurnView(StaffPage, TemplateView):
    """One turn's waterfall."""

    template_name = "dashboard/speed_turn.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Its row and stages."""
        turn_id: UUID = self.kwargs["turn_id"]
        row = timing_of(turn_id)
        if row is None:
            raise Http404("No times are known of this turn; they are kept for 30 days.")
        return super().get_context_data(**kwargs) | {
            "section": "speed",
            "zone": settings.INSTALLATION_ZONE,
            "row": row,
            "server": speed_reads.server_of(row.deployment_id),
            "steps": speed_reads.steps(row),
        }
