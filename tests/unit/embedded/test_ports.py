import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.embedded.errors import EmbeddedError
from app.embedded.paths import layout_open
from app.embedded.ports import port_is_free, ports_choose

NAMES = ("postgres", "valkey", "chat", "embedder")


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_ports_differ_and_come_back(tmp_path: Path) -> None:
    layout = layout_open(tmp_path)
    first = ports_choose(layout, NAMES)
    assert len(set(first.values())) == len(NAMES)
    assert ports_choose(layout, NAMES) == first


def test_a_part_left_out_once_keeps_its_port(tmp_path: Path) -> None:
    layout = layout_open(tmp_path)
    first = ports_choose(layout, NAMES)
    ports_choose(layout, NAMES[:2])
    assert ports_choose(layout, NAMES) == first


def test_a_port_taken_meanwhile_is_given_up(tmp_path: Path, listener: int) -> None:
    layout = layout_open(tmp_path)
    layout.ports.write_text(f'{{"chat": {listener}}}')
    assert ports_choose(layout, ("chat",))["chat"] != listener
    assert not port_is_free(listener)


def test_the_port_asked_for_is_used_or_refused(tmp_path: Path, listener: int) -> None:
    layout = layout_open(tmp_path)
    free = ports_choose(layout, ("x",))["x"]
    assert ports_choose(layout, ("web",), web=free)["web"] == free
    with pytest.raises(EmbeddedError, match=f"{listener} is in use"):
        ports_choose(layout, ("web",), web=listener)


@pytest.mark.parametrize("text", ["", "[1]", '{"chat": "x"}', "null"])
def test_damaged_memory_is_ignored(tmp_path: Path, text: str) -> None:
    layout = layout_open(tmp_path)
    layout.ports.write_text(text)
    assert ports_choose(layout, ("chat",))["chat"] > 0
