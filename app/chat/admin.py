"""Rules of retention for staff. No model with what people wrote is registered here or anywhere."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from app.chat.models import RetentionRule
from app.chat.retention import rule_remove, rule_save
from app.common.admin_site import RowAdmin, RowForm, StaffOnly


class RetentionRuleForm(RowForm[RetentionRule]):
    """Of the installation (no team) or of one team."""

    class Meta:
        model = RetentionRule
        fields = ("team", "conversations", "days", "raw_usage_days")
        help_texts = {
            "team": "Empty: every team without a rule of its own.",
            "conversations": "Not stored: gone an hour after the last question in it.",
            "days": "Since the last question in it.",
            "raw_usage_days": "Servers' usage blocks as received; counts in the installation's rule only.",
        }

    def clean(self) -> dict[str, Any]:
        """Days belong to one of the three, and one rule to each."""
        values = super().clean() or self.cleaned_data
        if (values.get("conversations") == RetentionRule.Keep.DAYS) != (values.get("days") is not None):
            self.add_error("days", "Give days where conversations are kept for days, and nowhere else.")
        same = RetentionRule.objects.filter(team=values.get("team")).exclude(pk=self.instance.pk)
        if same.exists():
            raise forms.ValidationError("There is a rule for this already; change that one.")
        return values


@admin.register(RetentionRule)
class RetentionRuleAdmin(StaffOnly, RowAdmin[RetentionRule]):
    """How long conversations are kept."""

    form = RetentionRuleForm
    list_display = ("whose", "conversations", "days", "raw_usage_days")
    list_select_related = ("team",)
    autocomplete_fields = ("team",)

    @admin.display(description="team")
    def whose(self, row: RetentionRule) -> str:
        """A team's name, or the installation."""
        return row.team.name if row.team else "this installation"

    def save_model(self, request: HttpRequest, obj: RetentionRule, form: Any, change: bool) -> None:
        """Through the service."""
        rule_save(obj, before=RetentionRule.objects.filter(pk=obj.pk).first())

    def delete_model(self, request: HttpRequest, obj: RetentionRule) -> None:
        """Through the service."""
        rule_remove(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RetentionRule]) -> None:
        """Each as if it were the only one."""
        for row in queryset:
            rule_remove(row)
