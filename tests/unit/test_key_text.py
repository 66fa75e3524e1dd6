"""The text of a key: found by scanners, checked without asking anybody."""

import re

import pytest

from app.accounts.key_text import is_mistyped, key_text


def test_a_key_has_the_form_that_scanners_are_told_of():
    keys = {key_text() for _ in range(50)}
    assert len(keys) == 50
    assert all(re.fullmatch(r"tsk_[0-9A-Za-z]{36}", key) and not is_mistyped(key) for key in keys)


def test_a_single_wrong_letter_is_seen():
    key = key_text()
    for place in range(4, len(key)):
        other = "a" if key[place] != "a" else "b"
        assert is_mistyped(key[:place] + other + key[place + 1 :])


@pytest.mark.parametrize(
    "key",
    ["tsk_", "tsk_short", key_text() + "x", key_text()[:-1] + "-", "tsk_" + "é" * 36],
    ids=["empty", "short", "long", "letter", "accents"],
)
def test_what_is_no_key_of_ours_is_seen(key):
    assert is_mistyped(key)


@pytest.mark.parametrize("key", ["tsr_0123456789abcdef", "sk-other", ""])
def test_keys_of_before_this_form_are_not_judged(key):
    assert not is_mistyped(key)


def test_the_checksum_is_crc32_in_base_62():
    """As the documents say it, for who writes a scanner: worked out once by hand."""
    # crc32("0" * 30) = 0x77E5DB82
    assert not is_mistyped("tsk_" + "0" * 30 + _base62(0x77E5DB82))


def _base62(value: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join(digits[value // 62**place % 62] for place in range(5, -1, -1))
