"""Settings shared by every way of running Tessera."""

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from whitenoise.compress import Compressor

from app.settings import env
from app.settings.accounts import *
from app.settings.work import *

BASE_DIR = env.REPOSITORY
DATA_DIR = env.DATA_DIR
EXTERNAL = env.EXTERNAL
ORIGINALS_DIR = Path(env.text("ORIGINALS_DIR", str(DATA_DIR / "originals")))
ORIGINALS_BUCKET = env.text("ORIGINALS_BUCKET")
"""Where it is set originals lie in this bucket, and ORIGINALS_DIR is only what is being written at this moment."""
ORIGINALS_S3_ENDPOINT = env.text("ORIGINALS_S3_ENDPOINT")
ORIGINALS_S3_REGION = env.text("ORIGINALS_S3_REGION")
ORIGINALS_S3_KEY_ID = env.text("ORIGINALS_S3_KEY_ID")
ORIGINALS_S3_SECRET = env.text("ORIGINALS_S3_SECRET")

# One source of hosts and trusted origins.
PUBLIC_URL = env.text("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
_public = urlsplit(PUBLIC_URL)
ALLOWED_HOSTS = sorted({_public.hostname or "127.0.0.1", "127.0.0.1", "localhost", "[::1]"})
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

SECRET_KEY = env.text("SECRET_KEY")
FIELD_KEYS = env.words("FIELD_KEYS")
# A key of its own, so that what signs the sessions of apps signs nothing else.
HEADLESS_JWT_PRIVATE_KEY = hashlib.sha256(f"app sessions {SECRET_KEY}".encode()).hexdigest()
DEBUG = False
TRUSTED_PROXIES = env.number("TRUSTED_PROXIES", 0)
"""How many proxies in front append to X-Forwarded-For; 0: nobody's word but the socket's is taken."""

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "allauth.headless",
    "app.common",
    "app.audit",
    "app.accounts",
    "app.catalog",
    "app.billing",
    "app.gate",
    "app.chat",
    "app.dashboard",
    "app.api",
    "app.ops",
    "app.embedded",
    "retrieval",
]

MIDDLEWARE = [
    "app.common.middleware.request_id",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "app.accounts.language.in_own_language",
    "app.audit.acting.acting",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "app.accounts.middleware.session_seen",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "app.urls"
ASGI_APPLICATION = "app.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "app.accounts.context.accounts",
            ]
        },
    }
]

# The application's role has no DDL and cannot change a ledger row; migrations run as the owner.
DATABASE_URL = env.text("DATABASE_URL", "postgresql://127.0.0.1/tessera")
DATABASE_OWNER_URL = env.text("DATABASE_OWNER_URL", DATABASE_URL)
DATABASES = {
    "default": {
        **env.database(DATABASE_URL),
        # Connections live in the fixed threads of app.common.db, so persistent ones are bounded there.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASE_THREADS = env.number("DATABASE_THREADS", 8)

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
    }
}

STATIC_URL = "/static/"
STATIC_ROOT = env.text("STATIC_ROOT", str(DATA_DIR / "staticfiles"))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "app.common.storage.ModuleStaticFilesStorage"},
}
# Source maps are asked for by a debugger only, and take longer to compress than all the rest.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
UPLOAD_MAX_BYTES = env.number("UPLOAD_MAX_BYTES", 50_000_000)

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]

EMAIL_HOST = env.text("EMAIL_HOST")
"""Empty: no mail is sent, and nothing waits for it."""
EMAIL_PORT = env.number("EMAIL_PORT", 25)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", "tessera@localhost")

CURRENCY = env.text("CURRENCY", "EUR")
INSTALLATION_ZONE = env.text("INSTALLATION_ZONE", "UTC")
PERSON_LEVEL = env.one_of("PERSON_LEVEL", ("named", "pseudonym", "groups"))
"""How the spend pages show people: named (each view is audited), pseudonym, or groups of five or more."""
ALLOW_UNLIMITED_SPEND = env.flag("ALLOW_UNLIMITED_SPEND")
RATE_KEY_REQUESTS = env.number("RATE_KEY_REQUESTS", 60_000)
RATE_KEY_TOKENS = env.number("RATE_KEY_TOKENS", 100_000_000)
"""A minute, of each API key without a rate limit of its own: a loop that went wild is slowed. 0 is none."""

