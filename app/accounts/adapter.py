"""How allauth behaves here: whom it lets in, which words it uses, and that a link is mailed only where mail exists."""

import logging
import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.account.internal.stagekit import clear_login
from allauth.core import context as allauth_context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ImproperlyConfigured
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from app.accounts.models import IdentityProvider, User
from app.accounts.selectors import account_of_email
from app.accounts.services import personal_team_create
from app.audit.services import Verb, audit
from app.common.crypto import decrypt, encrypt

log = logging.getLogger(__name__)

WORDS = {
    "email_password_mismatch": gettext_lazy(
        "This e-mail and password do not belong together. Check both; capital letters count in the password."
    ),
    "too_many_login_attempts": gettext_lazy(
        "Too many attempts. To keep guessers out, wait five minutes and try again; nobody has to do anything for you."
    ),
    "incorrect_password": gettext_lazy("This is not your password. Check capital letters and try again."),
    "incorrect_code": gettext_lazy(
        "This code does not fit. Codes change every 30 seconds: take the one shown now, or a recovery code "
        "that was not used yet."
    ),
    "rate_limited": gettext_lazy("Too many attempts. Wait a minute and try again."),
    "email_taken": gettext_lazy(
        "There is already an account with this address. Sign in, or have a new password made."
    ),
}


class AccountAdapter(DefaultAccountAdapter):
    """allauth's decisions about accounts, in this house's words."""

    error_messages = DefaultAccountAdapter.error_messages | WORDS

    def get_client_ip(self, request: HttpRequest) -> str:
        """Through as many proxies as TRUSTED_PROXIES says; a request that went through fewer counts by its socket."""
        try:
            return str(super().get_client_ip(request))
        except ImproperlyConfigured:
            log.warning("X-Forwarded-For names fewer proxies than TRUSTED_PROXIES: is that setting right?")
        return request.META.get("REMOTE_ADDR") or "0.0.0.0"  # noqa: S104 - an address to count by, not to listen on

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Mail, where a server for it is named. Else staff find the link on the person's page."""
        if mail_is_sent():
            super().send_mail(template_prefix, email, context)

    def save_user(self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True) -> User:
        """A person who signed up has a personal team, as everybody has."""
        user.name = str(form.cleaned_data.get("name", ""))
        super().save_user(request, user, form, commit=commit)
        if commit:
            personal_team_create(user=user)
        return user

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Written down with the account that was tried where there is one; never what was typed."""
        tried = account_of_email(str(credentials.get("email", "")).lower())
        audit(Verb.SIGN_IN, object_kind="person", object_id=tried or "", refused=True)

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Where people come through a provider, nothing else lets them in but the one form for staff."""
        answer: HttpResponse | None = super().pre_login(request, user, **kwargs)
        if answer is not None or not settings.SSO_ONLY:
            return answer
        ways = get_authentication_records(request, user)
        if ways and ways[-1]["method"] == "socialaccount":
            return None
        if getattr(request, "break_glass", False) and user.is_staff:
            log.warning("A member of staff signs in past the provider.")
            audit(Verb.SIGN_IN, object_kind="person", object_id=user.account_id, reason="past the provider")
            return None
        clear_login(request)
        messages.error(request, _("People sign in through the provider here. Choose it below."))
        return redirect("account_login")

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Not beside a provider that everybody comes through."""
        return bool(super().is_open_for_signup(request)) and not settings.SSO_ONLY

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Whoever has no password and no factor could show nothing; a fresh sign-in at the provider stands for it."""
        request = allauth_context.request
        if get_reauthentication_flows(request.user):
            return bool(super().is_reauthentication_required(app=app, **kwargs))
        ways = get_authentication_records(request, request.user)
        fresh = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
        return not any(way["method"] == "socialaccount" and way["at"] > fresh for way in ways)

    def get_reauthentication_methods(self, user: User) -> list[dict[str, str]]:
        """Password and second factors; whoever has neither goes to the provider once more."""
        found: list[dict[str, str]] = super().get_reauthentication_methods(user)
        if found or not user.is_authenticated:
            return found
        slugs = SocialAccount.objects.filter(user=user).values_list("provider", flat=True)
        return [
            {
                "id": "provider",
                "description": _("Sign in with %(name)s again") % {"name": row.name},
                "url": reverse("accounts:provider", kwargs={"provider_id": row.slug}),
            }
            for row in IdentityProvider.objects.filter(is_active=True, slug__in=list(slugs))
        ]

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Signed in, whichever way, and written down."""
        answer: HttpResponse = super().post_login(request, user, **kwargs)
        audit(Verb.SIGN_IN, object_kind="person", object_id=user.account_id)
        return answer

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """Back to the account."""
        return reverse("accounts:home")


class SecondFactorAdapter(DefaultMFAAdapter):
    """Seeds of second factors are encrypted, as servers' keys are."""

    error_messages = DefaultMFAAdapter.error_messages | {"incorrect_code": WORDS["incorrect_code"]}

    def encrypt(self, text: str) -> str:
        """Under FIELD_KEYS."""
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        """What `encrypt` made."""
        return decrypt(encrypted_text)


def mail_is_sent() -> bool:
    """Whether this installation sends mail."""
    return bool(settings.EMAIL_HOST)
