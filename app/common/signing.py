"""Signs what is sent to webhooks, in the form of the Standard Webhooks specification, so that receivers find a library.

The signature is HMAC-SHA-256 over `<id>.<seconds since 1970>.<body>`, so neither the body nor its age can be changed.
"""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"


def secret_new() -> str:
    """A secret of 256 random bits, as receivers' libraries take it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(*, secret: str, message_id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers that go with `body`; `at` in seconds since 1970. Errors: ValueError for what is no secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError as exc:
        raise ValueError("A webhook's secret is whsec_ and base64.") from exc
    content = f"{message_id}.{at}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
    }