INFERENCE_URL = env.text("INFERENCE_URL")
INFERENCE_API_KEY = env.text("INFERENCE_API_KEY")
INFERENCE_KIND = env.text("INFERENCE_KIND", "openai")
INFERENCE_MODEL = env.text("INFERENCE_MODEL")
TITLE_MODEL = env.text("TITLE_MODEL")
INFERENCE_CONTEXT_WINDOW = env.number("INFERENCE_CONTEXT_WINDOW", 0)
"""Tokens; 0 when it is not known."""
INFERENCE_SLOTS = env.number("INFERENCE_SLOTS", 8)
INFERENCE_IS_DEMONSTRATION = env.flag("INFERENCE_DEMONSTRATION")
TOKENIZERS_DIR = Path(env.text("TOKENIZERS_DIR", str(DATA_DIR / "tokenizers")))
"""Models' own tokenizer.json files, for deployments whose tokenizer is `file:` and such a name."""
EMBEDDING_URL = env.text("EMBEDDING_URL")
EMBEDDING_API_KEY = env.text("EMBEDDING_API_KEY")
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL", "multilingual-e5-small")
EMBEDDING_DIMENSION = env.number("EMBEDDING_DIMENSION", 384)
EMBEDDING_QUERY_PREFIX = env.text("EMBEDDING_QUERY_PREFIX", "query: ")
EMBEDDING_PASSAGE_PREFIX = env.text("EMBEDDING_PASSAGE_PREFIX", "passage: ")

# Retrieval is the lower tier: it takes its embedder and its database door by name, as Django takes AUTH_USER_MODEL.
RETRIEVAL_EMBEDDER = "app.gate.embedding.embed"
RETRIEVAL_RUN_DB = "app.common.db.run_db"
RETRIEVAL_RERANKER = "app.gate.reranking.rerank"
RETRIEVAL_SEAL = "app.common.crypto.encrypt"
RETRIEVAL_UNSEAL = "app.common.crypto.decrypt"
RETRIEVAL_ADMIT = "app.billing.uploads.fetched_admit"
# Hosts whose pages may be read though they are private: everybody who may upload can read them then.
FETCH_ALLOW = env.words("FETCH_ALLOW")

# Webhooks and pages of metrics: hosts that may be called although they are private, as `host` or `host:port`.
OUTBOUND_ALLOW = env.words("OUTBOUND_ALLOW")
OUTBOUND_CA_FILE = env.text("OUTBOUND_CA_FILE")

QUEUE_WAIT_SECONDS = env.number("QUEUE_WAIT_SECONDS", 30)
DRAIN_SECONDS = env.number("DRAIN_SECONDS", 600)
METRICS_TOKEN = env.text("METRICS_TOKEN")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "app.api.authentication.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "app.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "ENUM_NAME_OVERRIDES": {
        "LimitUnitEnum": ("money", "tokens", "requests", "bytes", "pages"),
        "StatusEnum": ("queued", "parsing", "chunking", "embedding", "ready", "failed", "cancelled"),
        "ExportStatusEnum": ("queued", "running", "ready", "failed"),
        "OwnerKindEnum": ("personal", "team"),
        "MembershipRoleEnum": ("viewer", "member", "admin", "owner"),
        "MessageRoleEnum": ("user", "assistant"),
    },
    "TITLE": "Tessera",
    "DESCRIPTION": "Chat over your own documents, every token counted.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # With them every operation is a link inside a button, which a screen reader cannot tell apart.
    "SWAGGER_UI_SETTINGS": {"deepLinking": False},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

LOG_LEVEL = env.text("LOG_LEVEL", "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "app.common.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.server": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "pypdf": {"level": "ERROR"},
        "uvicorn.access": {"level": "WARNING"},
    },
}
