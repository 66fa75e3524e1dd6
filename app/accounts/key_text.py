"""The text of an API key: `tsk_`, 30 random letters and digits, and six that check them.

The prefix lets secret scanners find a key that leaked into a repository, and the checksum lets them, and us, tell a
real one from a look-alike without asking anybody: `tsk_[0-9A-Za-z]{36}`.
"""

import re
import secrets
import string
import zlib

PREFIX = "tsk_"
SHOWN = 10
"""So many characters, the prefix with them, are kept and shown to tell keys apart."""
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM, _CHECK = 30, 6
_FORM = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM + _CHECK}}}")


def key_text() -> str:
    """A new key with 178 random bits."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return f"{PREFIX}{body}{_checksum(body)}"


def is_mistyped(key: str) -> bool:
    """Whether this says it is one of ours and cannot be. Keys of before this form are not judged."""
    if not key.startswith(PREFIX):
        return False
    return _FORM.fullmatch(key) is None or _checksum(key[len(PREFIX) : -_CHECK]) != key[-_CHECK:]


def _checksum(body: str) -> str:
    """CRC-32 in base 62, most significant digit first, padded with 0."""
    value, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECK):
        value, digit = divmod(value, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
