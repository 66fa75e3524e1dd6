"""What happens when somebody comes back from an identity provider."""

import logging
from typing import Any
from urllib.parse import urlsplit

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse

from app.accounts.door import OutboundSession
from app.accounts.groups import groups_apply
from app.accounts.inviting import account_exists
from app.accounts.models import IdentityProvider, User
from app.accounts.services import membership_set, personal_team_create
from app.common.crypto import decrypt

log = logging.getLogger(__name__)


class ProviderAdapter(DefaultSocialAccountAdapter):
    """Providers are rows that staff enter; an identity is an issuer and a subject."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """The active ones, in allauth's form."""
        rows = IdentityProvider.objects.filter(is_active=True).order_by("name")
        if provider and provider != "openid_connect":
            rows = rows.filter(slug=provider)
        if client_id:
            rows = rows.filter(client_id=client_id)
        return [_app(row) for row in rows]

    def get_requests_session(self) -> OutboundSession:
        """Through the checked door."""
        issuers = IdentityProvider.objects.filter(is_active=True).values_list("issuer", flat=True)
        return OutboundSession([urlsplit(issuer).netloc for issuer in issuers])

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Who may come in, and what their groups mean now. Nothing is matched by address."""
        row = IdentityProvider.objects.get(slug=sociallogin.account.provider)
        claims = _claims(sociallogin)
        email = str(sociallogin.user.email or claims.get("email") or "").lower()
        if claims and not _domain_fits(row, str(claims.get("email") or "").lower(), claims):
            self._refuse(
                request, row, "Your address is not of a domain that may come in here. Ask an administrator."
            )
        if sociallogin.is_existing:
            if sociallogin.user.is_active and sociallogin.state.get("process") != AuthProcess.CONNECT:
                groups_apply(provider=row, user=sociallogin.user, claims=claims)
            return
        if sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        if not email:
            self._refuse(
                request,
                row,
                f"{row.name} did not tell your e-mail address. Ask an administrator to release the claim `email`.",
            )
        if account_exists(email):
            self._refuse(
                request,
                row,
                f"There is an account with the address {email} already. Sign in as you did so far, then connect "
                f"{row.name} on your account page: that shows that both are you.",
            )

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        """Address and name; a name may be missing, and says nothing about who it is."""
        user: User = sociallogin.user
        user.email = str(data.get("email") or "").lower()
        parts = [data.get("first_name"), data.get("last_name")]
        user.name = str(data.get("name") or " ".join(str(part) for part in parts if part))[:200]
        return user

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """A new person with what everybody has, in the provider's default team and in those of their groups."""
        user: User = super().save_user(request, sociallogin, form)
        row = IdentityProvider.objects.select_related("default_team").get(slug=sociallogin.account.provider)
        personal_team_create(user=user)
        if row.default_team is not None:
            membership_set(team=row.default_team, user=user, role=row.default_role)
            user.default_team = row.default_team
            user.save(update_fields=["default_team"])
        groups_apply(provider=row, user=user, claims=_claims(sociallogin))
        user.refresh_from_db()
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Whoever a provider lets through has an account."""
        return True

    def is_email_verified(self, provider: Any, email: str) -> bool:
        """A provider that staff trust with a domain vouches for the addresses in it."""
        row = IdentityProvider.objects.get(slug=provider.app.provider_id)
        return bool(row.domains) and _domain_fits(row, email.lower(), {})

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        """Back to the account."""
        return reverse("accounts:home")

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """Written to the log, where whoever runs the installation finds the reason."""
        log.warning("Sign-in through %s failed: %s", provider.app.provider_id, exception or error)

    def _refuse(self, request: HttpRequest, row: IdentityProvider, why: str) -> None:
        log.info("Sign-in through %s refused.", row.slug)
        found = {"provider": row, "why": why}
        raise ImmediateHttpResponse(render(request, "accounts/provider_refused.html", found, status=403))


def _app(row: IdentityProvider) -> SocialApp:
    scope = ["openid", "profile", "email", *row.scopes.split()]
    return SocialApp(
        provider="openid_connect",
        provider_id=row.slug,
        name=row.name,
        client_id=row.client_id,
        secret=decrypt(row.secret),
        settings={"server_url": row.issuer.rstrip("/"), "scope": scope},
    )


def _claims(sociallogin: SocialLogin) -> dict[str, Any]:
    """The claims of this sign-in; none for a login that was put aside and taken up again."""
    found: dict[str, Any] = getattr(sociallogin, "claims", {})
    return found


def _domain_fits(row: IdentityProvider, email: str, claims: dict[str, Any]) -> bool:
    allowed = {domain.lower().lstrip("@") for domain in row.domains.split()}
    # A provider that says an address is not confirmed vouches for no domain.
    return not allowed or (email.rpartition("@")[2] in allowed and claims.get("email_verified") is not False)
