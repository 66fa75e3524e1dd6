"""Prices, limits and what was booked, for staff: money and metadata, exact, and nothing that can be rewritten."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_args

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import path

from app.billing.admin_booked import LedgerEntryAdmin, ReservationAdmin
from app.billing.admin_limits import LimitRequestAdmin, PauseAdmin, RateLimitAdmin
from app.billing.admin_outbox import DeliveryAdmin, WebhookAdmin
from app.billing.admin_rates import own_servers
from app.billing.budgets import budget_remove
from app.billing.forms import BudgetAddForm, BudgetForm, PriceForm
from app.billing.models import (
    Budget,
    BudgetWindow,
    Delivery,
    LedgerEntry,
    LimitRequest,
    Pause,
    PriceComponent,
    PriceVersion,
    RateLimit,
    Reservation,
    Webhook,
)
from app.billing.naming import whom
from app.billing.selectors import price_versions
from app.billing.showing import rates_difference, rates_words
from app.billing.types import Period, Scope, Unit
from app.common.admin_site import ReadOnly, RowAdmin, StaffOnly, exact, filter_of
from app.common.clock import now

if TYPE_CHECKING:
    _RateInline = admin.TabularInline[PriceComponent, PriceVersion]
else:
    _RateInline = admin.TabularInline


class InForceFilter(admin.SimpleListFilter):
    """Prices as of now."""

    title, parameter_name = "in force", "in_force"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("now", "now")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() != "now":
            return queryset
        ends = Q(effective_to__isnull=True) | Q(effective_to__gt=now())
        return queryset.filter(ends, effective_from__lte=now())


class RatesInline(ReadOnly, _RateInline):
    """The rates of a version."""

    model = PriceComponent
    fields = ("component", "price", "per_units", "min_prompt_tokens")
    readonly_fields = fields
    ordering = ("min_prompt_tokens", "id")


@admin.register(PriceVersion)
class PriceVersionAdmin(ReadOnly, RowAdmin[PriceVersion]):
    """A price is never changed: a new version takes effect, and what was booked names the old one for ever."""

    can_add = True
    change_list_template = "admin/billing/prices.html"
    list_display = (
        "price_key", "side", "mode", "rates", "team_id", "effective_from", "effective_to", "source", "approved_by",
    )  # fmt: skip
    list_filter = (InForceFilter, filter_of("side", ("price", "cost")))
    search_fields = ("price_key",)
    ordering = ("price_key", "-effective_from")
    inlines = (RatesInline,)
    fields = (
        "price_key", "side", "team_id", "mode", "currency", "effective_from", "effective_to", "tier_mode", "source",
        "approved_by", "before",
    )  # fmt: skip
    readonly_fields = ("before",)

    def get_urls(self) -> Any:
        view = self.admin_site.admin_view(own_servers)
        return [path("own-servers/", view, name="billing_own_servers"), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PriceVersion]:
        return super().get_queryset(request).prefetch_related("components")

    def get_form(
        self, request: HttpRequest, obj: PriceVersion | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """A new version has a form of its own, knowing who fills it in."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        form: Any = super().get_form(request, obj, change, **{"form": PriceForm} | kwargs)
        form.set_by = f"user:{request.user.pk}"
        return form

    def get_fields(self, request: HttpRequest, obj: PriceVersion | None = None) -> Any:
        return self.fields if obj else (*PriceForm.Meta.fields, *PriceForm.declared_fields)

    def get_inlines(self, request: HttpRequest, obj: PriceVersion | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: PriceVersion, form: Any, change: bool) -> None:
        """Written by the form, which asked billing."""
        obj.pk = form.written.version_id
        obj.refresh_from_db()
        self.message_user(request, f"{obj}: {self.before(obj)}", messages.INFO)

    @admin.display(description="compared with the one before")
    def before(self, row: PriceVersion) -> str:
        """What changed with this version, component by component."""
        versions = price_versions(row.price_key, side="cost" if row.side == "cost" else "price")
        same = [v for v in versions if (v.team_id, v.mode) == (row.team_id, row.mode)]
        own = next(v for v in same if v.version_id == row.pk)
        earlier = next((v for v in same if v.effective_from < own.effective_from), None)
        if earlier is None:
            return f"the first: {rates_words(own.rates, own.currency)}"
        return rates_difference(earlier.rates, own.rates, own.currency)

    @admin.display(description="rates")
    def rates(self, row: PriceVersion) -> str:
        """The main ones; the page of the version has all."""
        shown = [
            c for c in row.components.all() if c.component in {"input", "output"} and not c.min_prompt_tokens
        ]
        parts = [f"{c.component} {c.price.normalize():f}" for c in sorted(shown, key=lambda c: c.component)]
        return f"{', '.join(parts)} {row.currency} per million" if parts else "other units"


