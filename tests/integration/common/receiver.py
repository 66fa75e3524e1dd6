"""A real HTTP server on this machine that remembers what it was sent and answers as a test says."""

import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers every request by its path; see `_Handler`."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Of the next answers, first to last; 200 when there is none left."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        names = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.received.append(Received(self.command, self.path, names, body))
        action = self.path.split("?")[0].strip("/").partition("/")
        {"to": self._redirect, "big": self._big, "drip": self._drip}.get(action[0], self._plain)(action[2])

    do_GET = do_POST = _take  # noqa: N815 - the names that http.server looks for

    def _head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _plain(self, _: str) -> None:
        status = self.receiver.statuses.pop(0) if self.receiver.statuses else 200
        self._head(status, content_length="2")
        self.wfile.write(b"ok")

    def _redirect(self, target: str) -> None:
        """`/to/302/…`: the rest of the path, with `~` for `://`."""
        status, _, where = target.partition("/")
        self._head(int(status), location=where.replace("~", "://"), content_length="0")

    def _big(self, size: str) -> None:
        self._head(200, content_length=size)
        self.wfile.write(b"x" * int(size))

    def _drip(self, _: str) -> None:
        """One byte at a time, each in time, the whole never done."""
        self.send_response(200)
        self.flush_headers()
        try:
            while True:
                self.wfile.write(b"a")
                time.sleep(0.02)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def receiving(*, tls: Path | None = None) -> Iterator[Receiver]:
    """Run a receiver on a free port; `tls`: with a certificate for `hooks.example`, whose PEM is written there."""
    receiver = Receiver()
    handler = type("Handler", (_Handler,), {"receiver": receiver})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(_certificate(tls))
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def _certificate(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example")])
    start = datetime.now(UTC) - timedelta(days=1)
    names = [x509.DNSName("hooks.example"), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return path
