"""Outside servers that take the place of embedded ones, as the environment names them."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from app.embedded.errors import EmbeddedError
from app.embedded.supervisor import Say

PARTS = {
    "postgres": "DATABASE_URL",
    "valkey": "REDIS_URL",
    "chat": "INFERENCE_URL",
    "embedder": "EMBEDDING_URL",
}
"""The variable that replaces each part."""
_WITH = {
    "DATABASE_OWNER_URL": "DATABASE_URL",
    "INFERENCE_API_KEY": "INFERENCE_URL",
    "INFERENCE_KIND": "INFERENCE_URL",
    "INFERENCE_MODEL": "INFERENCE_URL",
    "EMBEDDING_API_KEY": "EMBEDDING_URL",
    "EMBEDDING_MODEL": "EMBEDDING_URL",
    "EMBEDDING_DIMENSION": "EMBEDDING_URL",
    "EMBEDDING_QUERY_PREFIX": "EMBEDDING_URL",
    "EMBEDDING_PASSAGE_PREFIX": "EMBEDDING_URL",
}
"""Variables that say something about an outside server, and the one that names it."""


def outside_check(external: Mapping[str, str], say: Say) -> dict[str, str]:
    """The variables that count. One that describes a server which is not named would mislead, so it is left out.

    Raises:
        EmbeddedError: an address that can never work.
    """
    redis = external.get("REDIS_URL", "")
    if redis and urlsplit(redis).scheme not in {"redis", "rediss"}:
        raise EmbeddedError(
            f"REDIS_URL begins with {urlsplit(redis).scheme}://. Celery needs one Redis or Valkey, not a cluster: "
            "redis:// or rediss://."
        )
    counted = {name: value for name, value in external.items() if _WITH.get(name, name) in external}
    for name in sorted(set(external) - set(counted)):
        say(f"{name} is ignored: it counts only together with {_WITH[name]}.")
    return counted


def parts_wanted(external: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the parts that no variable in `external` replaces."""
    return tuple(name for name, variable in PARTS.items() if variable not in external)