@admin.register(Budget)
class BudgetAdmin(StaffOnly, RowAdmin[Budget]):
    """Limits. One that is no longer wanted stops being checked; its windows stay, because reservations name them."""

    can_delete = False
    list_display = ("name", "scope", "covers", "amount", "period", "price_key", "hard", "active")
    list_filter = (
        "active",
        filter_of("scope", get_args(Scope)),
        filter_of("unit", get_args(Unit)),
        filter_of("period", get_args(Period)),
    )
    search_fields = ("name", "subject", "price_key")
    ordering = ("-active", "scope", "name", "id")
    actions = ("stop",)
    readonly_fields = (
        "scope",
        "covers",
        "unit",
        "period",
        "price_key",
        "zone",
        "active",
        "set_by",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        """Without prepaid credit, which is not set but given; its windows show what is left."""
        return super().get_queryset(request).exclude(scope="prepaid")

    def get_form(
        self, request: HttpRequest, obj: Budget | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """A new limit names whom it covers; of one that is there only the amount, the name and hard change."""
        form: Any = super().get_form(
            request, obj, change, **{"form": BudgetForm if obj else BudgetAddForm} | kwargs
        )
        form.set_by = f"user:{request.user.pk}"
        return form

    def get_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        if obj:
            return (*BudgetForm.Meta.fields, *self.readonly_fields)
        return (
            "name",
            "scope",
            "team",
            "person",
            "key",
            "unit",
            "limit",
            "period",
            "price_key",
            "zone",
            "hard",
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        return self.readonly_fields if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: Budget | None = None) -> bool:
        """One that is not checked any more stays as it was."""
        return super().has_change_permission(request, obj) and (obj is None or obj.active)

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        """Written by the form, which asked billing."""
        obj.pk = form.written
        obj.refresh_from_db()

    @admin.display(description="covers")
    def covers(self, row: Budget) -> str:
        """Whom it covers, by name."""
        return whom(row.subject)

    @admin.display(description="limit", ordering="limit")
    def amount(self, row: Budget) -> str:
        """Exact, with its unit."""
        return _amount(row.limit, row.unit)

    @admin.action(description="Stop checking the selected limits")
    def stop(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        """From the next call on."""
        present = list(queryset.filter(active=True))
        for row in present:
            budget_remove(budget_id=row.pk)
            self.log_change(request, row, "No longer checked.")
        self.message_user(request, f"Limits no longer checked: {len(present)}.", messages.SUCCESS)


@admin.register(BudgetWindow)
class BudgetWindowAdmin(ReadOnly, RowAdmin[BudgetWindow]):
    """How much of each limit is used in each period."""

    list_display = ("budget", "covers", "limit", "used", "on_hold", "starts_at", "ends_at")
    list_filter = (filter_of("unit", get_args(Unit)), ("starts_at", admin.DateFieldListFilter))
    list_select_related = ("budget",)
    search_fields = ("subject", "budget__name")
    ordering = ("-starts_at", "id")
    fields = ("budget", "covers", "unit", "price_key", "starts_at", "ends_at", "limit", "used", "on_hold")
    readonly_fields = fields
    show_full_result_count = False

    @admin.display(description="covers")
    def covers(self, row: BudgetWindow) -> str:
        return whom(row.subject)

    @admin.display(description="limit", ordering="limit_snapshot")
    def limit(self, row: BudgetWindow) -> str:
        return _amount(row.limit_snapshot, row.unit)

    @admin.display(description="spent (as folded so far)", ordering="spent")
    def used(self, row: BudgetWindow) -> str:
        return _amount(row.spent, row.unit)

    @admin.display(description="held (as folded so far)", ordering="held")
    def on_hold(self, row: BudgetWindow) -> str:
        return _amount(row.held, row.unit)


admin.site.register(Reservation, ReservationAdmin)
admin.site.register(LedgerEntry, LedgerEntryAdmin)
admin.site.register(Webhook, WebhookAdmin)
admin.site.register(Delivery, DeliveryAdmin)


def _amount(amount: Decimal, unit: str) -> str:
    return exact(amount, settings.CURRENCY) if unit == "money" else f"{amount.normalize():f} {unit}"


admin.site.register(LimitRequest, LimitRequestAdmin)
admin.site.register(Pause, PauseAdmin)
admin.site.register(RateLimit, RateLimitAdmin)
