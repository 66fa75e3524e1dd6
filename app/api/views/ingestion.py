"""What can be asked of a document's ingestion: again, anew, no more."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.document_shapes import (
    AcceptedOutput,
    DocumentOutput,
    PasswordInput,
    document_accepted,
    document_shown,
)
from app.api.documents import document_to_change
from app.api.idempotency import PARAMETER, idempotent
from app.api.serializers import given, refusals
from retrieval.services import document_cancel, document_reread, document_retry


class DocumentRetryView(APIView):
    """Try a failed or cancelled document again."""

    @extend_schema(
        operation_id="documents_retry",
        request=PasswordInput,
        parameters=[PARAMETER],
        responses={202: AcceptedOutput, **refusals(403, 404, 409, 422)},
    )
    @idempotent()
    def post(self, request: Request, document_id: UUID) -> Response:
        document = document_to_change(request, document_id)
        password = given(PasswordInput, request.data)["password"]
        return document_accepted(document_retry(document=document, password=password), status=202)


class DocumentRereadView(APIView):
    """Read a document anew, with today's reader and the collection's chunk sizes."""

    @extend_schema(
        operation_id="documents_reread",
        request=PasswordInput,
        parameters=[PARAMETER],
        responses={202: AcceptedOutput, **refusals(403, 404, 409, 422)},
        description="What serves goes on serving until it is read.",
    )
    @idempotent()
    def post(self, request: Request, document_id: UUID) -> Response:
        document = document_to_change(request, document_id)
        password = given(PasswordInput, request.data)["password"]
        return document_accepted(document_reread(document=document, password=password), status=202)


class DocumentCancelView(APIView):
    """Stop an ingestion that is queued or running."""

    @extend_schema(
        operation_id="documents_cancel",
        request=None,
        parameters=[PARAMETER],
        responses={200: DocumentOutput, **refusals(403, 404, 409)},
    )
    @idempotent()
    def post(self, request: Request, document_id: UUID) -> Response:
        document = document_to_change(request, document_id)
        return Response(document_shown(document_cancel(document=document)))
