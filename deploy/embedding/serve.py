"""The packaged embedding server in a container of its own.

python deploy/embedding/serve.py --prepare   fetch the locked weights and make the served form (image build)
python deploy/embedding/serve.py             serve /v1/embeddings on port 8081 with EMBEDDING_API_KEY
"""

import os
import sys
from pathlib import Path

import uvicorn

from app.embedded.e5_model import E5Model
from app.embedded.e5_tokenizer import E5Tokenizer
from app.embedded.embed_server import EmbedServer
from app.embedded.weights import EMBEDDING_NAME, weights_ensure

CACHE = Path(os.environ.get("EMBEDDING_CACHE", "/opt/models"))
PORT = 8081


def main(arguments: list[str]) -> None:
    """Prepare the weights, or serve them until SIGTERM."""
    if "--prepare" in arguments:
        weights_ensure(CACHE, print, chat=False)
        return
    key = os.environ.get("EMBEDDING_API_KEY", "")
    if not key:
        sys.exit(
            "EMBEDDING_API_KEY is not set: without it anybody who reaches this port could use the server."
        )
    folder = CACHE / "e5"
    model = E5Model(folder / "model.onnx", threads=int(os.environ.get("EMBEDDING_THREADS", "2")))
    server = EmbedServer(E5Tokenizer(folder), model, name=EMBEDDING_NAME, key=key)
    # All addresses: the port is published to the other containers only.
    uvicorn.run(
        server,
        host="0.0.0.0",  # noqa: S104
        port=PORT,
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
