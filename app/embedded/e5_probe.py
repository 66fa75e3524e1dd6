"""Two known vectors, to tell that the exported network computes the right thing on this processor.

They come from the engine that ships with the weights, an independent implementation of the same network.
"""

import base64

import numpy as np
import numpy.typing as npt

from app.embedded.e5_model import E5Model
from app.embedded.e5_tokenizer import E5Tokenizer

_KNOWN = (
    (
        "query: Where is the key of the old mill kept?",
        "QtEB9yK3Iggy9EPxK9zwOXb4D79b+M8oGh3rE1Ta79EXrz8kp7w1468oTy32Et0287SfDf5EPtG+ANlILdIGBUEdHSXd97cV"
        "3akkMxKiy9mG3742uEZEv0+sFUUJ1NKBBhdOuDi8Q7/2OjrBTMeWTDdY5eAw2PbtOBGeyLG8KkVaERAgJw05MKzi//Pg/rwK"
        "D/g0yjzKNMtaNRDUzLoyRKrWxP2u/ElZxs34Eb1R4UrZGygl2ujmofPP5S3OzuI888r8XbklVSLh5PczIymwPuQ4V6bpRtPu"
        "Ik3dTBXWOYjUSTrL10/VtLe/9fD1IUO2vBAnuDbQrETrTSLR6tsIEhAzoxUM+1J1By2wB7fs0CIzy8LNDT/z/zZuOy0O799J"
        "H+P221EdChPRZQIg3J0HQ+8T5i/7Tywu7ucfDeLy29fL0QjDFgjp4lENB+DeNL7f0iTQlRcaziAP2CYJ1TJElA1c7CwBrwsn"
        "z9YiLRE879AdvUYIzwYOofkoztlHIh4e"
    ),
    (
        "passage: Der Schlüssel der alten Mühle hängt hinter der Tür, neben der Uhr.",
        "N+MB31rl6wsTITALOenPKjD46d0p5t4WJD3UKDW+1toTtCsWyb0ozOQdLTv9Ic0X0tXcJAIQDNT0+dMeThcQEEMwCjD79rEn"
        "DeQMJBK47+fV/tQd11VB+jH5Rib51srT4iAZ3znaALXwIiHTO6q5KQE629QT7/DIIPDLz9beOBchEk8SE/4JQtT79/bYOP0b"
        "GzMf4xrKCuZGDiTc1+IXE9PNwALU9BtH0vELFAgZ/SzbIydFGd3K5vfq1SPcBuX+88HiSsYiEiX0+AoWAwvPC9c3OantUazx"
        "FDzZJh7ZNbHWSS0B0xHQ6r/N7tbdEBz55u0C0yjX2D3FDgXr2s0JDR4u8hU430gsGS+T7+X04i838LruH1Dw1/wZKyEc8QkV"
        "8eTI3CjRNSrwOuQuCb4MGsAG6iT9Mxgj4wMoO/P/5tXYyxDcDQfY6SYGLP36L9gcxzTb0w00wSXy8ULX3Rc2oRUsARPfywka"
        "wgwEGiQp/dMOzCv7vfgSgf4p8sBiHiFG"
    ),
)


def _known(packed: str) -> npt.NDArray[np.float32]:
    vector = np.frombuffer(base64.b64decode(packed), np.int8).astype(np.float32)
    scaled: npt.NDArray[np.float32] = vector / np.float32(np.linalg.norm(vector))
    return scaled


def probe_agreement(tokenizer: E5Tokenizer, model: E5Model) -> float:
    """The lower cosine between computed and known vectors: 1 is the same, about 0.99 is good for 8 bits."""
    computed = model.run(tokenizer.encode([text for text, _ in _KNOWN]))
    return float(min(vector @ _known(packed) for vector, (_, packed) in zip(computed, _KNOWN, strict=True)))
