"""A Reading or a ReadError as JSON, between the reading process and the one that asked."""

import json
from dataclasses import asdict
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Block, Page, Reading


def reading_dump(reading: Reading) -> str:
    return json.dumps({"reading": asdict(reading)}, ensure_ascii=False)


def error_dump(error: ReadError) -> str:
    return json.dumps({"error": error.message, "reason": error.reason}, ensure_ascii=False)


def load(text: str) -> Reading:
    """Errors: ReadError as the reader raised it, ValueError when the answer is not whole."""
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise ReadError(answer["error"], reason=answer["reason"])
    raw = answer["reading"]
    pages = tuple(
        Page(
            page["number"],
            page["text"],
            tuple(Block(b["kind"], b["start"], b["end"], tuple(b["heading"])) for b in page["blocks"]),
        )
        for page in raw["pages"]
    )
    return Reading(raw["format"], raw["mime"], pages, raw["paged"], raw["metadata"], tuple(raw["warnings"]))
