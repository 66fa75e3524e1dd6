"""What every page for staff has: sign-in, the flag, and no copy in a cache."""

from django.contrib.auth.mixins import LoginRequiredMixin, UserPassesTestMixin
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache


@method_decorator(never_cache, name="dispatch")
class StaffPage(LoginRequiredMixin, UserPassesTestMixin, View):
    """Mixin: staff alone; others get the 403 page."""

    def test_func(self) -> bool:
        """Whether this person may see it."""
        return bool(getattr(self.request.user, "is_staff", False))
