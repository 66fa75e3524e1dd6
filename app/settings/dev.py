"""One machine: the embedded stack, or a developer's shell beside it."""

from app.settings.base import *
from app.settings.base import FIELD_KEYS, SECRET_KEY

# Commands that need no secret (check, makemigrations, read) also run before `up` has made any.
SECRET_KEY = SECRET_KEY or "no-secret-yet-run-manage.py-up"
FIELD_KEYS = FIELD_KEYS or []
