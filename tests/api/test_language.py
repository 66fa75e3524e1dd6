"""Pages speak the language that the person chose, else the one that the browser asks for; the API speaks English."""

import pytest
from django.test import Client

from app.accounts.models import User

pytestmark = pytest.mark.django_db
GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de-AT,de;q=0.9,en;q=0.5"}


@pytest.mark.parametrize(
    ("asked", "language", "words"),
    [(GERMAN, "de", "Anmelden"), ({"HTTP_ACCEPT_LANGUAGE": "fr"}, "en", "Sign in"), ({}, "en", "Sign in")],
    ids=["german", "unknown", "none"],
)
def test_the_browser_is_heard(client: Client, asked: dict[str, str], language: str, words: str) -> None:
    page = client.get("/accounts/login/", **asked)
    assert words in page.text
    assert f'<html lang="{language}"' in page.text
    assert ("data-words=" in page.text) == (language == "de")
    assert page["Content-Language"] == language
    assert "Accept-Language" in page["Vary"]


def test_the_person_is_heard_first(client: Client, user: User) -> None:
    client.force_login(user)
    assert "Ask your documents" in client.get("/").text
    client.post("/accounts/language/", {"language": "de"})
    for path, words in (
        ("/", "Fragen Sie Ihre Dokumente"),
        ("/documents/", "Neue Sammlung"),
        ("/usage/", "Was übrig ist"),
        ("/keys/", "Neuer Schlüssel"),
        ("/accounts/", "Sprache der Seiten"),
        ("/nowhere/", "Hier ist nichts für Sie"),
    ):
        assert words in client.get(path).text, path
    client.post("/accounts/language/", {"language": "xx"})
    client.post("/accounts/language/", {"language": ""})
    assert "Neue Sammlung" in client.get("/documents/", **GERMAN).text
    assert "New collection" in client.get("/documents/").text


def test_forms_answer_in_the_language_of_their_page(client: Client, user: User) -> None:
    wrong = {"username": user.email, "password": "not this one"}
    assert "gehören nicht zusammen" in client.post("/accounts/login/", wrong, **GERMAN).text
    assert "do not belong together" in client.post("/accounts/login/", wrong).text
    client.force_login(user)
    saved = client.post("/accounts/", {"name": "Ada"}, follow=True, **GERMAN)
    assert "Ihr Name ist gespeichert." in saved.text


def test_the_api_speaks_english(client: Client, user: User) -> None:
    client.force_login(user)
    answer = client.get("/api/v1/usage/?group_by=x", **GERMAN)
    assert answer.status_code == 422
    assert "is not a valid choice" in answer.text
