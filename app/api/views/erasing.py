"""Erasing for good, and the receipts of what was taken away."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import principal_of, viewer_of
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.serializers import refusals
from app.api.services import idempotency_erase
from app.chat.erasing import collection_erase, document_erase, removed_erase
from retrieval.errors import NotFound
from retrieval.models import Receipt
from retrieval.selectors import (
    collection_manageable,
    document_manageable,
    receipt_get,
    receipt_of_removed,
)


class ReceiptOutput(serializers.Serializer[Any]):
    number = serializers.CharField()
    kind = serializers.ChoiceField(choices=Receipt.Kind.values)
    created_at = serializers.DateTimeField()
    collection_id = serializers.UUIDField()
    document_id = serializers.UUIDField(allow_null=True, help_text="Null when a whole collection went.")
    hashes = serializers.ListField(child=serializers.CharField(), help_text="SHA-256 of the originals.")
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="What is gone: documents, pages, chunks, vectors, drafts, originals, and passages once sent.",
    )

    class Meta:
        ref_name = "Receipt"


class DocumentEraseView(APIView):
    """Erase a document everywhere."""

    @extend_schema(
        operation_id="documents_erase",
        request=None,
        parameters=[PARAMETER],
        responses={200: ReceiptOutput, **refusals(403, 404)},
        description="Removes it and blanks every passage of it that was ever sent. Hash, date and receipt stay. Also "
        "for a document that was removed before.",
    )
    @idempotent()
    def post(self, request: Request, document_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        viewer, done_by = viewer_of(caller), principal_of(caller)
        try:
            receipt = document_erase(document=document_manageable(viewer, document_id), done_by=done_by)
        except NotFound:
            receipt = removed_erase(removed=receipt_of_removed(viewer, document_id), done_by=done_by)
        idempotency_erase(document_id)
        return Response(ReceiptOutput(receipt).data)


class CollectionEraseView(APIView):
    """Erase a collection everywhere."""

    @extend_schema(
        operation_id="collections_erase",
        request=None,
        parameters=[PARAMETER],
        responses={200: ReceiptOutput, **refusals(403, 404)},
        description="Removes it with its documents and blanks every passage of them that was ever sent.",
    )
    @idempotent()
    def post(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = collection_manageable(viewer_of(caller), collection_id)
        receipt = collection_erase(collection=row, done_by=principal_of(caller))
        idempotency_erase(collection_id)
        return Response(ReceiptOutput(receipt).data)


class ReceiptView(APIView):
    """What a removal or an erasure took away."""

    @extend_schema(operation_id="receipts_get", responses={200: ReceiptOutput, **refusals(403, 404)})
    def get(self, request: Request, number: str) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(ReceiptOutput(receipt_get(viewer_of(caller), number)).data)
