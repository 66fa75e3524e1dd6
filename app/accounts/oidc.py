"""OpenID Connect, stricter than allauth's: the issuer is the one entered, each ID token's signature is checked."""

from typing import Any

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import Http404, HttpRequest, HttpResponse

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
_NEEDED = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")


class HouseAdapter(OpenIDConnectOAuth2Adapter):
    """The code flow with one provider."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """What the provider says of itself. Errors: OAuth2Error when it is not the issuer that was entered."""
        found: dict[str, Any] = super().openid_config
        lacking = [name for name in _NEEDED if not isinstance(found.get(name), str)]
        if lacking:
            raise OAuth2Error(f"The provider's configuration lacks {', '.join(lacking)}.")
        entered = self.get_provider().app.settings["server_url"]
        if found["issuer"].rstrip("/") != entered:
            raise OAuth2Error(f"{entered} calls itself {found['issuer']}: that is another issuer.")
        return found

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        """The identity in the ID token, with what else the provider tells about the same subject."""
        provider = self.get_provider()
        claims = self.claims_in(app, str(kwargs["response"].get("id_token") or ""))
        if isinstance(self.openid_config.get("userinfo_endpoint"), str):
            told = self._fetch_user_info(token.token)
            if told.get("sub") != claims["sub"]:
                raise OAuth2Error("The provider's user info is about another subject than its ID token.")
            claims = {**told, **claims}
        return provider.sociallogin_from_response(request, claims)

    def claims_in(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """The claims of an ID token made for us. Errors: OAuth2Error."""
        config = self.openid_config
        with get_adapter().get_requests_session() as session:
            reply = session.get(config["jwks_uri"])
            reply.raise_for_status()
        try:
            kid = jwt.get_unverified_header(id_token).get("kid")
            keys = jwt.PyJWKSet.from_dict(reply.json()).keys
            fitting = [key for key in keys if kid is None or key.key_id == kid]
            if len(fitting) != 1:
                raise OAuth2Error("The ID token names no key that the provider publishes.")
            claims: dict[str, Any] = jwt.decode(
                id_token,
                fitting[0],
                algorithms=list(ALGORITHMS),
                audience=app.client_id,
                issuer=config["issuer"],
                leeway=60,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as exc:
            raise OAuth2Error(f"The ID token does not hold: {exc}") from exc
        return claims


class HouseProvider(OpenIDConnectProvider):
    """A provider as staff entered it. Claims go along with the login and are not stored."""

    package = "allauth.socialaccount.providers.openid_connect"
    oauth2_adapter_class = HouseAdapter

    def extract_uid(self, data: dict[str, Any]) -> str:
        """The subject, as the issuer wrote it."""
        return str(data["sub"])

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """What is kept: who said it."""
        return {"iss": data["iss"]}

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> SocialLogin:
        """The login, with its claims. Errors: OAuth2Error for a subject too long to keep."""
        if not 0 < len(str(response["sub"])) <= 190:
            raise OAuth2Error("The provider's subject is longer than 190 characters.")
        login = super().sociallogin_from_response(request, response)
        login.claims = response
        return login

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        """Not more than staff entered, whatever the address asks for."""
        return list(self.get_scope())

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, str]:
        """Likewise."""
        return dict(self.get_auth_params())

    def verify_token(self, request: HttpRequest, token: dict[str, Any]) -> SocialLogin:
        """An ID token that an app got from the provider itself. Errors: ValidationError."""
        adapter = self.get_oauth2_adapter(request)
        try:
            return self.sociallogin_from_response(
                request, adapter.claims_in(self.app, str(token.get("id_token") or ""))
            )
        except OAuth2Error as exc:
            raise get_adapter().validation_error("invalid_token") from exc


def sign_in(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Off to the provider."""
    return _run(OAuth2LoginView, request, provider_id)


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from it."""
    return _run(OAuth2CallbackView, request, provider_id)


def _run(view: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    adapter = HouseAdapter(request, provider_id)
    try:
        provider = adapter.get_provider()
    except SocialApp.DoesNotExist as exc:
        raise Http404 from exc
    try:
        answer: HttpResponse = view.adapter_view(adapter)(request)
    except OAuth2Error as exc:
        answer = render_authentication_error(request, provider, exception=exc)
    return answer
