"""The account of whoever is signed in: name, ways to sign in, devices. Signing in itself is allauth's."""

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.account.views import LoginView, LogoutView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.socialaccount.internal.flows.connect import disconnect, validate_disconnect
from allauth.socialaccount.models import SocialAccount
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from app.accounts.devices import device_end, devices_end_others, devices_of
from app.accounts.models import IdentityProvider, User
from app.accounts.selectors import caller_by_user, shared_teams_of
from app.accounts.services import person_rename
from app.common.errors import NotFound


class SignOutView(LogoutView):
    """By POST only: a link or a picture on another page must not sign anybody out."""

    http_method_names = ["post"]


class ProfileForm(forms.Form):
    """What others see of a person."""

    name = forms.CharField(
        max_length=200, label=gettext_lazy("Name"), widget=forms.TextInput(attrs={"autocomplete": "name"})
    )


if TYPE_CHECKING:
    _ProfileView = FormView[ProfileForm]
else:
    _ProfileView = FormView


@method_decorator(never_cache, name="dispatch")
class HomeView(LoginRequiredMixin, _ProfileView):
    """The account page; POST changes the name."""

    template_name = "accounts/home.html"
    form_class = ProfileForm

    def get_initial(self) -> dict[str, Any]:
        """The name as it is."""
        return {"name": _person(self.request).name}

    def form_valid(self, form: ProfileForm) -> HttpResponse:
        """Saved."""
        person_rename(user=_person(self.request), name=form.cleaned_data["name"])
        messages.success(self.request, _("Your name is saved."))
        return redirect("accounts:home")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Everything on the page."""
        person = _person(self.request)
        names = dict(IdentityProvider.objects.values_list("slug", "name"))
        factors = list(Authenticator.objects.filter(user=person).order_by("created_at"))
        codes = next((f.wrap() for f in factors if f.type == Authenticator.Type.RECOVERY_CODES), None)
        return super().get_context_data(**kwargs) | {
            "section": "account",
            "address_waiting": EmailAddress.objects.filter(user=person, verified=False).first(),
            "totp": next((f for f in factors if f.type == Authenticator.Type.TOTP), None),
            "codes_left": len(codes.get_unused_codes()) if isinstance(codes, RecoveryCodes) else None,
            "passkeys": [f for f in factors if f.type == Authenticator.Type.WEBAUTHN],
            "identities": [
                (identity, names.get(identity.provider, identity.provider))
                for identity in SocialAccount.objects.filter(user=person).order_by("date_joined")
            ],
            "devices": devices_of(person, session_key=self.request.session.session_key),
            "teams": shared_teams_of(caller_by_user(person)),
        }


class DeviceEndView(LoginRequiredMixin, View):
    """Sign out one device, or all others."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, device_id: int | None = None) -> HttpResponse:
        """What was ended is told on the account page."""
        person = _person(request)
        if device_id is None:
            ended = devices_end_others(user=person, session_key=request.session.session_key)
            messages.success(request, _("Signed out elsewhere: %(count)s.") % {"count": ended})
            return redirect("accounts:home")
        try:
            device_end(user=person, device_id=device_id)
            messages.success(request, _("That device is signed out."))
        except NotFound as exc:
            messages.warning(request, exc.message)
        return redirect("accounts:home")


class IdentityEndView(LoginRequiredMixin, View):
    """A provider no longer signs this person in."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, identity_id: int) -> HttpResponse:
        """Not for the only way in."""
        person = _person(request)
        identity = SocialAccount.objects.filter(user=person, pk=identity_id).first()
        if identity is None:
            messages.warning(request, _("That provider is not connected any more."))
            return redirect("accounts:home")
        try:
            validate_disconnect(request, identity)
        except forms.ValidationError:
            messages.warning(request, _("This is the only way you sign in. Set a password first."))
            return redirect("accounts:home")
        disconnect(request, identity)
        return redirect("accounts:home")


class BreakGlassView(LoginView):
    """The form for staff where everybody else comes through a provider, for the day when that does not answer."""

    template_name = "accounts/break_glass.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Only where there is something to get past."""
        if not settings.SSO_ONLY:
            return redirect("account_login")
        request.break_glass = True  # type: ignore[attr-defined]
        return super().dispatch(request, *args, **kwargs)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
