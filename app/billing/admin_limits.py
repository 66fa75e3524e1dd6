"""What staff do about limits besides setting them: rates, the pause of all spending, requests for more."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from app.accounts.models import ApiKey, Team, User
from app.billing.forms import AskingForm
from app.billing.models import LimitRequest, Pause, RateLimit
from app.billing.naming import whom
from app.billing.pausing import spending_pause, spending_resume
from app.billing.raising import limit_request_decline, limit_request_grant
from app.billing.rate_limits import rate_limit_set
from app.common.admin_site import ReadOnly, RowAdmin, StaffOnly, filter_of
from app.common.errors import AppError


class RateLimitForm(AskingForm[RateLimit]):
    """Limits a minute and at once; the same scope and id again changes the one that is there."""

    scope = forms.ChoiceField(choices=[(s, s) for s in ("installation", "team", "person", "key")])
    team = forms.ModelChoiceField(
        Team.objects.order_by("name"), required=False, help_text="Empty: every team."
    )
    person = forms.ModelChoiceField(
        User.objects.order_by("email"), required=False, help_text="Empty: everybody."
    )
    key = forms.ModelChoiceField(
        ApiKey.objects.filter(revoked_at=None).order_by("prefix"),
        required=False,
        help_text="Empty: every key.",
    )

    class Meta:
        model = RateLimit
        fields = ("requests", "tokens", "streams")

    def write(self, values: dict[str, Any]) -> Any:
        return rate_limit_set(
            scope=values["scope"],
            requests=values["requests"],
            tokens=values["tokens"],
            streams=values["streams"],
            team_id=values["team"].pk if values["team"] else None,
            account_id=values["person"].account_id if values["person"] else None,
            key_id=values["key"].pk if values["key"] else None,
            set_by=self.set_by,
        )


class RateLimitAdmin(StaffOnly, RowAdmin[RateLimit]):
    """How fast somebody may ask. Set the same one again to change it; deleted, it is no limit within seconds."""

    can_change = False
    list_display = ("covers", "scope", "requests", "tokens", "streams", "set_by")
    ordering = ("scope", "subject")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(
            request, obj, change, **({} if obj else {"form": RateLimitForm}) | kwargs
        )
        form.set_by = f"user:{request.user.pk}"
        return form

    def get_fields(self, request: HttpRequest, obj: RateLimit | None = None) -> Any:
        if obj:
            return ("scope", "subject", "requests", "tokens", "streams", "set_by")
        return ("scope", "team", "person", "key", "requests", "tokens", "streams")

    def save_model(self, request: HttpRequest, obj: RateLimit, form: Any, change: bool) -> None:
        """Written by the form, which asked billing."""
        obj.pk = form.written
        obj.refresh_from_db()

    @admin.display(description="covers")
    def covers(self, row: RateLimit) -> str:
        return whom(row.subject)


class PauseAdmin(ReadOnly, RowAdmin[Pause]):
    """The switch that pauses everything that costs money: add a row to turn it. Rows stay, as its audit."""

    can_add = True
    list_display = ("created_at", "paused", "reason", "set_by")
    ordering = ("-id",)

    def get_fields(self, request: HttpRequest, obj: Pause | None = None) -> Any:
        return ("created_at", "paused", "reason", "set_by") if obj else ("paused", "reason")

    def save_model(self, request: HttpRequest, obj: Pause, form: Any, change: bool) -> None:
        """Turn the switch; where it stands so already, the row that says so is shown."""
        turn = spending_pause if obj.paused else spending_resume
        turn(set_by=f"user:{request.user.pk}", reason=obj.reason)
        last = Pause.objects.order_by("-id").first()
        if last is None:
            last = Pause.objects.create(paused=False, reason=obj.reason, set_by=f"user:{request.user.pk}")
        obj.pk = last.pk
        obj.refresh_from_db()


class LimitRequestAdmin(ReadOnly, RowAdmin[LimitRequest]):
    """Who asks for more. A raise ends with its period."""

    list_display = (
        "created_at",
        "covers",
        "amount",
        "unit",
        "note",
        "state",
        "ends_at",
        "granted",
        "decided_by",
    )
    list_filter = (filter_of("state", ("open", "granted", "declined")),)
    list_select_related = ("window",)
    ordering = ("-id",)
    actions = ("grant", "decline")

    @admin.display(description="covers")
    def covers(self, row: LimitRequest) -> str:
        return whom(row.window.subject)

    @admin.display(description="unit")
    def unit(self, row: LimitRequest) -> str:
        return row.window.unit

    @admin.display(description="ends")
    def ends_at(self, row: LimitRequest) -> Any:
        return row.window.ends_at

    @admin.action(description="Grant the selected requests as asked", permissions=["view"])
    def grant(self, request: HttpRequest, queryset: QuerySet[LimitRequest]) -> None:
        self._decide(
            request, queryset, lambda row, by: limit_request_grant(request=row, amount=None, decided_by=by)
        )

    @admin.action(description="Decline the selected requests", permissions=["view"])
    def decline(self, request: HttpRequest, queryset: QuerySet[LimitRequest]) -> None:
        self._decide(request, queryset, lambda row, by: limit_request_decline(request=row, decided_by=by))

    def _decide(self, request: HttpRequest, queryset: QuerySet[LimitRequest], decide: Any) -> None:
        for row in queryset:
            try:
                decide(row, f"user:{request.user.pk}")
                self.message_user(request, f"{whom(row.window.subject)}: done.", messages.SUCCESS)
            except AppError as exc:
                self.message_user(request, f"{whom(row.window.subject)}: {exc.message}", messages.ERROR)
