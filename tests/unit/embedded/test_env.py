"""Where a setting comes from: the environment, a file, what `up` wrote, the default."""

import pytest

from app.settings import env


@pytest.fixture(autouse=True)
def _written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {
        "INFERENCE_MODEL": "packaged",
        "INFERENCE_API_KEY": "of the packaged server",
        "EMBEDDING_QUERY_PREFIX": "query: ",
    }
    monkeypatch.setattr(env, "_WRITTEN", written)
    monkeypatch.setattr(env, "EXTERNAL", {})
    for name in written:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("INFERENCE_MODEL", None, "packaged"),
        ("INFERENCE_MODEL", "", "packaged"),
        ("INFERENCE_MODEL", "mine", "mine"),
        ("INFERENCE_KIND", "", "the default"),
        # An empty prefix is one that a model wants so.
        ("EMBEDDING_QUERY_PREFIX", "", ""),
        ("EMBEDDING_QUERY_PREFIX", None, "query: "),
        ("METRICS_TOKEN", "", ""),
    ],
)
def test_an_empty_description_of_a_server_counts_as_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, expected: str
) -> None:
    if value is not None:
        monkeypatch.setenv(name, value)
    assert env.text(name, "the default") == expected


def test_an_empty_number_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERENCE_SLOTS", "")
    assert env.number("INFERENCE_SLOTS", 8) == 8


def test_what_up_wrote_of_its_own_server_is_not_said_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "EXTERNAL", {"INFERENCE_URL": "http://host/v1"})
    assert (env.text("INFERENCE_API_KEY"), env.text("INFERENCE_MODEL", "none")) == ("", "none")
    assert env.text("EMBEDDING_QUERY_PREFIX") == "query: "
