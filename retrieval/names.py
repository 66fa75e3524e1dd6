"""Names that people give, as they are shown."""

from retrieval.errors import Invalid

MOST_CHARS = 200


def name_clean(name: str, field: str) -> str:
    """The name without control characters and needless space, at most 200 characters.

    Errors: Invalid naming the `field`, where nothing is left.
    """
    clean = " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MOST_CHARS]
    if not clean:
        raise Invalid(field, "A name is needed; this one is empty.")
    return clean
