"""Whether `up` has to migrate."""

from urllib.parse import quote

import pytest
from django.db import connection

from app.embedded.product import schema_is_current


def address(schema: str) -> str:
    """Of the test database, looking into one schema alone."""
    known = connection.settings_dict
    who = f"{quote(known['USER'])}:{quote(known['PASSWORD'])}"
    where = f"{known['HOST']}:{known['PORT']}/{known['NAME']}"
    return f"postgresql://{who}@{where}?options=-csearch_path%3D{schema}"


@pytest.mark.django_db(transaction=True)
def test_a_schema_is_current_when_no_migration_is_missing() -> None:
    assert schema_is_current(address("public"))
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA half")
        cursor.execute(
            "CREATE TABLE half.django_migrations AS SELECT * FROM django_migrations "
            "WHERE NOT (app = 'billing' AND name = '0023_zone_changed')"
        )
        try:
            assert not schema_is_current(address("half"))
        finally:
            cursor.execute("DROP SCHEMA half CASCADE")


@pytest.mark.django_db
def test_an_empty_database_and_one_that_is_away_are_not_current() -> None:
    assert not schema_is_current(address("pg_catalog"))
    assert not schema_is_current("postgresql://nobody@127.0.0.1:9/none")
