"""The language of the pages: what the person chose, else what the browser asks for. The API speaks English."""

from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views import View

from app.accounts.models import User

_ENGLISH = ("/api/", "/v1/", "/static/", "/healthz", "/readyz", "/metrics")


def in_own_language(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware after authentication: every page is built in the reader's language."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_ENGLISH):
            return get_response(request)
        own = getattr(request.user, "language", "")
        with translation.override(own or translation.get_language_from_request(request)):
            response = get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language() or "en")
        patch_vary_headers(response, ("Accept-Language",))
        return response

    return middleware


class LanguageView(LoginRequiredMixin, View):
    """POST `language`: one of the installation's, or empty for what the browser asks for."""

    def post(self, request: HttpRequest) -> HttpResponse:
        wanted = request.POST.get("language", "")
        if not wanted or wanted in dict(settings.LANGUAGES):
            user = cast(User, request.user)
            user.language = wanted
            user.save(update_fields=["language"])
        return redirect("accounts:home")
