"""Two known vectors, to tell that the exported network computes the right thing on this processor.

They come from the engine that ships with the weights, an independent implementation of the same network, and
are kept in `e5_probe.json`: a text with its prefix, and its vector as int8 in base64 (the scale is free).
"""

import base64
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.embedded.e5_model import E5Model
from app.embedded.e5_tokenizer import E5Tokenizer

_FILE = Path(__file__).with_name("e5_probe.json")


def _unit(packed: str) -> npt.NDArray[np.float32]:
    vector = np.frombuffer(base64.b64decode(packed), np.int8).astype(np.float32)
    scaled: npt.NDArray[np.float32] = vector / np.float32(np.linalg.norm(vector))
    return scaled


def probe_agreement(tokenizer: E5Tokenizer, model: E5Model) -> float:
    """The lower cosine between computed and known vectors: 1 is the same, about 0.99 is good for 8 bits."""
    known = json.loads(_FILE.read_text())
    computed = model.run(tokenizer.encode([row["text"] for row in known]))
    return float(min(vector @ _unit(row["vector"]) for vector, row in zip(computed, known, strict=True)))
