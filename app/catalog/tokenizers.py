"""The tokenizer that a deployment's row names: one of ours, or the file that came with the model."""

from pathlib import Path

from django.conf import settings

from inference_client.tokenizer_files import counter_from_file
from inference_client.tokens import TOKENIZERS, TokenCounter, counter

FILE = "file:"


def tokenizer(name: str) -> TokenCounter:
    """The counter called `name`; `file:qwen.json` is that file in `TOKENIZERS_DIR`.

    Errors: LookupError for a name that is none, TokenizerFileError for a file that is missing or damaged.
    """
    if not name.startswith(FILE):
        return counter(name)
    plain = name.removeprefix(FILE)
    if plain != Path(plain).name or not plain:
        raise LookupError(
            f"`{name}` names no file in TOKENIZERS_DIR; a tokenizer is one of {', '.join(TOKENIZERS)}, "
            "or file: and the name of a tokenizer.json there."
        )
    return counter_from_file(Path(settings.TOKENIZERS_DIR) / plain)
