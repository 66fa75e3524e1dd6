"""`Idempotency-Key` on POSTs of the CRUD tier."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import orjson
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.services import fingerprint_of, idempotency_claim, idempotency_finish, idempotency_owner
from app.common.crypto import decrypt, encrypt

Handler = TypeVar("Handler", bound=Callable[..., Response])

PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key with the same body gives the same result for 24 hours; another body is refused.",
)


def idempotent(*, sealed: bool = False) -> Callable[[Handler], Handler]:
    """Make a POST handler repeatable; the work, the claim and the kept answer commit together or not at all.

    `sealed` encrypts the kept answer, for answers that hold a secret. Not for handlers that call a server:
    a transaction is open while they run.
    """

    def wrap(handler: Handler) -> Handler:
        @wraps(handler)
        def post(view: APIView, request: Request, *args: Any, **kwargs: Any) -> Response:
            key = request.headers.get("Idempotency-Key")
            if key is None:
                return handler(view, request, *args, **kwargs)
            owner = idempotency_owner(caller_of(request))
            with transaction.atomic():
                claim = idempotency_claim(owner=owner, key=key, fingerprint=_fingerprint(request))
                if not claim.is_new:
                    return _replayed(claim.status or 200, claim.response)
                response = handler(view, request, *args, **kwargs)
                idempotency_finish(
                    owner=owner, key=key, status=response.status_code, response=_kept(response, sealed)
                )
            return response

        post.is_idempotent = True  # type: ignore[attr-defined]
        return cast(Handler, post)

    return wrap


def idempotent_read(handler: Handler) -> Handler:
    """For a POST that only reads: the key is checked against the body, the answer is made anew and never kept.

    Keeping it would outlive the rights it was read under.
    """

    @wraps(handler)
    def post(view: APIView, request: Request, *args: Any, **kwargs: Any) -> Response:
        if key := request.headers.get("Idempotency-Key"):
            owner = idempotency_owner(caller_of(request))
            idempotency_claim(owner=owner, key=key, fingerprint=_fingerprint(request))
        return handler(view, request, *args, **kwargs)

    post.is_idempotent = True  # type: ignore[attr-defined]
    return cast(Handler, post)


def _fingerprint(request: Request) -> str:
    """Of method, path and body. Files count by name and content: a multipart boundary differs every time."""
    parts: list[bytes | str] = [str(request.method), request.path.rstrip("/")]
    body = request.data if isinstance(request.data, dict) else {"": request.data}
    for name in sorted(body):
        value = body[name]
        if isinstance(value, UploadedFile):
            parts += [name, value.name or "", *value.chunks(1 << 20)]
            value.seek(0)
        else:
            # Python's own: a body may hold whole numbers of any size, and halves of characters.
            shown = json.dumps(value, sort_keys=True).encode()
            # Without the key nobody can guess a password by this row.
            parts += [name, salted_hmac(__name__, shown, algorithm="sha256").digest()]
    return fingerprint_of(*parts)


def _kept(response: Response, sealed: bool) -> dict[str, Any]:
    body = JSONRenderer().render(response.data).decode() or "null"
    headers = {name: response[name] for name in ("Location",) if name in response}
    return {"headers": headers} | ({"sealed": encrypt(body)} if sealed else {"body": orjson.loads(body)})


def _replayed(status: int, kept: dict[str, Any]) -> Response:
    body = orjson.loads(decrypt(kept["sealed"])) if "sealed" in kept else kept["body"]
    return Response(body, status=status, headers=kept["headers"] | {"Idempotent-Replayed": "true"})
