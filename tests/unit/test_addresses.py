"""Whose address it is, through so many proxies as are trusted."""

import pytest

from app.common.addresses import address_of, is_within, network_of


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "", "10.0.0.1"),
        (0, "203.0.113.7", "10.0.0.1"),
        (1, "", "10.0.0.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        # What stands before was written by the caller.
        (1, "198.51.100.9, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.9, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (3, "203.0.113.7, 10.0.0.2", "203.0.113.7"),
    ],
)
def test_an_address_is_taken_from_trusted_proxies_only(settings, proxies, forwarded, address):
    settings.TRUSTED_PROXIES = proxies
    assert address_of("10.0.0.1", forwarded) == address


@pytest.mark.parametrize(
    ("address", "networks", "inside"),
    [
        ("203.0.113.7", ["203.0.113.0/24"], True),
        ("203.0.114.7", ["203.0.113.0/24"], False),
        ("203.0.113.7", ["198.51.100.1", "203.0.113.7"], True),
        ("::ffff:203.0.113.7", ["203.0.113.0/24"], True),
        ("2001:db8::5", ["2001:db8::/32"], True),
        ("[2001:db8::5]", ["2001:db8::/32"], True),
        ("2001:db8::5", ["203.0.113.0/24"], False),
        ("unknown", ["0.0.0.0/0"], False),
        ("", ["0.0.0.0/0"], False),
    ],
)
def test_an_address_lies_in_a_network_or_not(address, networks, inside):
    assert is_within(address, networks) == inside


def test_a_network_has_one_form():
    assert str(network_of(" 203.0.113.7/24 ")) == "203.0.113.0/24"
    with pytest.raises(ValueError, match="does not appear"):
        network_of("everywhere")
