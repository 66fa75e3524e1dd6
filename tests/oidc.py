"""A small OpenID Connect provider over HTTP: code flow with PKCE, RS256 tokens, and what tests make it get wrong."""

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "tessera", "the secret of the client"


@dataclass
class Provider:
    """What it says. `claims` is about whoever signs in next; `spoil` may change an ID token before it is signed."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    """Told by user info only."""
    issuer: str = ""
    spoil: Any = None
    sign: Any = None
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    codes: dict[str, tuple[str, str, dict[str, Any]]] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
        }

    def keys(self) -> dict[str, Any]:
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**key, "kid": "one", "alg": "RS256", "use": "sig"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        code = secrets.token_urlsafe(8)
        self.codes[code] = (asked["redirect_uri"], asked["code_challenge"], dict(self.claims))
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        found = self.codes.pop(form.get("code", ""), None)
        client = f"{form.get('client_id')}:{form.get('client_secret')}"
        if authorization.startswith("Basic "):
            client = base64.b64decode(authorization[6:]).decode()
        fits = found and found[:2] == (form.get("redirect_uri"), challenge.decode().rstrip("="))
        if not fits or client != f"{CLIENT}:{SECRET}":
            self.refused.append(client)
            return None
        now = int(time.time())
        claims = {"iss": self.issuer or self.url, "aud": CLIENT, "iat": now, "exp": now + 300, **found[2]}
        access = secrets.token_urlsafe(8)
        self.tokens[access] = {**found[2], **self.info}
        claims = self.spoil(dict(claims)) if self.spoil else claims
        sign = self.sign or (lambda c: jwt.encode(c, self.key, algorithm="RS256", headers={"kid": "one"}))
        return {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": sign(claims)}


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(at.query).items()}
        if at.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self.provider.authorize(asked))
            self.end_headers()
            return
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self._json(
            {
                "/.well-known/openid-configuration": self.provider.configuration(),
                "/keys": self.provider.keys(),
                "/userinfo": self.provider.tokens.get(token),
            }.get(at.path)
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._json(self.provider.token(form, self.headers.get("Authorization", "")))

    def _json(self, found: dict[str, Any] | None) -> None:
        body = json.dumps(found if found is not None else {"error": "invalid_grant"}).encode()
        self.send_response(200 if found is not None else 400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def provider_running():
    """A provider at an address of this machine."""
    provider = Provider()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": provider}))
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()
