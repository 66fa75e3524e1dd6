"""Files that are attached to a conversation: read by the machine, and private to it."""

from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import principal_of
from app.api.authentication import caller_of
from app.api.document_shapes import (
    AcceptedOutput,
    DocumentOutput,
    PasswordInput,
    UploadInput,
    document_accepted,
)
from app.api.documents import documents_shown, upload_check, uploaded
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import listed, whole
from app.api.serializers import given, refusals
from app.billing.uploads import upload_admit
from app.chat.attaching import MOST_ATTACHMENTS, attachment_documents, attachments_collection
from app.chat.selectors import conversation_get
from app.common.errors import Conflict
from retrieval.models import Document
from retrieval.services import document_create


class AttachmentsView(APIView):
    """Files of a conversation. Each is a document: its status, its text and its removal are under `documents/`."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="attachments_list",
        responses={200: listed(DocumentOutput, "Document"), **refusals(403, 404)},
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        rows = attachment_documents(conversation_get(caller, conversation_id))
        return whole(DocumentOutput(documents_shown(rows), many=True).data)

    @extend_schema(
        operation_id="attachments_create",
        request={"multipart/form-data": UploadInput},
        parameters=[PARAMETER],
        responses={
            200: AcceptedOutput,
            202: AcceptedOutput,
            **refusals(400, 402, 403, 404, 409, 413, 415, 422),
        },
        description="Kept and queued in the conversation's own collection, which nobody else may read. Name its id in "
        "`attachments` of a turn once it is `ready`; the pre-count says whether it goes whole. 200: these very bytes "
        "are attached already.",
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        upload_check(request)
        return self.create(request, conversation_id)

    @idempotent()
    @transaction.atomic
    def create(self, request: Request, conversation_id: UUID) -> Response:
        """The upload once its size is known to be acceptable."""
        caller = caller_of(request)
        caller.require_scope("chat")
        conversation = conversation_get(caller, conversation_id)
        caller.require_spender(conversation.team_id)
        collection = attachments_collection(caller=caller, conversation=conversation)
        if Document.objects.filter(collection=collection).count() >= MOST_ATTACHMENTS:
            raise Conflict(
                f"This conversation has {MOST_ATTACHMENTS} files, which is the most. Remove one, or put them into a "
                "collection and search that."
            )
        name, content = uploaded(request)
        upload_admit(caller=caller, collection=collection, content=content)
        row, created = document_create(
            collection=collection,
            name=name,
            content=content,
            created_by=principal_of(caller),
            password=given(PasswordInput, request.data)["password"],
        )
        return document_accepted(row, status=202 if created else 200)
