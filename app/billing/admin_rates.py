"""Mark-ups, exchange rates, prepaid credit and own servers, for staff. History is shown and never edited."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from app.accounts.models import Team
from app.billing.admin_booked import TeamFilter
from app.billing.errors import PriceConflict
from app.billing.forms_rates import CreditForm, ExchangeRateForm, HourlyForm, ProposalForm, TeamRateForm
from app.billing.models import CreditMovement, ExchangeRate, TeamRate
from app.billing.own_servers import hourly_costs, recovery_of
from app.billing.rates import team_rate_end
from app.catalog.models import Deployment
from app.common.admin_site import ReadOnly, RowAdmin, exact
from app.common.clock import now


class _Written(ReadOnly):
    """Rows that are added by asking billing, and then stay."""

    can_add = True
    form_class: Any

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A new row has a form of its own, knowing who fills it in."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)  # type: ignore[misc]
        form: Any = super().get_form(request, obj, change, **{"form": self.form_class} | kwargs)  # type: ignore[misc]
        form.set_by = f"user:{request.user.pk}"
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        declared = self.form_class.declared_fields
        return self.fields if obj else (*self.form_class.Meta.fields, *declared)  # type: ignore[attr-defined]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Written by the form, which asked billing."""
        obj.pk = getattr(form.written, "pk", form.written)
        obj.refresh_from_db()

    @admin.display(description="team")
    def team(self, row: Any) -> str:
        return str(Team.objects.filter(pk=row.team_id).first() or row.team_id)


@admin.register(TeamRate)
class TeamRateAdmin(_Written, RowAdmin[TeamRate]):
    """A factor is never changed: a new one takes effect, or it ends."""

    form_class = TeamRateForm
    list_display = ("team", "price_key", "factor", "effective_from", "effective_to", "approved_by")
    list_filter = (TeamFilter,)
    ordering = ("-effective_from",)
    fields = ("team", "price_key", "factor", "effective_from", "effective_to", "source", "approved_by")
    readonly_fields = ("team",)
    actions = ("end",)

    @admin.action(description="End the selected factors now")
    def end(self, request: HttpRequest, queryset: Any) -> None:
        """From the next call on the general prices count."""
        for row in queryset:
            try:
                team_rate_end(team_id=row.team_id, price_key=row.price_key)
            except PriceConflict as exc:
                self.message_user(request, f"{row}: {exc.message}", messages.ERROR)
            else:
                self.log_change(request, row, "Ended.")
                self.message_user(request, f"{row}: ended.", messages.SUCCESS)


@admin.register(ExchangeRate)
class ExchangeRateAdmin(_Written, RowAdmin[ExchangeRate]):
    """Each holds until the next; entries keep the one they were made with."""

    form_class = ExchangeRateForm
    list_display = ("currency", "rate", "to_currency", "effective_from", "source", "entered_by")
    ordering = ("currency", "-effective_from")
    fields = ("currency", "to_currency", "rate", "effective_from", "source", "entered_by")


@admin.register(CreditMovement)
class CreditAdmin(_Written, RowAdmin[CreditMovement]):
    """Grants, corrections and what lapsed. A mistake is corrected by a row of its own."""

    form_class = CreditForm
    list_display = (
        "id",
        "created_at",
        "team",
        "kind",
        "amount_exact",
        "grant",
        "expires_at",
        "source",
        "actor",
    )
    list_filter = (TeamFilter,)
    ordering = ("-id",)
    fields = (
        "team", "kind", "amount_exact", "grant", "expires_at", "source", "reason", "actor", "dedupe_key", "created_at",
    )  # fmt: skip
    readonly_fields = ("team", "amount_exact")

    @admin.display(description="amount", ordering="amount")
    def amount_exact(self, row: CreditMovement) -> str:
        return exact(row.amount, row.currency)


def own_servers(request: HttpRequest) -> HttpResponse:
    """Servers paid by the hour: what they cost and bring in, a new hourly cost, and a price to propose."""
    hourly = HourlyForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and hourly.is_valid() and hourly.write(f"user:{request.user.pk}"):
        messages.success(request, "It counts from the next full hour on.")
        return redirect("admin:billing_own_servers")
    asked = ProposalForm(request.GET if "tokens_per_second" in request.GET else None)
    asked.is_bound = asked.is_bound and request.method == "GET"
    context = {
        **admin.site.each_context(request),
        "title": "Own servers",
        "servers": _servers(),
        "hourly": hourly,
        "asked": asked,
        "approve": _approve(asked) if asked.is_bound and asked.is_valid() else "",
    }
    return TemplateResponse(request, "admin/billing/own_servers.html", context)


def _approve(asked: ProposalForm) -> str:
    """The page that sets the proposed price, filled in: nothing counts before somebody saves it."""
    assert asked.proposed is not None
    price = f"{asked.proposed.normalize():f}"
    fields = {"price_key": asked.cleaned_data["price_key"], "side": "price", "input": price, "output": price}
    return f"{reverse('admin:billing_priceversion_add')}?{urlencode(fields)}"


def _servers() -> list[dict[str, Any]]:
    """The last 30 days of each."""
    costs, end = hourly_costs(), now()
    rows = {row.pk: row for row in Deployment.objects.filter(pk__in=costs).select_related("backend")}
    return [
        {
            "name": str(rows.get(pk, pk)),
            "price_key": rows[pk].price_key if pk in rows else "",
            "per_hour": exact(price, currency),
            "recovery": (recovery := recovery_of(deployment_id=pk, from_=end - timedelta(days=30), to=end)),
            "idle": "unknown" if recovery.idle_share is None else f"{recovery.idle_share * 100:.1f} %",
            "provisioned": exact(recovery.provisioned, settings.CURRENCY),
            "recovered": exact(recovery.recovered, settings.CURRENCY),
            "per_million": exact(recovery.per_million, settings.CURRENCY),
        }
        for pk, (price, currency) in costs.items()
    ]
