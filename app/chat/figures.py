"""Figures of conversations for those who see money and no content."""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

PARTS = ("system", "history", "attachments", "retrieved", "draft")


def conversations_parts(conversation_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """Input tokens by what they were, over all turns, as the pre-counts had them; none of erased ones."""
    sums = ", ".join(
        f"coalesce(sum(CASE jsonb_typeof(e -> '{part}') WHEN 'number' THEN (e ->> '{part}')::numeric "
        f"WHEN 'object' THEN (e -> '{part}' ->> 'expected')::numeric END), 0)"
        for part in PARTS
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT conversation_id, {sums} FROM chat_turn, LATERAL (SELECT estimate -> 'input_tokens' AS e) x "  # noqa: S608
            "WHERE conversation_id = ANY (%s) GROUP BY conversation_id",
            [list(conversation_ids)],
        )
        return {row[0]: dict(zip(PARTS, (int(v) for v in row[1:]), strict=True)) for row in cursor.fetchall()}
