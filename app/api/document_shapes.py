"""Documents as the API takes and gives them: shapes that several of its routes share."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from app.api.documents import document_enqueue, documents_shown
from retrieval.models import Document, Status


class DocumentOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    collection_id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField(help_text="From the file itself, where it has one.")
    size = serializers.IntegerField(help_text="Bytes.")
    mime = serializers.CharField(help_text="What the content is; empty until it was looked at.")
    reader = serializers.CharField(
        help_text="Format and version of what read it last, as `pdf/2`; an older version may have read less. Empty: "
        "not known."
    )
    sha256 = serializers.CharField()
    version = serializers.IntegerField()
    serving_version = serializers.IntegerField(help_text="The version that search sees; 0: none yet.")
    status = serializers.ChoiceField(choices=Status.values)
    progress = serializers.FloatField(
        allow_null=True, help_text="Share of the present stage, 0 to 1; null: unknown."
    )
    queue_position = serializers.IntegerField(
        allow_null=True,
        help_text="Place in line while queued, from 1; files of up to 1 MB have a line of their own.",
    )
    eta_seconds = serializers.IntegerField(
        allow_null=True, help_text="What the present stage still takes at its pace so far; null: unknown."
    )
    progressed_at = serializers.DateTimeField(
        allow_null=True, help_text="When the worker last got a step further."
    )
    pages = serializers.IntegerField(allow_null=True)
    chunk_count = serializers.IntegerField()
    tags = serializers.SerializerMethodField()
    metadata = serializers.DictField(help_text="What the file says of itself, and over it what was set.")
    source_url = serializers.CharField(help_text="Where it was fetched from; empty for an upload.")
    warnings = serializers.ListField(child=serializers.JSONField())
    error = serializers.DictField(allow_null=True, help_text="{step, code, message} of a failure.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Document"

    def get_tags(self, row: Document) -> list[str]:
        found = row.metadata.get("tags", [])
        return [str(tag) for tag in found] if isinstance(found, list) else []


class WarningSerializer(serializers.Serializer[Any]):
    part = serializers.CharField()
    message = serializers.CharField()


class AcceptedOutput(DocumentOutput):
    warning = WarningSerializer(
        allow_null=True, help_text="Set when the file is kept but the worker cannot be told yet."
    )

    class Meta:
        ref_name = "DocumentAccepted"


class PasswordInput(serializers.Serializer[Any]):
    password = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=500,
        trim_whitespace=False,
        write_only=True,
        help_text="Of an encrypted file. Kept encrypted until the file was read, then forgotten.",
    )

    class Meta:
        ref_name = "Password"


class UploadInput(PasswordInput):
    file = serializers.FileField()

    class Meta:
        ref_name = "Upload"


class AddressInput(serializers.Serializer[Any]):
    url = serializers.CharField(
        max_length=2000, help_text="A page or file of the web. The worker fetches it; no private addresses."
    )

    class Meta:
        ref_name = "Address"


def document_shown(row: Document) -> dict[str, Any]:
    """The document as the API gives it."""
    return dict(DocumentOutput(documents_shown([row])[0]).data)


def document_accepted(row: Document, *, status: int) -> Response:
    """A document that is, or will be, ingested; enqueued on commit."""
    shown = document_shown(row) | {"warning": document_enqueue(row)}
    return Response(shown, status=status, headers={"Location": f"/api/v1/documents/{row.pk}/"})
