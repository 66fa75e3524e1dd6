"""Health of this process and of what it needs; the documentation pages; the 404 of the API."""

from collections.abc import Mapping
from typing import Any

from csp.decorators import csp_update
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from app.api.authentication import ApiKeyAuthentication
from app.api.errors import error_body
from app.api.metrics import metrics_text
from app.api.schema import SCHEMA_SETTINGS
from app.catalog.readiness import BROKER_AWAY, parts_away
from app.chat.runs import draining
from app.common.errors import AppError, NotAllowed, NotFound, PartFailed, Restarting
from app.common.logs import request_id_var
from app.common.redis_door import Unavailable

_schema_is_current = False


def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. Touches nothing, so that a failing part never gets it restarted."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when this process can take work, naming parts behind it that do not answer; 503 naming the first it needs."""
    try:
        if draining():
            raise Restarting(retry_after=5)
        _check_database()
        away = _parts_away()
    except AppError as exc:
        return _refused(exc)
    return JsonResponse({"status": "degraded", "parts": away} if away else {"status": "ready"})


def _refused(exc: AppError) -> HttpResponse:
    status, body, headers = error_body(exc, request_id_var.get())
    return JsonResponse(body, status=status, headers=headers)


def _check_database() -> None:
    global _schema_is_current  # noqa: PLW0603 - a schema that was current once in this process stays so
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not _schema_is_current:
            executor = MigrationExecutor(connection)
            _schema_is_current = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (OperationalError, InterfaceError) as exc:
        raise PartFailed("database", "The database does not answer.", code="database_unavailable") from exc
    if not _schema_is_current:
        raise PartFailed(
            "migrations", "The database's schema is older than this program; run `manage.py migrate`."
        )


def _parts_away() -> list[Mapping[str, str]]:
    try:
        return parts_away()
    except Unavailable as exc:
        raise PartFailed("broker", BROKER_AWAY, code="broker_unavailable") from exc


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text, for loopback, a staff key or METRICS_TOKEN."""
    if not _may_scrape(request):
        return _refused(NotAllowed("Metrics are for this machine, a staff key, or METRICS_TOKEN as bearer."))
    return HttpResponse(metrics_text(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _may_scrape(request: HttpRequest) -> bool:
    # Behind a proxy on the same machine everybody seems local; the proxy says so with this header.
    is_local = (
        request.META.get("REMOTE_ADDR") in {"127.0.0.1", "::1"} and "X-Forwarded-For" not in request.headers
    )
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    if is_local or (
        settings.METRICS_TOKEN and constant_time_compare(bearer, settings.METRICS_TOKEN.encode())
    ):
        return True
    try:
        found = ApiKeyAuthentication().authenticate(Request(request))
    except AppError:
        return False
    return found is not None and found[1].is_staff


class NowhereView(APIView):
    """Any other path under the API: 404 in the API's own shape."""

    permission_classes = (AllowAny,)
    authentication_classes = ()
    schema = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.http_method_not_allowed = self.nowhere  # type: ignore[method-assign]
        return super().dispatch(request, *args, **kwargs)

    def nowhere(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """Errors: NotFound, always."""
        raise NotFound("There is no such route. The routes are listed at /api/v1/docs/.")


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, also for whoever has no key yet, or one that is over."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    custom_settings = dict(SCHEMA_SETTINGS)


# The page of the documentation sets styles from its script; no other page may.
@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI from our own static files."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    url_name = "schema"
