"""Webhooks for staff: who is told of ledger entries, and what was not taken."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest

from app.accounts.models import Team
from app.billing.models import Delivery, Webhook
from app.billing.outbox import deliveries_again, webhook_add, webhook_close, webhook_open
from app.common.admin_site import ReadOnly, RowAdmin, RowForm, StaffOnly, filter_of
from app.common.errors import AppError


class WebhookAddForm(RowForm[Webhook]):
    """A new one; the address is checked, the secret is made."""

    team = forms.ModelChoiceField(
        Team.objects.order_by("name"), required=False, help_text="Only this team's entries; empty: all."
    )
    from_start = forms.BooleanField(required=False, help_text="Also tell what was booked before.")

    class Meta:
        model = Webhook
        fields = ("name", "url")

    written: tuple[Webhook, str]

    def clean(self) -> dict[str, Any]:
        """Written here, so that a refusal stands beside what was typed."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            team = values["team"]
            try:
                self.written = webhook_add(
                    name=values["name"],
                    url=values["url"],
                    team_id=team.pk if team else None,
                    from_start=values["from_start"],
                )
            except AppError as exc:
                raise forms.ValidationError(exc.message) from exc
        return values


class WebhookAdmin(StaffOnly, RowAdmin[Webhook]):
    """Their secrets are shown once and never again."""

    can_change = can_delete = False
    form = WebhookAddForm
    fields = ("name", "url", "team", "from_start")
    list_display = (
        "name",
        "url",
        "open",
        "delivered",
        "waiting",
        "dead",
        "last_delivered_at",
        "paused_until",
    )
    ordering = ("name", "id")
    actions = ("begin", "stop", "again")

    def get_fields(self, request: HttpRequest, obj: Webhook | None = None) -> Any:
        return ("name", "url", "team_id", "open", "delivered", "last_entry_id") if obj else self.fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Webhook]:
        """With what has not been taken."""
        return (
            super()
            .get_queryset(request)
            .annotate(
                n_waiting=Count("deliveries", filter=Q(deliveries__state="pending")),
                n_dead=Count("deliveries", filter=Q(deliveries__state="dead")),
            )
        )

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        """Written by the form, which asked billing."""
        written, secret = form.written
        obj.pk = written.pk
        obj.refresh_from_db()
        self.message_user(
            request, f"Messages are signed with this secret, shown once: {secret}", messages.WARNING
        )

    @admin.display(description="waiting")
    def waiting(self, row: Any) -> int:
        count: int = row.n_waiting
        return count

    @admin.display(description="not taken")
    def dead(self, row: Any) -> int:
        count: int = row.n_dead
        return count

    @admin.action(description="Begin to tell the selected webhooks, also what still waits")
    def begin(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """From the next entry on."""
        try:
            for row in queryset.filter(open=False):
                webhook_open(webhook=row)
                self.log_change(request, row, "Opened.")
        except AppError as exc:
            self.message_user(request, exc.message, messages.ERROR)

    @admin.action(description="Stop telling the selected webhooks")
    def stop(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """At once."""
        for row in queryset.filter(open=True):
            webhook_close(webhook=row)
            self.log_change(request, row, "Closed.")

    @admin.action(description="Send again what the selected webhooks have not taken")
    def again(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> None:
        """From the first try on."""
        dead = Delivery.objects.filter(webhook__in=list(queryset), state="dead")
        count = deliveries_again(delivery_ids=list(dead.values_list("id", flat=True)))
        self.message_user(request, f"Entries to be sent again: {count}.", messages.SUCCESS)


class DeliveryAdmin(ReadOnly, RowAdmin[Delivery]):
    """What a webhook has not taken yet; what it took is gone from here."""

    list_display = ("webhook", "entry_id", "state", "attempts", "next_at", "last_status", "last_error")
    list_filter = (filter_of("state", ("pending", "dead")),)
    list_select_related = ("webhook",)
    search_fields = ("entry__id",)
    ordering = ("state", "id")
    show_full_result_count = False
    actions = ("again",)
    fields = (
        "webhook",
        "entry_id",
        "state",
        "attempts",
        "created_at",
        "next_at",
        "last_status",
        "last_error",
    )
    readonly_fields = fields

    @admin.action(description="Send the selected entries again")
    def again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Those that were given up."""
        count = deliveries_again(delivery_ids=list(queryset.values_list("id", flat=True)))
        self.message_user(request, f"Entries to be sent again: {count}.", messages.SUCCESS)
