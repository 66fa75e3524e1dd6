"""A person's own export over REST."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.models import User
from app.accounts.selectors import Caller, user_of
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, listed, page
from app.api.serializers import refusals
from app.common.clock import now
from app.common.errors import NotAllowed
from app.ops.exports import export_begin, export_get, export_open
from app.ops.models import Export
from app.ops.tasks import export_make


class ExportOutput(serializers.Serializer[Any]):
    """An export; fetch `…/file/` once its status is ready."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=Export.State.values, source="state")
    size = serializers.IntegerField(allow_null=True, help_text="Bytes, once it is ready.")
    counts = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of each kind are in it."
    )
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(help_text="The file is kept until then.")

    class Meta:
        ref_name = "Export"


def _person(caller: Caller) -> User:
    """Whose export it is. Errors: NotAllowed for a key of a team, or one that does not hold every right to read."""
    user = user_of(caller)
    if user is None:
        raise NotAllowed("A key of a team acts for no person, so there is nothing of its own to export.")
    caller.require_scope("read")
    caller.require_scope("usage")
    return user


class ExportsView(APIView):
    """Everything of mine as one file: chats, documents, keys without secrets, usage."""

    @extend_schema(
        operation_id="exports_list", parameters=PARAMETERS,
        responses={200: listed(ExportOutput, "Export"), **refusals(403, 422)},
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        rows = Export.objects.filter(user=_person(caller_of(request)), expires_at__gt=now())
        return page(request, rows, lambda found: ExportOutput(found, many=True).data)

    @extend_schema(
        operation_id="exports_create", request=None, parameters=[PARAMETER],
        responses={202: ExportOutput, **refusals(403, 422)},
    )  # fmt: skip
    @idempotent()
    def post(self, request: Request) -> Response:
        with transaction.atomic():
            row = export_begin(user=_person(caller_of(request)))
            transaction.on_commit(lambda: export_make.delay(str(row.pk)))
        headers = {"Location": f"/api/v1/me/export/{row.pk}/"}
        return Response(ExportOutput(row).data, status=202, headers=headers)


class ExportView(APIView):
    """How far it is."""

    @extend_schema(operation_id="exports_get", responses={200: ExportOutput, **refusals(403, 404)})
    def get(self, request: Request, export_id: UUID) -> Response:
        user = _person(caller_of(request))
        return Response(ExportOutput(export_get(user_id=user.pk, export_id=export_id)).data)


class ExportFileView(APIView):
    """The file itself, a ZIP."""

    @extend_schema(
        operation_id="exports_file",
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **refusals(403, 404, 409)},
    )
    def get(self, request: Request, export_id: UUID) -> FileResponse:
        user = _person(caller_of(request))
        file = export_open(user_id=user.pk, export_id=export_id)
        return FileResponse(file, as_attachment=True, filename="tessera-export.zip")
