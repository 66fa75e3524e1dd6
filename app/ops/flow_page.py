"""The page of what leaves the premises, for staff."""

from typing import Any

from django.views.generic import TemplateView

from app.dashboard.staff import StaffPage
from app.ops.selectors import data_flow


class DataFlowView(StaffPage, TemplateView):
    """What leaves the premises, to where, and how private it may be."""

    template_name = "ops/data_flow.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Everything as it is set now."""
        return super().get_context_data(**kwargs) | {"section": "data-flow", "flow": data_flow()}
