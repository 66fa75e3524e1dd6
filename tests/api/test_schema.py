"""The OpenAPI document: valid, without a warning, as committed, and complete."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from rest_framework.test import APIClient

from app.api.error_codes import CODES

COMMITTED = Path(__file__).resolve().parents[2] / "app" / "api" / "schema.yaml"

HEADER = "# yamllint disable-file\n"
HINT = f"""Write it again:
(echo "{HEADER.strip()}"
 .venv/bin/python manage.py spectacular --custom-settings app.api.schema.SCHEMA_SETTINGS) >app/api/schema.yaml"""

# As DESIGN's fixed interfaces name them; scripts and clients depend on these.
PROMISED = {
    "me/": {"get"},
    "models/": {"get"},
    "limits/": {"get"},
    "budgets/": {"get", "post"},
    "budgets/{budget_id}/": {"get", "delete"},
    "precount/": {"post"},
    "collections/": {"get", "post"},
    "collections/{collection_id}/": {"get", "patch", "delete"},
    "collections/{collection_id}/documents/": {"get", "post"},
    "documents/{document_id}/": {"get", "delete"},
    "documents/{document_id}/text/": {"get"},
    "documents/{document_id}/retry/": {"post"},
    "documents/{document_id}/cancel/": {"post"},
    "documents/{document_id}/file/": {"put"},
    "search/": {"post"},
    "conversations/": {"get", "post"},
    "conversations/{conversation_id}/": {"get", "patch", "delete"},
    "conversations/{conversation_id}/messages/": {"get"},
    "conversations/{conversation_id}/turns/": {"post"},
    "turns/{turn_id}/": {"get"},
    "turns/{turn_id}/sources/": {"get"},
    "turns/{turn_id}/events/": {"get"},
    "turns/{turn_id}/stop/": {"post"},
    "turns/{turn_id}/feedback/": {"put"},
    "usage/": {"get"},
    "keys/": {"get", "post"},
    "keys/{key_id}/": {"get", "patch", "delete"},
}


@pytest.fixture(scope="module")
def generated():
    out = StringIO()
    call_command(
        "spectacular",
        custom_settings="app.api.schema.SCHEMA_SETTINGS",
        validate=True,
        fail_on_warn=True,
        stdout=out,
    )
    return out.getvalue()


def test_the_committed_document_is_the_generated_one(generated):
    assert COMMITTED.read_text() == HEADER + generated, HINT


def test_without_our_settings_there_is_no_warning_either():
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=StringIO())


def test_every_promised_route_is_described(generated):
    paths = yaml.safe_load(generated)["paths"]
    for path, methods in PROMISED.items():
        described = set(paths[f"/api/v1/{path}"]) - {"parameters"}
        assert described >= methods, path


def test_every_error_code_is_in_the_closed_list(generated):
    document = yaml.safe_load(generated)
    assert set(document["components"]["schemas"]["CodeEnum"]["enum"]) == set(CODES)
    assert all(f"`{code}`" in document["info"]["description"] for code in CODES)


def test_events_are_named_components(generated):
    schemas = yaml.safe_load(generated)["components"]["schemas"]
    names = {"Turn", "Notice", "Status", "Sources", "Quotes", "Delta", "Usage", "Done", "Error"}
    assert {f"Event{name}" for name in names} <= set(schemas)


def test_it_is_served_to_whoever_asks():
    answer = APIClient().get("/api/v1/schema/", {"format": "json"})
    assert answer.status_code == 200
    assert "/api/v1/turns/{turn_id}/events/" in answer.json()["paths"]
