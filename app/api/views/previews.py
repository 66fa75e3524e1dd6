"""What a collection's sizes would make of a document, before they are set."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import viewer_of
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent_read
from app.api.serializers import ChunkingSerializer, body, refusals
from retrieval.previews import document_preview
from retrieval.selectors import document_get


class PreviewView(APIView):
    """Cut a document with other sizes, storing nothing."""

    class Input(serializers.Serializer[Any]):
        chunking = ChunkingSerializer(required=False)
        limit = serializers.IntegerField(min_value=1, max_value=200, default=20)
        password = serializers.CharField(
            required=False,
            allow_blank=True,
            default="",
            max_length=500,
            trim_whitespace=False,
            write_only=True,
            help_text="Of an encrypted file: it was forgotten once the file was read.",
        )

        class Meta:
            ref_name = "ChunkPreviewRequest"

    class Output(serializers.Serializer[Any]):
        class Chunk(serializers.Serializer[Any]):
            index = serializers.IntegerField()
            page = serializers.IntegerField()
            start = serializers.IntegerField()
            end = serializers.IntegerField()
            heading = serializers.CharField()
            text = serializers.CharField()
            tokens = serializers.IntegerField()

            class Meta:
                ref_name = "ChunkPreviewItem"

        total = serializers.IntegerField()
        chunks = Chunk(many=True)

        class Meta:
            ref_name = "ChunkPreview"

    @extend_schema(
        operation_id="documents_preview",
        request=Input,
        parameters=[PARAMETER],
        responses={200: Output, **refusals(403, 404, 409, 422)},
    )
    @idempotent_read
    def post(self, request: Request, document_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        wish = body(self.Input, request)
        document = document_get(viewer_of(caller), document_id)
        chunking = wish.get("chunking", document.collection.chunking)
        found = document_preview(
            document=document, chunking=chunking, limit=wish["limit"], password=wish["password"]
        )
        return Response(self.Output(found).data)
