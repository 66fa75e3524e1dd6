"""How long a server asks us to wait, in all the ways servers write it. No IO."""

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from inference_client.adapters.json_tools import items, obj

MAX_WAIT_S = 24 * 3600.0
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RESETS = (
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-reset",
    "ratelimit-reset",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-reset",
)


def retry_after(headers: Mapping[str, str], body: object, now: datetime) -> float | None:
    """Seconds to wait by `headers` (names in lower case) and JSON `body`, or None where nothing is said."""
    millis = headers.get("retry-after-ms", "")
    if _NUMBER.fullmatch(millis):
        return _bounded(float(millis) / 1000)
    for value in (headers.get("retry-after"), _retry_info(body), *(headers.get(name) for name in _RESETS)):
        wait = _seconds(value, now) if value else None
        if wait is not None:
            return _bounded(wait)
    return None


def _retry_info(body: object) -> str | None:
    """Google puts the wait into a detail of the error object."""
    for detail in items(obj(obj(body).get("error")).get("details")):
        delay = obj(detail).get("retryDelay")
        if isinstance(delay, str):
            return delay
    return None


def _seconds(value: str, now: datetime) -> float | None:
    value = value.strip()
    if _NUMBER.fullmatch(value):
        number = float(value)
        # Some servers name the moment instead of the wait, as seconds or milliseconds since 1970.
        if number > 1e12:
            return number / 1000 - now.timestamp()
        return number - now.timestamp() if number > 1e9 else number
    if value and _DURATION.sub("", value) == "":
        return sum(float(size) * _UNITS[unit or "s"] for size, unit in _DURATION.findall(value))
    try:
        moment = datetime.fromisoformat(value) if value[:4].isdigit() else parsedate_to_datetime(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).timestamp() - now.timestamp()


def _bounded(wait: float) -> float:
    return min(max(0.0, wait), MAX_WAIT_S)
