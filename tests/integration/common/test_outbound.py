"""The address-checked door, against real servers on this machine."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pytest_django import Settings

from app.common.outbound import (
    Outbound,
    OutboundFailed,
    OutboundRefused,
    Resolver,
    address_check,
    addresses_of,
    send_now,
)
from tests.integration.common.receiver import Receiver, receiving


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    with receiving() as started:
        settings.OUTBOUND_ALLOW = [f"127.0.0.1:{started.port}", f"hooks.example:{started.port}"]
        yield started


def resolver(*addresses: str) -> Resolver:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


INWARD = (
    "127.0.0.1", "127.8.9.10", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
    "169.254.1.1", "169.254.169.254", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::1", "::", "fc00::1", "fd12::1", "fe80::1", "fe80::1%1", "ff02::1", "fd00:ec2::254", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1",
)  # fmt: skip


@pytest.mark.parametrize("address", INWARD)
def test_a_name_that_points_inward_is_refused(address: str) -> None:
    with pytest.raises(OutboundRefused, match=r"hooks\.example is an address of this machine"):
        send_now(Outbound(url="https://hooks.example/"), resolve=resolver(address))


@pytest.mark.parametrize("mixed", [("1.1.1.1", "127.0.0.1"), ("10.0.0.1", "1.1.1.1")])
def test_one_inward_answer_spoils_the_others(mixed: tuple[str, ...]) -> None:
    with pytest.raises(OutboundRefused):
        send_now(Outbound(url="https://hooks.example/"), resolve=resolver(*mixed))


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/", "https://0.0.0.0/", "https://[::1]/", "https://localhost/",
        "https://LOCALHOST/", "https://①②⑦.0.0.1/",
    ],
)  # fmt: skip
def test_no_spelling_of_this_machine_passes(url: str) -> None:
    """Through the machine's own resolver."""
    with pytest.raises(OutboundRefused):
        send_now(Outbound(url=url))


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"])
def test_a_metadata_address_is_refused_even_when_allowed(settings: Settings, address: str) -> None:
    settings.OUTBOUND_ALLOW = ["hooks.example", address]
    with pytest.raises(OutboundRefused):
        send_now(Outbound(url="http://hooks.example/latest/meta-data"), resolve=resolver(address))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://hooks.example/", "no address of the form"),
        ("file:///etc/passwd", "no address of the form"),
        ("https://", "no address of the form"),
        ("https://a:port/", "no address of the form"),
        ("hooks.example/x", "no address of the form"),
        ("https://user:pass@hooks.example/", "no user, password or fragment"),
        ("https://hooks.example/#x", "no user, password or fragment"),
        ("http://hooks.example/", "plain http"),
        ("https://10.0.0.8/", "private network"),
    ],
)
def test_what_is_no_webhook_is_refused_when_it_is_entered(url: str, says: str) -> None:
    with pytest.raises(OutboundRefused, match=says):
        address_check(url)


@pytest.mark.parametrize(
    ("url", "allow", "trusted"),
    [
        ("https://hooks.example/a?b=c", [], ()),
        ("https://1.1.1.1/", [], ()),
        ("http://hooks.example/", ["Hooks.Example"], ()),
        ("http://hooks.example:8000/", ["hooks.example:8000"], ()),
        ("http://10.0.0.8:8000/metrics", [], ("10.0.0.8:8000",)),
        ("http://[fd12::1]:8000/", ["[fd12::1]"], ()),
    ],
)
def test_what_is_fine_is_kept(
    settings: Settings, url: str, allow: list[str], trusted: tuple[str, ...]
) -> None:
    settings.OUTBOUND_ALLOW = allow
    assert address_check(f" {url} ", trusted=trusted) == url


def test_the_checked_number_is_called_with_the_name_in_the_host_header(receiver: Receiver) -> None:
    asked: list[tuple[str, int]] = []

    async def once(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    url = f"http://hooks.example:{receiver.port}/in?x=1"
    answer = send_now(Outbound(url=url, method="POST", body=b"{}", headers={"X-A": "b"}), resolve=once)
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"ok", "2")
    assert asked == [("hooks.example", receiver.port)]
    got = receiver.received[0]
    assert (got.method, got.path, got.body) == ("POST", "/in?x=1", b"{}")
    assert got.headers["host"] == f"hooks.example:{receiver.port}"
    assert (got.headers["x-a"], got.headers["accept-encoding"]) == ("b", "identity")


