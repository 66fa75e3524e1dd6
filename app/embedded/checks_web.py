"""`doctor`'s view from outside: the public address, and what only matters in production."""

import http.client
import json
import smtplib
import ssl
import time
from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.mail import get_connection
from django.db import connection

from app.accounts.models import User
from app.accounts.services import key_create, key_revoke
from app.catalog.models import Deployment
from app.catalog.selectors import targets
from app.common.clock import now
from app.common.redis_door import Unavailable, sync_redis
from app.embedded.checks import Check, failed, passed, skipped

_WEAK_PASSWORDS = {"", "postgres", "password", "tessera", "changeme", "secret", "admin"}
_CLOCK_S = 2.0


def _connect(seconds: float) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        secure = http.client.HTTPSConnection(
            str(parts.hostname), parts.port, timeout=seconds, context=context
        )
        return secure, parts.path
    return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=seconds), parts.path


def public_url() -> Check:
    """Whether Tessera answers at the address that people and links use."""
    link, prefix = _connect(5)
    try:
        link.request("GET", f"{prefix}/healthz")
        answer = link.getresponse()
        text = answer.read(100)
    except (OSError, http.client.HTTPException) as exc:
        return failed(
            "public URL",
            f"{settings.PUBLIC_URL} does not answer ({exc}); start the web server, or correct PUBLIC_URL.",
        )
    finally:
        link.close()
    if answer.status != 200 or text.strip() != b"ok":
        return failed(
            "public URL",
            f"{settings.PUBLIC_URL} answers, but not as Tessera (status {answer.status}); correct PUBLIC_URL "
            "or the proxy in front of it.",
        )
    return passed("public URL", f"Tessera answers at {settings.PUBLIC_URL}.")


def secrets() -> Iterable[Check]:
    """Whether every secret is one's own."""
    weak = len(settings.SECRET_KEY) < 50 or settings.SECRET_KEY.startswith(("django-insecure", "no-secret"))
    if weak:
        yield failed("secret key", "SECRET_KEY is short or a default; make one with openssl rand -base64 48")
    else:
        yield passed("secret key", "It is long and no default.")
    try:
        keys = [Fernet(key) for key in settings.FIELD_KEYS]
    except ValueError:
        keys = []
    if keys:
        yield passed("field keys", f"{len(keys)} in use.")
    else:
        yield failed(
            "field keys", "FIELD_KEYS is empty or no Fernet key, so server keys cannot be encrypted."
        )
    if settings.DATABASES["default"]["PASSWORD"].lower() in _WEAK_PASSWORDS:
        yield failed("database password", "It is empty or a well-known one; give the role another.")
    else:
        yield passed("database password", "It is no well-known one.")


def production_settings() -> Iterable[Check]:
    """Whether this is set up to be reached by others."""
    if settings.DEBUG:
        yield failed("debug", "DEBUG is on and shows internals to everybody; use app.settings.production.")
    else:
        yield passed("debug", "It is off.")
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme == "https":
        yield passed("https", "PUBLIC_URL is https.")
    else:
        yield failed(
            "https", f"{settings.PUBLIC_URL} is not https, so sessions and keys can be read on the way."
        )


def smtp() -> Check:
    """Whether mail can be sent."""
    if not settings.EMAIL_HOST:
        return failed("mail", "No mail is sent, alerts and requests included: set EMAIL_HOST and EMAIL_PORT.")
    link = get_connection(fail_silently=False)
    place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        link.open()
    except (OSError, smtplib.SMTPException) as exc:
        return failed(
            "mail", f"{place} does not take mail ({exc}); set EMAIL_HOST, EMAIL_PORT and its account."
        )
    link.close()
    return passed("mail", f"{place} takes mail.")


def clock() -> Check:
    """Whether this machine, the database and the broker agree on the time: budgets and sessions depend on it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        away = {"the database": float(cursor.fetchone()[0]) - time.time()}
    try:
        seconds, micros = sync_redis().time()
        away["the broker"] = seconds + micros / 1e6 - time.time()
    except Unavailable:
        return skipped("clock", "The broker does not answer.")
    late = [f"{name} by {apart:+.1f} s" for name, apart in away.items() if abs(apart) > _CLOCK_S]
    if late:
        return failed("clock", f"This machine differs from {' and '.join(late)}; let all of them use NTP.")
    return passed("clock", "This machine, the database and the broker agree.")


def streaming() -> Check:
    """Whether an answer arrives piece by piece through PUBLIC_URL, and not at once from a proxy's buffer.

    Makes one short, booked call with a key of its own that ends with the check.
    """
    admin = User.objects.filter(is_staff=True, is_active=True).order_by("id").first()
    models = targets(Deployment.Purpose.CHAT.value)
    if admin is None or admin.default_team_id is None or not models:
        return skipped("streaming", "There is no administrator or no chat model; run `manage.py first_run`.")
    row, key = key_create(
        name="doctor",
        team_id=admin.default_team_id,
        user_id=admin.id,
        scopes=["chat"],
        expires_at=now() + timedelta(minutes=5),
    )
    try:
        return _judge_stream(*_stream(key, models[0].public_name))
    except (OSError, http.client.HTTPException) as exc:
        return failed(
            "streaming", f"The stream through {settings.PUBLIC_URL} broke ({exc}); check the proxy."
        )
    finally:
        key_revoke(key=row)


def _stream(key: str, model: str) -> tuple[int, list[float], str]:
    """Status, arrival of each piece in seconds after the first, and the text of a refusal."""
    link, prefix = _connect(60)
    messages = [{"role": "user", "content": "Count to ten."}]
    body = {"model": model, "stream": True, "max_tokens": 32, "messages": messages}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        link.request("POST", f"{prefix}/v1/chat/completions", json.dumps(body), headers)
        answer = link.getresponse()
        if answer.status != 200:
            return answer.status, [], answer.read(300).decode(errors="replace")
        began, arrivals = time.monotonic(), []
        while answer.read1(65536):
            arrivals.append(time.monotonic() - began)
        return answer.status, arrivals, ""
    finally:
        link.close()


def _judge_stream(status: int, arrivals: list[float], refusal: str) -> Check:
    if status != 200:
        return failed("streaming", f"{settings.PUBLIC_URL}/v1 refuses a stream ({status}): {refusal}")
    if len(arrivals) < 3:
        return failed(
            "streaming",
            f"The answer came in {len(arrivals)} pieces at once: a proxy buffers it; switch that off for "
            "text/event-stream (nginx: proxy_buffering off).",
        )
    return passed(
        "streaming", f"An answer came in {len(arrivals)} pieces over {arrivals[-1] - arrivals[0]:.1f} s."
    )
