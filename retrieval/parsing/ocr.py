"""Text in pictures, recognised on this machine: an optional set of packages (`requirements/ocr.txt`), no network."""

import importlib
import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy
from PIL import Image

from retrieval.parsing.bands import Segment, segment_text

LONGEST_SIDE = 1700
"""Pixels: about 150 to the inch of a printed page, enough for the smallest print."""
_PARAMETERS = {
    "Global.log_level": "critical",
    "Global.max_side_len": LONGEST_SIDE,
    "Global.use_cls": False,
    # Lines differ in length: in a batch all are padded to the longest.
    "Rec.rec_batch_num": 1,
    "EngineConfig.onnxruntime.intra_op_num_threads": max(1, (os.cpu_count() or 1) // 2),
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


@dataclass(frozen=True, slots=True)
class Recognised:
    segments: tuple[Segment, ...]
    confidence: float
    """0 to 1, weighted by length; 0 where nothing was found."""

    @property
    def characters(self) -> int:
        return sum(len(segment.text) for segment in self.segments)


@cache
def available() -> bool:
    """Whether the packages are installed."""
    return importlib.util.find_spec("rapidocr") is not None


def recognise(image: Image.Image) -> Recognised:
    """Lines of text in a picture with their places. Call only where `available()`."""
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    pixels = numpy.asarray(image.convert("RGB"))[:, :, ::-1].copy()
    found = _engine()(pixels)
    if not found.txts:
        # A lone word on a large white page is at times found in a smaller picture only.
        image.thumbnail((pixels.shape[1] * 7 // 10, pixels.shape[0] * 7 // 10))
        pixels = numpy.asarray(image.convert("RGB"))[:, :, ::-1].copy()
        found = _engine()(pixels)
    if not found.txts:
        return Recognised((), 0.0)
    height, width = pixels.shape[:2]
    segments: list[Segment] = []
    weighted = letters = 0.0
    for corners, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        xs, ys = corners[:, 0], corners[:, 1]
        x0, y0, x1, y1 = float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())
        box = (round(x0 / width, 4), round(y0 / height, 4), round(x1 / width, 4), round(y1 / height, 4))
        segments.append(Segment(segment_text(text), x0, y0, x1, y1, box))
        weighted += float(score) * len(text)
        letters += len(text)
    return Recognised(tuple(segments), round(weighted / letters, 3) if letters else 0.0)


@cache
def _engine() -> Any:
    # A second and a hundred megabytes that only scans need.
    return importlib.import_module("rapidocr").RapidOCR(params=_PARAMETERS)
