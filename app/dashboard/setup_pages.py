"""Setting up: a model server, its price, limits, people, a first document. Staff only; every step can be repeated."""

from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.generic import TemplateView

from app.accounts.models import User
from app.catalog.models import Deployment
from app.common.errors import AppError
from app.dashboard import setup_steps
from app.dashboard.setup_steps import Looked
from app.dashboard.staff import StaffPage


class LookForm(forms.Form):
    """Where the server is."""

    url = forms.CharField(max_length=500)
    key = forms.CharField(max_length=2000, required=False)


class ConnectForm(forms.Form):
    """What of it is wanted."""

    url = forms.CharField(max_length=500)
    sealed = forms.CharField(max_length=8000, required=False)
    where = forms.ChoiceField(choices=[("", ""), ("leaves", "leaves"), ("stays", "stays")], required=False)


class PriceForm(forms.Form):
    """What users pay per million tokens."""

    given = forms.DecimalField(min_value=Decimal(0), max_digits=15, decimal_places=9)
    made = forms.DecimalField(min_value=Decimal(0), max_digits=15, decimal_places=9)


class SetupView(StaffPage, TemplateView):
    """The page with its five steps."""

    template_name = "dashboard/setup.html"
    looked: Looked | None = None
    problem = ""
    url = ""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """How far it is, and what the server that was looked at has."""
        return super().get_context_data(**kwargs) | {
            "section": "setup",
            "currency": settings.CURRENCY,
            "steps": setup_steps.steps(cast(User, self.request.user)),
            "looked": self.looked,
            "problem": self.problem,
            "url": self.url,
        }

    def again(self, problem: str) -> HttpResponse:
        """The page with what is to be done about it."""
        self.problem = problem
        return self.render_to_response(self.get_context_data(), status=422)


class LookView(SetupView):
    """Ask a server what it serves."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """The page with its models to choose from."""
        form = LookForm(request.POST)
        self.url = request.POST.get("url", "")
        if not form.is_valid():
            return self.again("Give the server's address, such as http://host:8000/v1.")
        try:
            self.looked = setup_steps.look(form.cleaned_data["url"], form.cleaned_data["key"])
        except AppError as exc:
            return self.again(exc.message)
        return self.render_to_response(self.get_context_data())


class ConnectView(SetupView):
    """Add the server with the chosen models."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Back to the page, a step further."""
        form = ConnectForm(request.POST)
        self.url = request.POST.get("url", "")
        if not form.is_valid():
            return self.again("Look at the server again, then choose its models.")
        where = form.cleaned_data["where"]
        try:
            backend, rows = setup_steps.connect(
                url=form.cleaned_data["url"],
                sealed=form.cleaned_data["sealed"],
                names=request.POST.getlist("models"),
                leaves=None if not where else where == "leaves",
            )
        except AppError as exc:
            return self.again(exc.message)
        names = ", ".join(row.public_name for row in rows)
        messages.success(request, f"{backend.name} is connected with {names}.")
        return HttpResponseRedirect(reverse("dashboard:setup"))


class PriceView(SetupView):
    """What a model costs its users."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest, deployment_id: UUID) -> HttpResponse:
        """Set it from now on."""
        row = get_object_or_404(Deployment, id=deployment_id)
        form = PriceForm(request.POST)
        if not form.is_valid():
            return self.again(f"A price of {row.public_name} is a number of 0 or more, such as 0.25.")
        try:
            setup_steps.price(
                row=row,
                given=form.cleaned_data["given"],
                made=form.cleaned_data["made"],
                by=cast(User, request.user),
            )
        except AppError as exc:
            return self.again(exc.message)
        messages.success(request, f"{row.public_name} has a price.")
        return HttpResponseRedirect(reverse("dashboard:setup"))
