"""Runs the exported network, in one thread: on a busy machine several would wait for each other."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from app.embedded.e5_tokenizer import Encoded

_PAD = 1


class E5Model:
    """multilingual-e5-small: encoded texts → unit vectors of 384 float32."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # A spinning thread takes the core that the chat server needs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, batch: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        """Vectors [len(batch), 384]; shorter rows are padded to the longest."""
        longest = max(len(item.ids) for item in batch)
        ids = np.full((len(batch), longest), _PAD, np.int64)
        mask = np.zeros((len(batch), longest), np.int64)
        for row, item in enumerate(batch):
            ids[row, : len(item.ids)] = item.ids
            mask[row, : len(item.ids)] = 1
        (vectors,) = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})
        return np.asarray(vectors, np.float32)
