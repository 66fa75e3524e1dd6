import base64
import json
import stat
from pathlib import Path

import pytest

from app.embedded.errors import EmbeddedError
from app.embedded.paths import layout_open, write_private
from app.embedded.secrets import first_run_keep, secrets_open


def test_secrets_are_made_once_and_private(tmp_path: Path) -> None:
    layout = layout_open(tmp_path / "data")
    made = secrets_open(layout)
    assert secrets_open(layout) == made
    assert stat.S_IMODE(layout.secrets.stat().st_mode) == 0o600
    assert len(base64.urlsafe_b64decode(made.field_keys[0])) == 32
    words = [
        value for value in json.loads(layout.secrets.read_text()).values() if isinstance(value, str) and value
    ]
    assert len(set(words)) == len(words), "every secret is its own"


def test_repr_shows_no_secret(tmp_path: Path) -> None:
    made = secrets_open(layout_open(tmp_path / "data"))
    assert made.secret_key not in f"{made!r} {made}"


def test_loose_mode_is_tightened(tmp_path: Path) -> None:
    layout = layout_open(tmp_path / "data")
    secrets_open(layout)
    layout.secrets.chmod(0o644)
    secrets_open(layout)
    assert stat.S_IMODE(layout.secrets.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"secret_key": "x"}', '{"field_keys": null}'])
def test_damaged_file_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    layout = layout_open(tmp_path / "data")
    layout.secrets.write_text(text)
    with pytest.raises(EmbeddedError, match="backup"):
        secrets_open(layout)
    assert layout.secrets.read_text() == text


def test_first_run_is_remembered_and_later_ones_change_nothing(tmp_path: Path) -> None:
    layout = layout_open(tmp_path / "data")
    made = secrets_open(layout)
    kept = first_run_keep(
        layout, made, {"admin_email": "a@b", "admin_password": "p", "api_key": "k", "other": "x"}
    )
    assert first_run_keep(layout, kept, {}) == kept
    assert secrets_open(layout) == kept
    assert (kept.admin_email, kept.admin_password, kept.api_key) == ("a@b", "p", "k")
    assert kept.secret_key == made.secret_key


def test_private_file_replaces_a_readable_one(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]
