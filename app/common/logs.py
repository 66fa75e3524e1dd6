"""Log lines as JSON with the request's id; never prompt text, keys or secrets."""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime

from inference_client.tracing import Trace

# Below its first line a database quotes the statement and the row, which may hold somebody's words.
_QUOTED = re.compile(
    r"(?:\n|\\n)(?:LINE \d+|DETAIL|CONTEXT):.*?(?=\n\n(?:The above exception|During handling)|\Z)", re.DOTALL
)

request_id_var: ContextVar[str] = ContextVar("request_id", default="")
trace_var: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""Where the request belongs in somebody's trace, or in one of its own."""
arrived_var: ContextVar[float | None] = ContextVar("arrived", default=None)
"""When the request came, by `time.perf_counter`; None outside one."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request_id, and fields given as `extra={"data": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _QUOTED.sub("", record.getMessage()),
        }
        if request_id := request_id_var.get():
            line["request_id"] = request_id
        if trace := trace_var.get():
            line["trace_id"] = trace.trace_id
        line.update(getattr(record, "data", {}))
        if record.exc_info:
            line["exception"] = _QUOTED.sub("", self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)
