"""What never gets into a log line."""

import json
import logging

from app.common.logs import JsonFormatter


class Refused(Exception):
    """As a database words it."""


def test_what_a_database_quotes_of_a_row_is_left_out_of_the_line() -> None:
    try:
        try:
            raise Refused('null value in column "x"\nDETAIL:  Failing row contains (1, my secret\nquestion).')
        except Refused as exc:
            raise RuntimeError(
                'bad JSON\nLINE 1: SELECT f(E\'{"answer": "my secret\nDETAIL: x\nCONTEXT:  JSON data: my secret'
            ) from exc
    except RuntimeError as exc:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 1, "It failed.", (), (type(exc), exc, exc.__traceback__)
        )
    line = json.loads(JsonFormatter().format(record))
    assert "secret" not in line["exception"]
    assert "question)" not in line["exception"]
    for kept in ("null value in column", "Refused", "RuntimeError", "bad JSON", "direct cause"):
        assert kept in line["exception"]
