"""Routes of what spans apps."""

from django.urls import path

from app.api.urls import both
from app.ops.flow_page import DataFlowView
from app.ops.views import ExportFileView, ExportsView, ExportView

urlpatterns = [
    path("dashboard/data-flow/", DataFlowView.as_view(), name="data-flow"),
    *both("me/export", ExportsView, "exports"),
    *both("me/export/<uuid:export_id>", ExportView, "export"),
    *both("me/export/<uuid:export_id>/file", ExportFileView, "export-file"),
]
