"""Asks Tessera through other people's clients as they come, and prints what each got as one line of JSON.

    python ask.py URL KEY CHAT_MODEL EMBEDDING_MODEL CLIENT ACT

Nothing of Tessera is imported here, and no client is set up otherwise than by address, key and model.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

URL, KEY, MODEL, EMBEDDER, CLIENT, ACT = sys.argv[1:]
QUESTION = [{"role": "user", "content": "Say hello in one short sentence."}]
TEXTS = ["one lighthouse", "two keepers"]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def openai_chat() -> dict[str, Any]:
    import openai

    answer = openai.OpenAI(base_url=URL, api_key=KEY).chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=16
    )
    return {"text": answer.choices[0].message.content, "used": answer.usage.total_tokens, "id": answer.id}


def openai_stream() -> dict[str, Any]:
    import openai

    chunks = list(
        openai.OpenAI(base_url=URL, api_key=KEY).chat.completions.create(
            model=MODEL, messages=QUESTION, max_tokens=16, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    return {"text": text, "used": chunks[-1].usage.total_tokens, "id": chunks[0].id}


def openai_embed() -> dict[str, Any]:
    import openai

    answer = openai.OpenAI(base_url=URL, api_key=KEY).embeddings.create(model=EMBEDDER, input=TEXTS)
    return {"sizes": [len(row.embedding) for row in answer.data], "used": answer.usage.total_tokens}


def openai_tools() -> dict[str, Any]:
    import openai

    answer = openai.OpenAI(base_url=URL, api_key=KEY).chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=16, tools=[TOOL]
    )
    return {"finish": answer.choices[0].finish_reason, "id": answer.id}


def litellm_chat() -> dict[str, Any]:
    import litellm

    answer = litellm.completion(
        model=f"openai/{MODEL}", api_base=URL, api_key=KEY, messages=QUESTION, max_tokens=16
    )
    return {"text": answer.choices[0].message.content, "used": answer.usage.total_tokens, "id": answer.id}


def litellm_stream() -> dict[str, Any]:
    import litellm

    chunks = list(
        litellm.completion(
            model=f"openai/{MODEL}", api_base=URL, api_key=KEY, messages=QUESTION, max_tokens=16, stream=True,
            stream_options={"include_usage": True},
        )
    )  # fmt: skip
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    used = next(c.usage.total_tokens for c in reversed(chunks) if getattr(c, "usage", None))
    return {"text": text, "used": used, "id": chunks[0].id}


def litellm_embed() -> dict[str, Any]:
    import litellm

    answer = litellm.embedding(model=f"openai/{EMBEDDER}", api_base=URL, api_key=KEY, input=TEXTS)
    return {"sizes": [len(row["embedding"]) for row in answer.data], "used": answer.usage.total_tokens}


def litellm_tools() -> dict[str, Any]:
    import litellm

    answer = litellm.completion(
        model=f"openai/{MODEL}", api_base=URL, api_key=KEY, messages=QUESTION, max_tokens=16, tools=[TOOL]
    )
    return {"finish": answer.choices[0].finish_reason, "id": answer.id}


def _langchain() -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(base_url=URL, api_key=KEY, model=MODEL, max_tokens=16)


def langchain_chat() -> dict[str, Any]:
    answer = _langchain().invoke("Say hello in one short sentence.")
    told = answer.response_metadata
    return {"text": answer.content, "used": answer.usage_metadata["total_tokens"], "id": told["id"]}


def langchain_stream() -> dict[str, Any]:
    whole = None
    for piece in _langchain().stream("Say hello in one short sentence.", stream_usage=True):
        whole = piece if whole is None else whole + piece
    return {"text": whole.content, "used": whole.usage_metadata["total_tokens"], "id": whole.id}


def langchain_embed() -> dict[str, Any]:
    from langchain_openai import OpenAIEmbeddings

    # Its default cuts texts with a tokenizer that it fetches from the network, which no test may.
    embedder = OpenAIEmbeddings(base_url=URL, api_key=KEY, model=EMBEDDER, check_embedding_ctx_length=False)
    return {"sizes": [len(row) for row in embedder.embed_documents(TEXTS)], "used": None}


def langchain_tools() -> dict[str, Any]:
    answer = _langchain().bind_tools([TOOL]).invoke("Say hello in one short sentence.")
    return {"finish": answer.response_metadata["finish_reason"], "id": answer.response_metadata["id"]}


def main() -> None:
    act: Callable[[], dict[str, Any]] = globals()[f"{CLIENT}_{ACT}"]
    try:
        told = act()
    except Exception as exc:  # noqa: BLE001 - whatever the client makes of a refusal is what is asked for
        told = {"error": type(exc).__name__, "status": getattr(exc, "status_code", None), "words": str(exc)}
    sys.stdout.write(f"{json.dumps(told)}\n")


if __name__ == "__main__":
    main()
