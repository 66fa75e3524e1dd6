"""What allauth calls a session of `requests`, through the one checked door for HTTP."""

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from app.common.errors import AppError
from app.common.outbound import Answer, Outbound, send_now


@dataclass(frozen=True, slots=True)
class Reply:
    """As much of a response as is asked for. Errors: OAuth2Error, which becomes a page with words."""

    answer: Answer

    @property
    def status_code(self) -> int:
        return self.answer.status

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": "", **self.answer.headers}

    @property
    def content(self) -> bytes:
        return self.answer.body

    @property
    def text(self) -> str:
        return self.answer.body.decode(errors="replace")

    def raise_for_status(self) -> None:
        """Errors: OAuth2Error."""
        if self.answer.status >= 400:
            raise OAuth2Error(f"The provider answered {self.answer.status}.")

    def json(self) -> dict[str, Any]:
        """Errors: OAuth2Error for what is no object."""
        try:
            found = json.loads(self.answer.body)
        except ValueError as exc:
            raise OAuth2Error("The provider's answer is not JSON.") from exc
        if not isinstance(found, dict):
            raise OAuth2Error("The provider's answer is no JSON object.")
        return found


class OutboundSession:
    """Calls providers. Their own hosts are staff's choice, so they may be private; others must be public."""

    def __init__(self, trusted: Collection[str]) -> None:
        self._trusted = trusted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is kept open."""

    def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Reply:
        """GET."""
        return self.request("GET", url, headers=headers)

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
    ) -> Reply:
        """Any method; `data` goes as a form. Errors: OAuth2Error."""
        sent = {"Accept": "application/json", **(headers or {})}
        if auth is not None:
            both = f"{auth.username}:{auth.password}".encode()
            sent["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
        if data:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        request = Outbound(
            url=f"{url}?{urlencode(params)}" if params else url,
            method=method,
            headers=sent,
            body=urlencode(data).encode() if data else b"",
            trusted=self._trusted,
        )
        try:
            return Reply(send_now(request))
        except AppError as exc:
            raise OAuth2Error(exc.message) from exc
