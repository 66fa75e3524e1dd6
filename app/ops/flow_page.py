"""The page of what leaves the premises, for staff."""

from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin, UserPassesTestMixin
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from app.ops.selectors import data_flow


@method_decorator(never_cache, name="dispatch")
class DataFlowView(LoginRequiredMixin, UserPassesTestMixin, TemplateView):
    """What leaves the premises, to where, and how private it may be."""

    template_name = "ops/data_flow.html"

    def test_func(self) -> bool:
        """Staff alone; others get the 403 page."""
        return bool(getattr(self.request.user, "is_staff", False))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Everything as it is set now."""
        return super().get_context_data(**kwargs) | {"section": "data-flow", "flow": data_flow()}
