"""Passages for a question, without a model."""

from typing import Any

from asgiref.sync import async_to_sync
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import team_levels, viewer_of
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent_read
from app.api.paging import listed, whole
from app.api.serializers import body, refusals
from app.billing.types import Payer
from app.catalog.selectors import highest_level
from retrieval.search import search
from retrieval.selectors import searched_owners
from retrieval.types import Filters


class FiltersInput(serializers.Serializer[Any]):
    """What the documents must be; all that are given must hold."""

    documents = serializers.ListField(child=serializers.UUIDField(), max_length=1000, required=False)
    tags = serializers.ListField(
        child=serializers.CharField(), max_length=100, required=False, help_text="Any of these."
    )
    languages = serializers.ListField(
        child=serializers.CharField(max_length=8),
        max_length=50,
        required=False,
        help_text="ISO 639-1; any of these.",
    )
    since = serializers.DateTimeField(required=False, help_text="Put in then or later.")
    until = serializers.DateTimeField(required=False, help_text="Put in before then.")
    metadata = serializers.DictField(
        required=False, help_text="Fields that the document's metadata must hold, nested as they are."
    )

    class Meta:
        ref_name = "SearchFilters"


class SearchView(APIView):
    """The best passages I may read, best first. The query's embedding is booked to my paying team."""

    class Input(serializers.Serializer[Any]):
        query = serializers.CharField(max_length=8000)
        collections = serializers.ListField(
            child=serializers.UUIDField(),
            max_length=100,
            allow_null=True,
            default=None,
            help_text="Absent: all I may read. []: none.",
        )
        limit = serializers.IntegerField(min_value=1, max_value=50, default=10)
        filters = FiltersInput(required=False)

        class Meta:
            ref_name = "Search"

    class Output(serializers.Serializer[Any]):
        passage_id = serializers.UUIDField(source="id")
        document_id = serializers.UUIDField()
        document_version = serializers.IntegerField()
        collection_id = serializers.UUIDField()
        title = serializers.CharField()
        page = serializers.IntegerField(allow_null=True)
        page_end = serializers.IntegerField(
            allow_null=True, help_text="Where it reaches over more than one page."
        )
        heading = serializers.CharField()
        start = serializers.IntegerField(help_text="Offset in characters in the whole text.")
        end = serializers.IntegerField()
        text = serializers.CharField()
        sha256 = serializers.CharField()
        score = serializers.FloatField(
            help_text="0 to 1, higher is better; comparable within one search only."
        )
        warnings = serializers.ListField(child=serializers.CharField())

        class Meta:
            ref_name = "Passage"

    @extend_schema(
        operation_id="search",
        request=Input,
        parameters=[PARAMETER],
        responses={200: listed(Output, "Passage"), **refusals(400, 402, 403, 404, 422, 503)},
    )
    @idempotent_read
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        asked = body(self.Input, request)
        payer = Payer(
            team_id=caller.default_team_id,
            account_id=caller.account_id,
            user_id=caller.user_id,
            key_id=caller.key_id,
        )
        viewer = viewer_of(caller)
        searched = searched_owners(viewer, asked["collections"])
        teams = team_levels({caller.default_team_id, *(team for _, team in searched)})
        found = async_to_sync(search)(
            query=asked["query"],
            viewer=viewer,
            collection_ids=asked["collections"],
            limit=asked["limit"],
            payer={
                "payer": payer,
                "level": highest_level(*teams, *(level for level, _ in searched)),
            },
            filters=Filters(**asked["filters"]) if "filters" in asked else None,
        )
        return whole(self.Output(found, many=True).data)
