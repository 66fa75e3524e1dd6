"""Documents: uploaded, read by the machine, searched."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import principal_of, viewer_of
from app.api.authentication import caller_of
from app.api.document_shapes import (
    AcceptedOutput,
    AddressInput,
    DocumentOutput,
    PasswordInput,
    UploadInput,
    document_accepted,
    document_shown,
)
from app.api.documents import RECEIPT_HEADER, document_to_change, documents_shown, upload_check, uploaded
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, listed, page
from app.api.serializers import body, given, refusals
from app.api.views.pages import picture_address
from app.billing.uploads import upload_admit
from retrieval.describing import document_describe
from retrieval.models import Status
from retrieval.removal import document_remove
from retrieval.selectors import (
    collection_writable,
    document_get,
    document_pages,
    documents_list,
)
from retrieval.services import (
    document_create,
    document_fetch,
    document_replace,
)


class DocumentsView(APIView):
    """Documents of a collection."""

    parser_classes = (MultiPartParser, JSONParser)

    @extend_schema(
        operation_id="documents_list",
        parameters=[
            *PARAMETERS,
            OpenApiParameter("tag", str, many=True, description="Only with this tag; repeat for more."),
            OpenApiParameter("name", str, description="Only with this in the name or title."),
            OpenApiParameter(
                "status",
                str,
                enum=Status.values,
                many=True,
                description="Only in this status; repeat for more.",
            ),
        ],
        responses={200: listed(DocumentOutput, "Document"), **refusals(403, 404, 422)},
    )
    def get(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        rows = documents_list(viewer_of(caller), collection_id)
        if tags := request.query_params.getlist("tag"):
            rows = rows.filter(*(Q(metadata__tags__contains=[tag]) for tag in tags))
        if name := request.query_params.get("name", "").replace("\0", ""):
            rows = rows.filter(Q(name__icontains=name) | Q(title__icontains=name))
        if status := request.query_params.getlist("status"):
            rows = rows.filter(status__in=status)
        return page(request, rows, lambda found: DocumentOutput(documents_shown(found), many=True).data)

    @extend_schema(
        operation_id="documents_create",
        request={"multipart/form-data": UploadInput, "application/json": AddressInput},
        parameters=[PARAMETER],
        responses={200: AcceptedOutput, 202: AcceptedOutput, **refusals(400, 402, 403, 404, 413, 415, 422)},
        description="A file, or the address of one. 202: kept and queued. 200: this collection has these very bytes, "
        "or this address in line, already; the document it is.",
    )
    def post(self, request: Request, collection_id: UUID) -> Response:
        upload_check(request)
        return self.create(request, collection_id)

    @idempotent()
    @transaction.atomic
    def create(self, request: Request, collection_id: UUID) -> Response:
        """The upload once its size is known to be acceptable."""
        caller = caller_of(request)
        caller.require_scope("write")
        collection = collection_writable(viewer_of(caller), collection_id)
        if "file" not in request.data and "url" in request.data:
            url = given(AddressInput, request.data)["url"].strip()
            row, created = document_fetch(collection=collection, url=url, created_by=principal_of(caller))
            return document_accepted(row, status=202 if created else 200)
        name, content = uploaded(request)
        password = given(PasswordInput, request.data)["password"]
        # Counted and kept in one transaction, so that two uploads cannot both take the last room.
        upload_admit(caller=caller, collection=collection, content=content)
        row, created = document_create(
            collection=collection,
            name=name,
            content=content,
            created_by=principal_of(caller),
            password=password,
        )
        return document_accepted(row, status=202 if created else 200)


class DocumentView(APIView):
    """One document."""

    @extend_schema(operation_id="documents_get", responses={200: DocumentOutput, **refusals(403, 404)})
    def get(self, request: Request, document_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(document_shown(document_get(viewer_of(caller), document_id)))

    class Changes(serializers.Serializer[Any]):
        tags = serializers.ListField(child=serializers.CharField(), required=False)
        metadata = serializers.DictField(
            required=False, help_text="Fields by which searches can be narrowed; replaces those set before."
        )

        class Meta:
            ref_name = "DocumentChanges"

    @extend_schema(
        operation_id="documents_update",
        request=Changes,
        responses={200: DocumentOutput, **refusals(400, 403, 404, 422)},
    )
    def patch(self, request: Request, document_id: UUID) -> Response:
        document = document_to_change(request, document_id)
        return Response(document_shown(document_describe(document=document, **body(self.Changes, request))))

    @extend_schema(
        operation_id="documents_delete",
        responses={204: None, **refusals(403, 404)},
        description="Out of search, with its original. Answers keep the passages that were sent. The header "
        "`X-Tessera-Receipt` names the receipt.",
    )
    def delete(self, request: Request, document_id: UUID) -> Response:
        document = document_to_change(request, document_id)
        receipt = document_remove(document=document, done_by=principal_of(caller_of(request)))
        return Response(status=204, headers={RECEIPT_HEADER: receipt.number})


class DocumentFileView(APIView):
    """A new version of a document."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="documents_replace",
        request={"multipart/form-data": UploadInput},
        responses={
            200: AcceptedOutput,
            202: AcceptedOutput,
            **refusals(400, 402, 403, 404, 409, 413, 415, 422),
        },
        description="The version before serves until the new one is ready. 200: the bytes are the same.",
    )
    @transaction.atomic
    def put(self, request: Request, document_id: UUID) -> Response:
        upload_check(request)
        document = document_to_change(request, document_id)
        name, content = uploaded(request)
        upload_admit(
            caller=caller_of(request), collection=document.collection, content=content, replaces=document.size
        )
        password = given(PasswordInput, request.data)["password"]
        row, changed = document_replace(document=document, content=content, name=name, password=password)
        return document_accepted(row, status=202 if changed else 200)


class DocumentTextView(APIView):
    """What the machine read of the version that serves, by page, the first page first."""

    class Query(serializers.Serializer[Any]):
        limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
        cursor = serializers.IntegerField(min_value=0, default=0)

    class Output(serializers.Serializer[Any]):
        number = serializers.IntegerField()
        text = serializers.CharField()
        start = serializers.IntegerField(help_text="Offset of the first character in the whole text.")
        picture = serializers.CharField(
            allow_null=True, help_text="Address of the page as WebP; null: not shown."
        )
        aspect = serializers.FloatField(allow_null=True, help_text="Width by height of the picture.")

        class Meta:
            ref_name = "DocumentPage"

    @extend_schema(
        operation_id="documents_text",
        parameters=[
            *PARAMETERS[:1],
            OpenApiParameter("cursor", str, description="`next` of the page before."),
        ],
        responses={200: listed(Output, "DocumentPage"), **refusals(403, 404, 422)},
    )
    def get(self, request: Request, document_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        query = given(self.Query, request.query_params.dict())
        document = document_get(viewer_of(caller), document_id)
        pages = document_pages(document, after=query["cursor"], limit=query["limit"] + 1)
        part = pages[: query["limit"]]
        following = str(part[-1].number) if len(pages) > len(part) else None
        items = [asdict(p) | {"picture": picture_address(document.pk, p.number, p.aspect)} for p in part]
        return Response({"items": self.Output(items, many=True).data, "next": following})