def test_the_certificate_must_be_of_the_name_that_was_asked_for(settings: Settings, tmp_path: Path) -> None:
    with receiving(tls=tmp_path / "hooks.pem") as secure:
        settings.OUTBOUND_ALLOW = ["hooks.example", "other.example"]
        settings.OUTBOUND_CA_FILE = str(tmp_path / "hooks.pem")
        url = f"https://hooks.example:{secure.port}/"
        assert send_now(Outbound(url=url), resolve=resolver("127.0.0.1")).body == b"ok"
        for host, authority in (("other.example", settings.OUTBOUND_CA_FILE), ("hooks.example", "")):
            settings.OUTBOUND_CA_FILE = authority
            with pytest.raises(OutboundFailed, match="cannot be called: ConnectError"):
                send_now(Outbound(url=url.replace("hooks.example", host)), resolve=resolver("127.0.0.1"))


def test_the_next_address_is_tried_when_one_takes_no_connection(receiver: Receiver) -> None:
    url = f"http://hooks.example:{receiver.port}/"
    assert send_now(Outbound(url=url), resolve=resolver("::1", "127.0.0.1")).status == 200
    with pytest.raises(OutboundFailed, match="has no address"):
        send_now(Outbound(url=url), resolve=resolver())


def test_a_host_nobody_knows_is_a_failure() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(OutboundFailed, match="Nobody knows the host"):
        send_now(Outbound(url="https://hooks.example/"), resolve=unknown)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_on_the_same_host_is_followed(receiver: Receiver, status: int) -> None:
    assert send_now(Outbound(url=f"{receiver.url}/to/{status}//here")).body == b"ok"
    assert [r.path for r in receiver.received] == [f"/to/{status}//here", "/here"]


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        ("GET", "/to/302/http~169.254.169.254/latest", "another host or port"),
        ("GET", "/to/302/http~127.0.0.1:1/", "another host or port"),
        ("GET", "/to/302/https~127.0.0.1/", "another host or port"),
        ("POST", "/to/302//here", "would lose its body"),
    ],
)
def test_other_redirects_are_refused(receiver: Receiver, method: str, path: str, says: str) -> None:
    with pytest.raises(OutboundRefused, match=says):
        send_now(Outbound(url=receiver.url + path, method=method, body=b"x" if method == "POST" else b""))
    assert len(receiver.received) == 1


def test_a_redirect_to_what_is_no_address_is_a_failure(receiver: Receiver) -> None:
    with pytest.raises(OutboundFailed, match="RemoteProtocolError"):
        send_now(Outbound(url=f"{receiver.url}/to/302/http~a:port/"))


def test_a_circle_ends(receiver: Receiver) -> None:
    with pytest.raises(OutboundFailed, match="in a circle"):
        send_now(Outbound(url=f"{receiver.url}/to/307/"))
    assert len(receiver.received) == 4


def test_an_answer_that_is_too_long_is_refused(receiver: Receiver) -> None:
    assert len(send_now(Outbound(url=f"{receiver.url}/big/5000", max_bytes=5000)).body) == 5000
    with pytest.raises(OutboundFailed, match="more than 4999 bytes"):
        send_now(Outbound(url=f"{receiver.url}/big/5000", max_bytes=4999))


def test_a_slow_answer_ends_in_time(receiver: Receiver) -> None:
    request = Outbound(url=f"{receiver.url}/drip", timeout_s=0.1)
    with pytest.raises(OutboundFailed, match=r"did not answer within 0\.1 s"):
        send_now(request)


def test_a_status_is_an_answer(receiver: Receiver) -> None:
    receiver.statuses = [500]
    assert send_now(Outbound(url=receiver.url)).status == 500


def test_nobody_listening_is_a_failure(settings: Settings) -> None:
    settings.OUTBOUND_ALLOW = ["127.0.0.1"]
    with pytest.raises(OutboundFailed, match=r"127\.0\.0\.1 cannot be called: ConnectError"):
        send_now(Outbound(url="http://127.0.0.1:1/secret-path"))


def test_this_machines_resolver_is_asked() -> None:
    assert asyncio.run(addresses_of("127.0.0.1", 80)) == ["127.0.0.1"]
