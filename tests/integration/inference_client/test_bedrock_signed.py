"""Bedrock with AWS access keys: what arrives at the server is what was signed, checked as the server would."""

import hashlib
import hmac
from typing import Any
from urllib.parse import quote

import pytest

from inference_client import errors
from inference_client.adapters import sigv4
from inference_client.adapters.counts import count_request
from inference_client.adapters.kinds import adapter_for, kind_of
from inference_client.servers import Server
from inference_client.testing.fault_server import Seen
from inference_client.types import ChatRequest, Message
from tests.integration.inference_client.answers import script
from tests.integration.inference_client.scenes import Outcome, Scene, run_scene

ACCESS, SECRET, SESSION = "AKIDEXAMPLE", "wJalr/EXAMPLE+KEY=", "session+token/=="
ADDRESS = "https://bedrock-runtime.eu-central-1.amazonaws.com"
MODEL = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x-v1:0"


def _request(model: str = MODEL) -> ChatRequest:
    return ChatRequest(model=model, messages=(Message("user", "Grüße"),), max_output_tokens=5)


def _signature(seen: Seen, secret: str) -> str:
    """AWS's published steps, from what came over the wire."""
    fields = dict(
        part.split("=", 1)
        for part in seen.headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    )
    _, day, region, service, last = fields["Credential"].split("/")
    signed = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        (
            seen.method,
            # Encoded once on the wire, and once more for all services but S3.
            quote(seen.path, safe="/~"),
            "",
            *(f"{name}:{' '.join(seen.headers[name].split())}" for name in signed),
            "",
            fields["SignedHeaders"],
            hashlib.sha256(seen.body).hexdigest(),
        )
    )
    scope = f"{day}/{region}/{service}/{last}"
    text = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            seen.headers["x-amz-date"],
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        )
    )
    key = f"AWS4{secret}".encode()
    for piece in (day, region, service, last):
        key = hmac.new(key, piece.encode(), hashlib.sha256).digest()
    assert hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"]
    assert {"host", "x-amz-date", "content-type"} <= set(signed)
    return scope


@pytest.mark.parametrize("session", [None, SESSION])
def test_what_arrives_is_what_was_signed(session: str | None) -> None:
    key = ":".join(filter(None, (ACCESS, SECRET, session)))

    async def scene(scene: Scene) -> tuple[Outcome, Seen]:
        server = Server(
            kind="bedrock-sigv4",
            base_url=scene.upstream.url,
            api_key=key,
            options={"region": "eu-west-1"},
            timeouts=scene.server.timeouts,
        )
        call = scene.client.chat(server, _request())
        async with call:
            events = [event async for event in call]
        return Outcome(events, call.record, None), scene.upstream.seen[0]

    got, seen = run_scene(scene, script())
    assert _signature(seen, SECRET).endswith("/eu-west-1/bedrock/aws4_request")
    assert seen.path.startswith("/model/arn%3Aaws%3Abedrock")
    assert seen.headers.get("x-amz-security-token") == session
    assert (got.record.outcome, got.record.usage.input_tokens) == ("completed", 40)
    assert SECRET not in str(seen.headers)


def _signed(**options: Any) -> Any:
    given: dict[str, Any] = {"base_url": ADDRESS, "api_key": f"{ACCESS}:{SECRET}"}
    server = Server(kind="bedrock-sigv4", **(given | options))
    kind = kind_of(server.kind)
    return adapter_for(kind).chat_request(server, kind, _request()), server, kind


def test_the_region_is_that_of_the_host_unless_it_is_said() -> None:
    assert "/eu-central-1/bedrock/" in _signed()[0].headers["authorization"]
    said = _signed(options={"region": "us-east-1"})[0]
    assert "/us-east-1/bedrock/" in said.headers["authorization"]


def test_counts_are_signed_too() -> None:
    _, server, kind = _signed()
    wire = count_request(adapter_for(kind), server, kind, _request("m:0"))
    assert wire.url == f"{ADDRESS}/model/m%3A0/count-tokens"
    assert wire.headers["authorization"].startswith("AWS4-HMAC-SHA256 ")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"api_key": None}, "aws_keys"),
        ({"api_key": "ABSKbearer"}, "aws_keys"),
        ({"api_key": ":secret"}, "aws_keys"),
        ({"base_url": "https://proxy.example"}, "aws_region"),
    ],
)
def test_what_is_missing_is_told(options: dict[str, Any], code: str) -> None:
    with pytest.raises(errors.Unsupported) as caught:
        _signed(**options)
    assert (caught.value.code, caught.value.never_sent) == (code, True)


def test_without_botocore_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    sigv4._signer.cache_clear()
    monkeypatch.setattr(sigv4, "import_module", missing)
    with pytest.raises(errors.Unsupported, match=r"requirements/bedrock\.txt"):
        _signed()
    # A Bedrock API key needs nothing of it.
    bearer = kind_of("bedrock")
    wire = adapter_for(bearer).chat_request(
        Server(kind="bedrock", base_url=ADDRESS, api_key="ABSK"), bearer, _request()
    )
    assert wire.headers["authorization"] == "Bearer ABSK"
