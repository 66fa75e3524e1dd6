"""Pages of a document: as a picture, and where a stretch of its text stands on it."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseNotModified
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import viewer_of
from app.api.authentication import caller_of
from app.api.serializers import given, refusals
from retrieval.models import Document
from retrieval.pictures import page_picture, picture_tag
from retrieval.places import Place, page_place
from retrieval.selectors import document_get

_WEBP = "image/webp"


class PlaceOutput(serializers.Serializer[Any]):
    """A page that can be shown, and where the passage stands on it."""

    page = serializers.IntegerField()
    picture = serializers.CharField(
        allow_null=True, help_text="Address of the page as WebP; null where the format has no pages to show."
    )
    aspect = serializers.FloatField(allow_null=True, help_text="Width by height of the picture.")
    boxes = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=4, max_length=4),
        help_text="Left, top, right, bottom of each line, as fractions of the page from its upper left corner.",
    )

    class Meta:
        ref_name = "PagePlace"


def picture_address(document_id: UUID, number: int, aspect: float | None) -> str | None:
    """Where the picture of a page is fetched; None where there is none."""
    return None if aspect is None else f"/api/v1/documents/{document_id}/pages/{number}.webp"


def place_shown(place: Place) -> dict[str, Any]:
    """A place as the API gives it."""
    address = picture_address(place.document_id, place.page, place.aspect)
    return {"page": place.page, "picture": address, "aspect": place.aspect, "boxes": place.boxes}


def _document(request: Request, document_id: UUID) -> Document:
    caller = caller_of(request)
    caller.require_scope("read")
    return document_get(viewer_of(caller), document_id)


class PageView(APIView):
    """One page: whether it can be shown, and where a stretch of the document's text stands on it."""

    class Query(serializers.Serializer[Any]):
        start = serializers.IntegerField(
            min_value=0, default=0, help_text="Offset of the first character in the whole text."
        )
        end = serializers.IntegerField(min_value=0, default=0)

    @extend_schema(
        operation_id="documents_page",
        parameters=[Query],
        responses={200: PlaceOutput, **refusals(403, 404, 422)},
    )
    def get(self, request: Request, document_id: UUID, number: int) -> Response:
        document = _document(request, document_id)
        query = given(self.Query, request.query_params.dict())
        place = page_place(document=document, number=number, **query)
        return Response(PlaceOutput(place_shown(place)).data)


class _Any(DefaultContentNegotiation):
    """A browser asks for pictures in many ways; there is one to give, and refusals are JSON."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return JSONRenderer(), JSONRenderer.media_type


class PagePictureView(APIView):
    """The page as people see it, drawn from the version that serves."""

    content_negotiation_class = _Any

    @extend_schema(
        operation_id="documents_page_picture",
        responses={(200, _WEBP): OpenApiTypes.BINARY, 304: None, **refusals(403, 404, 503)},
        description="PDFs and pictures; other formats have no pages to show and answer 404 with the reason. Browsers "
        "keep it under its ETag and ask again each time, since rights may have gone.",
    )
    def get(self, request: Request, document_id: UUID, number: int) -> HttpResponse:
        document = _document(request, document_id)
        tag = f'"{picture_tag(document, number)}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("If-None-Match") == tag:
            return HttpResponseNotModified(headers=headers)
        shown = page_picture(document=document, number=number)
        return HttpResponse(shown, content_type=_WEBP, headers=headers)
