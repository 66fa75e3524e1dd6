"""What people say of a document: tags and fields of their own, by which search can be narrowed."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db import transaction

from retrieval.errors import Invalid
from retrieval.models import Document

MOST_TAGS, LONGEST_TAG = 50, 100
MOST_BYTES = 10_000
"""Of the fields together, as JSON."""


def document_describe(
    *, document: Document, tags: Sequence[str] | None = None, metadata: Mapping[str, Any] | None = None
) -> Document:
    """Set what is given, whole; None leaves it, an empty one takes it away, and what the file says shows again.

    It counts for search at once. Errors: Invalid naming the field.
    """
    with transaction.atomic():
        row = Document.objects.select_for_update().get(pk=document.pk)
        before = row.described
        own = {key: value for key, value in before.items() if key != "tags"}
        said = dict(own if metadata is None else _fields(metadata))
        kept = before.get("tags", []) if tags is None else _tags(tags)
        if kept:
            said["tags"] = kept
        # What is no more said by people goes; what the file said under the same name comes back when it is read anew.
        row.metadata = {key: value for key, value in row.metadata.items() if key not in before} | said
        row.described = said
        row.save(update_fields=["metadata", "described", "updated_at"])
    return row


def _tags(tags: Sequence[str]) -> list[str]:
    clean = list(dict.fromkeys(" ".join(tag.split()) for tag in tags))
    if len(clean) > MOST_TAGS or any(not 1 <= len(tag) <= LONGEST_TAG for tag in clean):
        raise Invalid("tags", f"Up to {MOST_TAGS} tags of 1 to {LONGEST_TAG} characters can be set.")
    return clean


def _fields(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    if "tags" in metadata:
        raise Invalid("metadata", "Send tags in their own field `tags`.")
    written = orjson.dumps(dict(metadata))
    if len(written) > MOST_BYTES or b"\\u0000" in written:
        raise Invalid("metadata", f"The fields may be {MOST_BYTES:,} bytes of JSON, without null characters.")
    return metadata
