"""Production: every secret comes from the environment, and a missing one stops the start."""

from django.core.exceptions import ImproperlyConfigured

from app.settings import env
from app.settings.base import *
from app.settings.base import FIELD_KEYS, PUBLIC_URL, SECRET_KEY

for _name, _value in {"SECRET_KEY": SECRET_KEY, "FIELD_KEYS": FIELD_KEYS}.items():
    if not _value:
        raise ImproperlyConfigured(f"{_name} is not set; see .env.example for how to make one.")

SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("BEHIND_TLS_PROXY", default=True) else None
)
SECURE_HSTS_SECONDS = env.number(
    "SECURE_HSTS_SECONDS", 31_536_000 if PUBLIC_URL.startswith("https://") else 0
)

SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains is the domain owner's decision, not this application's
    "security.W008",  # the TLS proxy redirects; see docs
    "security.W021",  # preloading HSTS likewise
]
