"""Signing for Amazon Bedrock with AWS access keys, by botocore's signer. No IO.

botocore is an extra (`requirements/bedrock.txt`): it is large, and a Bedrock API key needs none of it. So it is
loaded by the first call that must be signed.
"""

import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from inference_client.adapters.addresses import option
from inference_client.adapters.kind import Kind
from inference_client.adapters.wire import WireRequest
from inference_client.errors import Unsupported
from inference_client.servers import Server

SERVICE = "bedrock"
_REGION = re.compile(r"//bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com")


class _Signer(NamedTuple):
    credentials: Any
    auth: Any
    request: Any


def signed(wire: WireRequest, server: Server, kind: Kind) -> WireRequest:
    """`wire` with AWS's signature, good for a few minutes.

    The server's key is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, or with `:SESSION_TOKEN` behind it. The region is the
    option `region`, else that of the host name. Raises Unsupported where one of them, or botocore, is missing.
    """
    signer = _signer()
    access, secret, session = _keys(server.api_key)
    request = signer.request(method=wire.method, url=wire.url, headers=dict(wire.headers), data=wire.body)
    credentials = signer.credentials(access, secret, session)
    signer.auth(credentials, SERVICE, _region(server, kind)).add_auth(request)
    return wire._replace(headers={name.lower(): value for name, value in request.headers.items()})


def _keys(key: str | None) -> tuple[str, str, str | None]:
    access, _, rest = (key or "").partition(":")
    secret, _, session = rest.partition(":")
    if not (access and secret):
        raise Unsupported(
            "AWS access keys are given as ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN behind them where "
            "there is one. Set the server's key like that, or use a Bedrock API key with the kind bedrock.",
            code="aws_keys",
        )
    return access, secret, session or None


def _region(server: Server, kind: Kind) -> str:
    found = _REGION.search(server.base_url)
    region = option(server, kind, "region") or (found.group(1) if found else None)
    if not region:
        raise Unsupported(
            "The AWS region is not known, and the signature needs it. Use an address like "
            "https://bedrock-runtime.eu-central-1.amazonaws.com, or set the server's option region.",
            code="aws_region",
        )
    return str(region)


@cache
def _signer() -> _Signer:
    try:
        auth, request, credentials = (
            import_module(f"botocore.{name}") for name in ("auth", "awsrequest", "credentials")
        )
    except ImportError:
        raise Unsupported(
            "Calls to Amazon Bedrock with AWS access keys need the package botocore, which is not installed. "
            "Install requirements/bedrock.txt, or use a Bedrock API key with the kind bedrock.",
            code="botocore_missing",
        ) from None
    return _Signer(credentials.Credentials, auth.SigV4Auth, request.AWSRequest)
