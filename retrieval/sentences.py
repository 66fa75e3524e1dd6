"""Where sentences of a document end. Pure."""

import re

_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])|\n\s*\n")


def sentences_of(text: str) -> list[str]:
    """The pieces between sentence ends, some empty. A page's lines end anywhere, so a single line break ends none."""
    return _END.split(text)
