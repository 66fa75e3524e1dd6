"""The audit log for staff: read only, and as CSV."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from app.audit.models import AuditEntry, Outcome, Verb
from app.audit.selectors import CSV_ROWS, audit_csv
from app.audit.services import audit
from app.common.admin_site import ReadOnly, RowAdmin, filter_of, uuid_of


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, RowAdmin[AuditEntry]):
    """Who did what; the list as it is narrowed can be taken along."""

    list_display = (
        "created_at", "verb", "outcome", "actor", "object_kind", "object_id", "before", "after", "team_id",
    )  # fmt: skip
    list_filter = (filter_of("verb", Verb.values), filter_of("outcome", Outcome.values), "created_at")
    fields = (
        "created_at", "verb", "outcome", "actor_account", "actor_key", "team_id", "object_kind", "object_id",
        "before", "after", "reason", "request_id",
    )  # fmt: skip
    search_fields = ("object_id",)
    search_help_text = "An account, a team, an object or a request, by its whole id."
    show_full_result_count = False

    @admin.display(description="actor")
    def actor(self, row: AuditEntry) -> str:
        """Account or key; neither is a command on the machine, or somebody who is not signed in."""
        return str(row.actor_account or row.actor_key or "–")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """By whole ids, for which there are indexes."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = queryset.filter(object_id=term) | queryset.filter(request_id=term)
        if (identity := uuid_of(term)) is not None:
            found |= queryset.filter(actor_account=identity) | queryset.filter(team_id=identity)
            found |= queryset.filter(actor_key=identity)
        return found, False

    def get_urls(self) -> list[URLPattern]:
        """The export beside the list."""
        view = self.admin_site.admin_view(self.export)
        return [path("export/", view, name="audit_auditentry_export"), *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponse:
        """The list with the same filters as CSV, the newest rows first; the export itself is written down."""
        rows = self.get_changelist_instance(request).get_queryset(request)[:CSV_ROWS]
        body = "\ufeff" + audit_csv(rows.iterator())
        audit(Verb.EXPORT, object_kind="audit log")
        return HttpResponse(
            body,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
        )
