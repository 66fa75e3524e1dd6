"""Tests: the services that tests/services_plugin.py started, cheap password hashing, no background threads."""

from app.settings import env
from app.settings.base import *
from app.settings.base import DATABASE_OWNER_URL, DATABASES

SECRET_KEY = "tests-only"  # noqa: S105
FIELD_KEYS = ["dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk="]
# The owner creates the test database and migrates it; grants of the application's role are tested by SET ROLE.
DATABASES["default"].update(env.database(DATABASE_OWNER_URL))
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASE_THREADS = 0
# Attempts of one test must not count against the next; `tests/integration/common/test_soft_cache.py` has the real one.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
