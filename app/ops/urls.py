"""Routes of what spans apps."""

from app.api.urls import both
from app.ops.views import ExportFileView, ExportsView, ExportView

urlpatterns = [
    *both("me/export", ExportsView, "exports"),
    *both("me/export/<uuid:export_id>", ExportView, "export"),
    *both("me/export/<uuid:export_id>/file", ExportFileView, "export-file"),
]
