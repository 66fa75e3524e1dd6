"""Embedding models for staff: which one serves, which stand by, and how far a change is."""

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponse

from app.common.admin_site import ReadOnly, RowAdmin
from retrieval.models import EmbeddingSpace
from retrieval.rebuild import space_progress


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnly, RowAdmin[EmbeddingSpace]):
    """Changed by `manage.py embedding_space_build`, which embeds everything anew beside what serves."""

    list_display = ("model", "dimension", "generation", "state", "embedded", "created_at")
    list_filter = ("state",)
    fields = (
        "model", "dimension", "generation", "state", "embedded", "query_prefix", "passage_prefix", "min_similarity",
        "created_at",
    )  # fmt: skip
    readonly_fields = fields

    @admin.display(description="chunks embedded")
    def embedded(self, row: EmbeddingSpace) -> str:
        done, total = space_progress(row)
        return f"{done:,} of {total:,}"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        words = {"title": "Embedding models (change with manage.py embedding_space_build)"}
        return super().changelist_view(request, {**words, **(extra_context or {})})
