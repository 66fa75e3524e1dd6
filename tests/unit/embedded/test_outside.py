import platform

import pytest

from app.embedded import valkey
from app.embedded.errors import EmbeddedError
from app.embedded.outside import outside_check, parts_wanted

ALL = ("postgres", "valkey", "chat", "embedder")


@pytest.mark.parametrize(
    ("external", "wanted"),
    [
        ({}, ALL),
        ({"DATABASE_URL": "x"}, ("valkey", "chat", "embedder")),
        ({"REDIS_URL": "x"}, ("postgres", "chat", "embedder")),
        ({"INFERENCE_URL": "x", "INFERENCE_KIND": "vllm"}, ("postgres", "valkey", "embedder")),
        ({"EMBEDDING_URL": "x", "EMBEDDING_MODEL": "m"}, ("postgres", "valkey", "chat")),
        ({"DATABASE_URL": "x", "REDIS_URL": "x", "INFERENCE_URL": "x", "EMBEDDING_URL": "x"}, ()),
    ],
)
def test_each_variable_replaces_its_part(external: dict[str, str], wanted: tuple[str, ...]) -> None:
    assert parts_wanted(external) == wanted


@pytest.mark.parametrize(
    ("external", "counted", "ignored"),
    [
        ({"INFERENCE_KIND": "vllm"}, {}, ["INFERENCE_KIND"]),
        (
            {"EMBEDDING_MODEL": "m", "EMBEDDING_QUERY_PREFIX": "q"},
            {},
            ["EMBEDDING_MODEL", "EMBEDDING_QUERY_PREFIX"],
        ),
        (
            {"DATABASE_OWNER_URL": "x", "REDIS_URL": "redis://h"},
            {"REDIS_URL": "redis://h"},
            ["DATABASE_OWNER_URL"],
        ),
        (
            {"INFERENCE_URL": "u", "INFERENCE_KIND": "vllm"},
            {"INFERENCE_URL": "u", "INFERENCE_KIND": "vllm"},
            [],
        ),
    ],
)
def test_a_description_without_its_server_is_left_out(
    external: dict[str, str], counted: dict[str, str], ignored: list[str]
) -> None:
    said: list[str] = []
    assert outside_check(external, said.append) == counted
    assert [line.split()[0] for line in said] == ignored


@pytest.mark.parametrize("url", ["redis+cluster://h", "rediss+cluster://h", "amqp://h", "h:6379"])
def test_what_celery_cannot_use_as_a_broker_is_refused(url: str) -> None:
    with pytest.raises(EmbeddedError, match="one Redis or Valkey"):
        outside_check({"REDIS_URL": url}, print)


def test_a_machine_without_a_packaged_part_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(EmbeddedError, match=r"no packaged Valkey for riscv64.*set REDIS_URL"):
        valkey.binary()
