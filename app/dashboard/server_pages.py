"""The inference servers: how they stand, a test call, and the switch. Staff only."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.generic import TemplateView, View

from app.catalog.models import Deployment
from app.catalog.readiness import parts_away_words
from app.catalog.services import deployment_switch
from app.common.formatting import figure
from app.dashboard.server_reads import offers, standings, target_of
from app.dashboard.staff import StaffPage
from app.gate.trying import Tried, target_try


class ServersView(StaffPage, TemplateView):
    """The page."""

    template_name = "dashboard/servers.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Servers, and models with all that serve them."""
        found = standings()
        return super().get_context_data(**kwargs) | {
            "section": "servers",
            "away": parts_away_words(),
            "zone": settings.INSTALLATION_ZONE,
            "currency": settings.CURRENCY,
            "servers": found,
            "offers": offers(found),
        }


class _Post(StaffPage, View):
    """Something done to one deployment, and back to the page."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest, deployment_id: UUID) -> HttpResponse:
        """Do it and say what came of it."""
        self.act(request, get_object_or_404(Deployment.objects.select_related("backend"), id=deployment_id))
        back = "dashboard:setup" if "setup" in request.POST else "dashboard:servers"
        return HttpResponseRedirect(reverse(back))

    def act(self, request: HttpRequest, row: Deployment) -> None:
        """What is done."""
        raise NotImplementedError


class TryView(_Post):
    """One tiny call, paid by the installation."""

    def act(self, request: HttpRequest, row: Deployment) -> None:
        """Ask, and tell what the call showed."""
        target = target_of(row.id)
        if target is None:
            messages.warning(request, f"{row} is switched off. Switch it on to try it.")
        elif row.purpose != Deployment.Purpose.CHAT:
            messages.warning(request, f"{row} makes no text; adding a document tries it.")
        else:
            tried = async_to_sync(target_try)(target)
            tell = messages.error if tried.problem else messages.success
            tell(request, f"{row}: {_words(tried)}")


class SwitchView(_Post):
    """On or off; what runs there goes on to its end."""

    def act(self, request: HttpRequest, row: Deployment) -> None:
        """Switch it."""
        deployment_switch(deployment=row, on="on" in request.POST)
        words = (
            "takes calls again." if row.enabled else "takes no new calls; those that run go on to their end."
        )
        messages.success(request, f"{row} {words}")


def _words(tried: Tried) -> str:
    if tried.problem:
        return tried.problem
    parts = [
        f"first token after {tried.ttft_ms} ms" if tried.ttft_ms is not None else "",
        f"{tried.tokens_per_s} tokens/s" if tried.tokens_per_s else "",
        f"price {figure(tried.price, settings.CURRENCY)}" if tried.price is not None else "",
        "" if tried.tells_usage else "it does not tell its usage, so its calls are estimated",
    ]
    return f"it answers: {', '.join(part for part in parts if part)}."
