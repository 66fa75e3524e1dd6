"""Collections: what is searched, shared and paid for together."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import principal_of, viewer_of
from app.api.authentication import caller_of
from app.api.collections import collection_grant, collection_make, collections_shown, grants_shown
from app.api.documents import RECEIPT_HEADER
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, listed, page, whole
from app.api.serializers import ChunkingSerializer, TeamRefSerializer, body, refusals
from retrieval.collections import collection_update
from retrieval.models import LEVELS
from retrieval.removal import collection_remove
from retrieval.selectors import collection_get, collection_manageable, collections_readable, grants_list
from retrieval.types import VERBS


class CollectionOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    team = TeamRefSerializer(help_text="Owns it and pays for ingestion.")
    level = serializers.ChoiceField(choices=LEVELS)
    kind = serializers.ChoiceField(choices=["library", "conversation"])
    document_count = serializers.IntegerField()
    chunking = ChunkingSerializer(help_text="How its documents are cut.")
    verbs = serializers.ListField(
        child=serializers.CharField(), help_text="What I may do: read, write, manage."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Collection"


class CollectionsView(APIView):
    """Collections I may read."""

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=200)
        description = serializers.CharField(max_length=2000, allow_blank=True, default="")
        level = serializers.ChoiceField(choices=LEVELS, default="internal")
        team = serializers.UUIDField(required=False, help_text="The owner; default: my default team.")

        class Meta:
            ref_name = "CollectionCreate"

    @extend_schema(
        operation_id="collections_list",
        parameters=PARAMETERS,
        responses={200: listed(CollectionOutput, "Collection"), **refusals(403, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        rows = collections_readable(viewer_of(caller)).filter(kind="library")
        return page(
            request, rows, lambda found: CollectionOutput(collections_shown(caller, found), many=True).data
        )

    @extend_schema(
        operation_id="collections_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: CollectionOutput, **refusals(400, 403, 404, 409, 422)},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = collection_make(caller=caller, **body(self.Input, request))
        location = {"Location": f"/api/v1/collections/{row.pk}/"}
        return Response(
            CollectionOutput(collections_shown(caller, [row])[0]).data, status=201, headers=location
        )


class CollectionView(APIView):
    """One collection."""

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=200, required=False)
        description = serializers.CharField(max_length=2000, allow_blank=True, required=False)
        level = serializers.ChoiceField(choices=LEVELS, required=False)
        chunking = ChunkingSerializer(required=False)

        class Meta:
            ref_name = "CollectionPatch"

    @extend_schema(operation_id="collections_get", responses={200: CollectionOutput, **refusals(403, 404)})
    def get(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        row = collection_get(viewer_of(caller), collection_id)
        return Response(CollectionOutput(collections_shown(caller, [row])[0]).data)

    @extend_schema(
        operation_id="collections_update",
        request=Input,
        responses={200: CollectionOutput, **refusals(400, 403, 404, 409, 422)},
    )
    def patch(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = collection_manageable(viewer_of(caller), collection_id)
        row = collection_update(collection=row, **body(self.Input, request))
        return Response(CollectionOutput(collections_shown(caller, [row])[0]).data)

    @extend_schema(operation_id="collections_delete", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = collection_manageable(viewer_of(caller), collection_id)
        receipt = collection_remove(collection=row, done_by=principal_of(caller))
        return Response(status=204, headers={RECEIPT_HEADER: receipt.number})


class GrantsView(APIView):
    """Who may use a collection, for those who manage it."""

    class Output(serializers.Serializer[Any]):
        principal = serializers.CharField(help_text="user:<id> or team:<id>")
        name = serializers.CharField(allow_null=True, help_text="Null: no longer here.")
        verb = serializers.ChoiceField(choices=VERBS, help_text="A stronger one includes the weaker.")
        created_at = serializers.DateTimeField()

        class Meta:
            ref_name = "Grant"

    class Input(serializers.Serializer[Any]):
        principal = serializers.CharField(max_length=64, required=False)
        email = serializers.EmailField(
            max_length=254, required=False, help_text="In place of `principal`: a person in one of my teams."
        )
        verb = serializers.ChoiceField(choices=VERBS, allow_null=True, help_text="Null takes the grant away.")

        class Meta:
            ref_name = "GrantPut"

        def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
            if ("principal" in attrs) == ("email" in attrs):
                raise serializers.ValidationError({"principal": "Give either `principal` or `email`."})
            return attrs

    @extend_schema(operation_id="grants_list", responses={200: listed(Output, "Grant"), **refusals(403, 404)})
    def get(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return whole(self.Output(grants_shown(grants_list(viewer_of(caller), collection_id)), many=True).data)

    @extend_schema(
        operation_id="grants_put",
        request=Input,
        responses={200: listed(Output, "Grant"), **refusals(400, 403, 404, 409, 422)},
    )
    def put(self, request: Request, collection_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = collection_manageable(viewer_of(caller), collection_id)
        collection_grant(caller=caller, collection=row, **body(self.Input, request))
        return whole(self.Output(grants_shown(grants_list(viewer_of(caller), collection_id)), many=True).data)
