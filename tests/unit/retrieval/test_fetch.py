"""Fetching documents: what an address may lead to, and how much of it is taken."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from retrieval.errors import TooLarge
from retrieval.fetch import AddressRefused, FetchFailed, FetchLimits, fetch


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        headers, body = {"Content-Type": "text/html; charset=utf-8"}, b"<p>hello</p>"
        status = 200
        if self.path == "/moved":
            status, headers = 302, {"Location": "/page"}
        elif self.path == "/inside":
            status, headers = 302, {"Location": "http://10.0.0.1/secret"}
        elif self.path == "/file-scheme":
            status, headers = 302, {"Location": "file:///etc/passwd"}
        elif self.path == "/round":
            status, headers = 302, {"Location": "/round"}
        elif self.path == "/gone":
            status = 404
        elif self.path == "/named":
            headers["Content-Disposition"] = 'attachment; filename="../Report 1.pdf"'
        elif self.path == "/large":
            body = b"x" * 50_000
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.path != "/large":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://site.test:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


OWN = FetchLimits(allow={"site.test"}, bytes=10_000, redirects=3)


@pytest.mark.parametrize(
    ("path", "name"),
    [("/page", "page.html"), ("/moved", "page.html"), ("/named", ".._Report 1.pdf"), ("/", "site.test")],
)
def test_a_page_is_fetched_with_a_name(site: str, path: str, name: str, tmp_path: Path) -> None:
    found = fetch(site + path, tmp_path / "f", limits=OWN, resolve=here)
    assert (tmp_path / "f").read_bytes() == b"<p>hello</p>"
    assert (found.bytes, found.mime) == (12, "text/html")
    assert found.name == name


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/inside", AddressRefused),
        ("/file-scheme", AddressRefused),
        ("/round", FetchFailed),
        ("/gone", FetchFailed),
        ("/large", TooLarge),
    ],
)
def test_where_a_page_may_not_lead(site: str, path: str, error: type[Exception], tmp_path: Path) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"] if host == "site.test" else [host]

    with pytest.raises(error):
        fetch(site + path, tmp_path / "f", limits=OWN, resolve=resolve)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.1.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "::1",
        "fe80::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1", "not an address",
    ],
)  # fmt: skip
def test_a_name_that_points_inside_is_refused_even_once_among_public_ones(
    address: str, tmp_path: Path
) -> None:
    with pytest.raises(AddressRefused, match="inside this network"):
        fetch("http://evil.test/", tmp_path / "f", resolve=lambda host, port: ["93.184.216.34", address])


@pytest.mark.parametrize(
    "url", ["ftp://a.test/", "file:///etc/passwd", "https://u:p@a.test/", "http://[bad", "no address"]
)
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(AddressRefused):
        fetch(url, tmp_path / "f", resolve=here)


def test_a_name_nobody_knows(tmp_path: Path) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    with pytest.raises(FetchFailed, match=r"no server by the name gone\.test"):
        fetch("https://gone.test/x", tmp_path / "f", resolve=resolve)
