"""What the pages under /admin/ have in common: who may open them, read-only lists, exact money.

No model with messages, passages or documents is registered anywhere: staff see metadata and money.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from app.common.money import money

M = TypeVar("M", bound=Model)

if TYPE_CHECKING:
    RowAdmin = admin.ModelAdmin
    RowForm = forms.ModelForm
else:

    class _Subscript:
        """Django's own classes take no type argument while the program runs."""

        def __class_getitem__(cls, _: object) -> type:
            return cls

    class RowAdmin(_Subscript, admin.ModelAdmin):
        """`admin.ModelAdmin` of one model."""

    class RowForm(_Subscript, forms.ModelForm):
        """`forms.ModelForm` of one model."""


class StaffOnly:
    """Staff is a flag on the person; Django's permissions by model are not used here."""

    can_add = can_change = can_delete = True

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_add and self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_change and self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_delete and self.has_module_permission(request)


class ReadOnly(StaffOnly):
    """Rows that are written elsewhere."""

    can_add = can_change = can_delete = False


def exact(amount: Decimal | None, currency: str) -> str:
    """Every digit that matters; what is not known says so."""
    shown = money(amount, currency)
    return f"{shown['amount']} {shown['currency']}" if shown else "unknown"


def filter_of(name: str, values: Sequence[str], field: str = "") -> type[admin.SimpleListFilter]:
    """A filter over a closed list, so that no page reads a whole ledger to find out what there is."""

    class Closed(admin.SimpleListFilter):
        title = name.replace("_", " ")
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(value, value) for value in values]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field or name: self.value()}) if self.value() in values else queryset

    return Closed


def uuid_of(text: str | None) -> UUID | None:
    """An id out of an address; None for what is none."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def staff_sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """In place of the admin's own sign-in page: strangers go to the normal one, people without the flag get a 403."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))
    if not request.user.is_staff:
        raise PermissionDenied
    return redirect("admin:index")
