"""Secrets at rest: server keys are stored encrypted under FIELD_KEYS (first key writes, all read)."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def _box() -> MultiFernet:
    if not settings.FIELD_KEYS:
        raise ImproperlyConfigured("FIELD_KEYS is not set: no secret can be stored or read.")
    return MultiFernet([Fernet(key) for key in settings.FIELD_KEYS])


def encrypt(value: str) -> str:
    """Ciphertext of `value`; the empty string stays empty."""
    return _box().encrypt(value.encode()).decode() if value else ""


def decrypt(value: str) -> str:
    """Plain text of what `encrypt` made. Errors: ImproperlyConfigured when no present key fits."""
    if not value:
        return ""
    try:
        return _box().decrypt(value.encode()).decode()
    except InvalidToken as exc:
        raise ImproperlyConfigured(
            "A stored secret does not fit FIELD_KEYS; restore the key or enter it again."
        ) from exc
