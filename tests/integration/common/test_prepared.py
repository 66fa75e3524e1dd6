"""What every turn asks the database is parsed and planned once a connection."""

import pytest
from django.db import Error, connection

from app.common.db import prepared

pytestmark = pytest.mark.django_db


def _prepared_here(text: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [f"{text}%"])
        count: int = cursor.fetchone()[0]
    return count


def test_a_repeated_statement_is_prepared_and_an_ordinary_one_is_not() -> None:
    for number in range(6):
        with prepared() as cursor:
            cursor.execute("SELECT %s::integer + 1 AS repeated", [number])
            assert cursor.fetchone() == (number + 1,)
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::integer + 2 AS ordinary", [number])
    assert _prepared_here("SELECT $1::integer + 1 AS repeated") == 1
    assert _prepared_here("SELECT %s::integer + 2") == _prepared_here("SELECT $1::integer + 2") == 0


def test_its_errors_are_those_of_every_other_cursor() -> None:
    with pytest.raises(Error, match="no_such_table"), prepared() as cursor:
        cursor.execute("SELECT 1 FROM no_such_table")
