"""Libraries that come from elsewhere: known by name, version, licence and hash, and nothing beside them."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

VENDOR = Path(__file__).resolve().parents[3] / "app" / "common" / "static" / "vendor"
LIBRARIES: list[dict[str, Any]] = json.loads((VENDOR / "manifest.json").read_text())["libraries"]
FILES = [(name, digest) for library in LIBRARIES for name, digest in library["files"].items()]


@pytest.mark.parametrize(("name", "digest"), FILES)
def test_file_has_the_hash_of_the_manifest(name: str, digest: str) -> None:
    found = base64.b64encode(hashlib.sha384((VENDOR / name).read_bytes()).digest()).decode()
    assert f"sha384-{found}" == digest


def test_every_file_is_in_the_manifest() -> None:
    present = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert present == {name for name, _ in FILES} | {"manifest.json"}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_library_says_what_it_is_and_carries_its_licence(library: dict[str, Any]) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert library["licence"]
    assert any(Path(name).name.startswith("LICENSE") for name in library["files"])
