"""Whose is the process that postmaster.pid names?"""

import subprocess
import sys
from pathlib import Path

import pytest

from app.embedded.postgres import cluster_free, memory_shares, postmaster_of


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "postgres").mkdir()
    return tmp_path / "postgres"


@pytest.mark.parametrize("text", ["", "x\n", "-5\n", "999999999\n"])
def test_a_pid_file_that_names_nobody_is_removed(cluster: Path, text: str) -> None:
    (cluster / "postmaster.pid").write_text(text)
    cluster_free(cluster)
    assert not (cluster / "postmaster.pid").exists()


def test_a_reused_number_is_not_trusted(cluster: Path) -> None:
    """The number now belongs to a living process of the same user that works in the very same folder."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], cwd=cluster, stdin=subprocess.PIPE)
    try:
        (cluster / "postmaster.pid").write_text(f"{other.pid}\n")
        assert postmaster_of(cluster) is None
        cluster_free(cluster)
        assert other.poll() is None
        assert not (cluster / "postmaster.pid").exists()
    finally:
        other.kill()
        other.wait()


def test_the_server_of_another_cluster_is_not_trusted(cluster: Path, tmp_path: Path) -> None:
    """Another cluster's postgres may have got the number: same program, other folder."""
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "postgres").write_bytes(Path("/bin/sleep").read_bytes())
    (copy / "postgres").chmod(0o755)
    other = subprocess.Popen([str(copy / "postgres"), "600"], cwd=tmp_path)
    try:
        (cluster / "postmaster.pid").write_text(f"{other.pid}\n")
        assert postmaster_of(cluster) is None
        (tmp_path / "postmaster.pid").write_text(f"{other.pid}\n")
        assert postmaster_of(tmp_path) == other.pid
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    ("gigabytes", "kept", "expected"),
    [(1, "256MB", "512MB"), (3, "384MB", "1536MB"), (24, "3072MB", "12288MB"), (256, "4096MB", "131072MB")],
)
def test_it_keeps_an_eighth_of_the_memory_within_bounds(gigabytes: int, kept: str, expected: str) -> None:
    assert memory_shares(gigabytes << 30) == {"shared_buffers": kept, "effective_cache_size": expected}
